# SPDX-License-Identifier: Apache-2.0
"""The wheel `tessera-runtime`: tessera/runtime.py, the compiled modules, and the back end for GPUs.

CMake builds the modules, unless the environment variable TESSERA_WHEEL_PREBUILT names a build folder that contains
them. The wheel's tag is that of the Python version for which they were compiled.
"""
from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

from setuptools import Distribution, setup
from setuptools.command.build_py import build_py
from wheel.bdist_wheel import bdist_wheel

ROOT = Path(__file__).resolve().parents[2]
MODULES = ("_runtime", "_calibration")
VERSION = re.search(r'__version__ = "(.*)"', (ROOT / "python_tools/tessera/__init__.py").read_text()).group(1)


def build_folder() -> Path:
    """Returns the build folder with the modules; builds them unless a prebuilt folder is set."""
    if prebuilt := os.environ.get("TESSERA_WHEEL_PREBUILT"):
        return Path(prebuilt)
    build = ROOT / "build" / f"wheel-{sys.implementation.cache_tag}"
    configure = ["cmake", "--preset", "release", "-B", str(build), f"-DPython3_EXECUTABLE={sys.executable}"]
    configure += ["-DTESSERA_BUILD_COMPILER=OFF", "-DTESSERA_BUILD_TESTS=OFF"]
    targets = ["tessera_runtime_module", "tessera_calibration_module", "bmrt_cuda"]
    subprocess.run(configure, cwd=ROOT, check=True)
    subprocess.run(["cmake", "--build", str(build), "--target", *targets], cwd=ROOT, check=True)
    return build


BUILD = build_folder() if any(word in sys.argv for word in ("bdist_wheel", "install")) else Path()


def module(name: str) -> Path:
    """Returns the path of a compiled module; a build folder contains modules for one Python version."""
    return next((BUILD / "python" / "tessera").glob(f"{name}.*.so"))


class BuildFiles(build_py):
    """Copies the contents of the wheel, because they are not a package that setuptools could find."""

    def run(self) -> None:
        package = Path(self.build_lib) / "tessera"
        package.mkdir(parents=True, exist_ok=True)
        shutil.copy2(ROOT / "python_tools" / "tessera" / "__init__.py", package)
        shutil.copy2(ROOT / "bmruntime" / "python" / "tessera" / "runtime.py", package)
        for binary in (*map(module, MODULES), BUILD / "lib" / "libbmrt_cuda.so"):
            shutil.copy2(binary, package)
            subprocess.run(["strip", "--strip-unneeded", str(package / binary.name)], check=True)
        shutil.copy2(BUILD / "deb" / "copyright", package / "runtime-licences.txt")


class Wheel(bdist_wheel):
    def get_tag(self) -> tuple[str, str, str]:
        version = re.search(r"\.cpython-(\d+)", module("_runtime").name).group(1)
        return f"cp{version}", f"cp{version}", super().get_tag()[2]


class Compiled(Distribution):
    def has_ext_modules(self) -> bool:
        return True


setup(
    version=VERSION,
    packages=["tessera"],
    package_dir={},
    distclass=Compiled,
    cmdclass={"build_py": BuildFiles, "bdist_wheel": Wheel},
)
