# SPDX-License-Identifier: Apache-2.0
"""The wheel `tessera`: the commands, and the compiler as one program (tessera/bin) with LLVM linked in.

Shared libraries that a plain Linux lacks (protobuf) are in tessera/lib and are found through an rpath relative to the
program. Everything compiled for Python is in the wheel `tessera-runtime` (bmruntime/python), so one wheel serves every
Python version.

The programs are built with CMake, or taken from the build folder TESSERA_WHEEL_PREBUILT. With TESSERA_WHEEL_SHARED, the
program need not have LLVM linked in, which gives a wheel for this machine only, for tests of the packaging.
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

ROOT = Path(__file__).resolve().parent
PROGRAMS = ("bmodel-combine", "bmodel-dump", "npu-perf", "npu-describe", "bmrt_bench", "bmrt_peak")
COMPILER = "tessera-compile"
VERSION = re.search(r'__version__ = "(.*)"', (ROOT / "python_tools/tessera/__init__.py").read_text()).group(1)
# Libraries that exist on every Linux that runs Python, or that are tied to its C library; never bundled.
SYSTEM = re.compile(
    r"^(?:linux-vdso|ld-linux|libc|libm|libdl|librt|libpthread|libstdc\+\+|libgcc_s|libutil|libresolv)\b"
)


def build_folder() -> Path:
    """Returns the folder with the programs; builds them unless a prebuilt folder is set."""
    if prebuilt := os.environ.get("TESSERA_WHEEL_PREBUILT"):
        return Path(prebuilt)
    build = Path(os.environ.get("TESSERA_WHEEL_BUILD_DIR", ROOT / "build" / "package"))
    configure = ["cmake", "--preset", "package", "-B", str(build), f"-DPython3_EXECUTABLE={sys.executable}"]
    targets = [f"{COMPILER}-static", *PROGRAMS]
    subprocess.run(configure, cwd=ROOT, check=True)
    subprocess.run(["cmake", "--build", str(build), "--target", *targets], cwd=ROOT, check=True)
    return build


def bundle(program: Path, folder: Path) -> None:
    """Copies the shared libraries that `program` needs and a plain system lacks."""
    folder.mkdir(parents=True, exist_ok=True)
    listing = subprocess.run(["ldd", str(program)], check=True, capture_output=True, text=True).stdout
    for name, path in re.findall(r"^\s*(\S+) => (/\S+)", listing, re.MULTILINE):
        if not SYSTEM.match(name):
            shutil.copy2(os.path.realpath(path), folder / name)


class BuildFiles(build_py):
    def run(self) -> None:
        super().run()
        package, build = Path(self.build_lib) / "tessera", build_folder()
        (package / "__init__.py").unlink()  # it belongs to the other wheel
        shared = "TESSERA_WHEEL_SHARED" in os.environ
        (package / "bin").mkdir(exist_ok=True)
        for program in (
            build / ("bin" if shared else "static") / COMPILER,
            *(build / "bin" / name for name in PROGRAMS),
        ):
            shutil.copy2(program, package / "bin")
            subprocess.run(["strip", str(package / "bin" / program.name)], check=True)
        if not shared:
            bundle(package / "bin" / COMPILER, package / "lib")
        shutil.copy2(build / "deb" / "copyright", package / "licences.txt")


class Wheel(bdist_wheel):
    def get_tag(self) -> tuple[str, str, str]:
        return "py3", "none", super().get_tag()[2]


class Compiled(Distribution):
    def has_ext_modules(self) -> bool:
        return True


setup(
    install_requires=[f"tessera-runtime=={VERSION}", "numpy>=1.22", "pillow"],
    distclass=Compiled,
    cmdclass={"build_py": BuildFiles, "bdist_wheel": Wheel},
)
