# SPDX-License-Identifier: Apache-2.0
"""Builds the C++ parts with CMake and puts them into the wheel.

tessera/bin: the programs; tessera/lib: the shared libraries they need that a plain Linux lacks (LLVM,
MLIR, protobuf, …), found through an rpath relative to the program; tessera/_runtime*.so: the module.

TESSERA_WHEEL_PREBUILT=DIR takes the programs of a finished build folder instead and bundles no
libraries: a wheel for this machine only, made in seconds, for the tests of the packaging.
"""
from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext

ROOT = Path(__file__).resolve().parent
PROGRAMS = ("tessera-compile", "bmodel-combine", "bmodel-dump", "npu-perf", "bmrt_bench")
TARGETS = (*PROGRAMS, "tessera_runtime_module", "tessera_calibration_module")
# On every Linux that runs Python, or tied to its C library: never bundled.
SYSTEM = re.compile(
    r"^(?:linux-vdso|ld-linux|libc|libm|libdl|librt|libpthread|libstdc\+\+|libgcc_s|libutil|libresolv)\b"
)


class CMakeExtension(Extension):
    """Stands for everything CMake builds."""

    def __init__(self) -> None:
        super().__init__("tessera._runtime", sources=[])


class CMakeBuild(build_ext):
    def build_extension(self, ext: Extension) -> None:
        package = Path(self.get_ext_fullpath(ext.name)).resolve().parent
        prebuilt = os.environ.get("TESSERA_WHEEL_PREBUILT")
        build = Path(prebuilt) if prebuilt else self._build()
        (package / "bin").mkdir(parents=True, exist_ok=True)
        for program in PROGRAMS:
            shutil.copy2(build / "bin" / program, package / "bin" / program)
            subprocess.run(["strip", str(package / "bin" / program)], check=False)
        # The runtime's Python source lies with the runtime; in the wheel it is part of the package.
        for source in (ROOT / "bmruntime" / "python" / "tessera").glob("*.py"):
            shutil.copy2(source, package / source.name)
        for module in (build / "python" / "tessera").glob("_*.so"):
            shutil.copy2(module, package / module.name)
            subprocess.run(["strip", str(package / module.name)], check=False)
        if not prebuilt:
            self._bundle(build / "bin" / "tessera-compile", package / "lib")

    @staticmethod
    def _build() -> Path:
        """Runs CMake; returns the build folder."""
        build = Path(os.environ.get("TESSERA_WHEEL_BUILD_DIR", ROOT / "build" / "wheel"))
        # DT_RPATH and not DT_RUNPATH: it also serves the libraries that the libraries need.
        link = "-fuse-ld=lld-22 -Wl,--disable-new-dtags"
        subprocess.run(
            [
                "cmake",
                "--preset",
                "release",
                "-B",
                str(build),
                f"-DPython3_EXECUTABLE={sys.executable}",
                "-DTESSERA_BUILD_TESTS=OFF",
                "-DCMAKE_BUILD_RPATH=$ORIGIN/../lib",
                f"-DCMAKE_EXE_LINKER_FLAGS={link}",
            ],
            cwd=ROOT,
            check=True,
        )
        subprocess.run(["cmake", "--build", str(build), "--target", *TARGETS], cwd=ROOT, check=True)
        return build

    @staticmethod
    def _bundle(program: Path, folder: Path) -> None:
        """Copies the shared libraries `program` needs that a plain system lacks."""
        folder.mkdir(parents=True, exist_ok=True)
        listing = subprocess.run(["ldd", str(program)], check=True, capture_output=True, text=True).stdout
        for name, path in re.findall(r"^\s*(\S+) => (/\S+)", listing, re.MULTILINE):
            if not SYSTEM.match(name):
                shutil.copy2(os.path.realpath(path), folder / name)


setup(ext_modules=[CMakeExtension()], cmdclass={"build_ext": CMakeBuild})
