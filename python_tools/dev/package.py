#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""./dev package: builds Debian packages, wheels and the source archive, in dist/.

    libbmrt0 libbmrt-dev tessera-tools   by CPack (cmake/TesseraPackage.cmake)
    tessera-runtime                      a wheel for each Python: Debian's, and those named by --python
    tessera                              one wheel: the commands and the compiler
    tessera-VERSION.tar.gz               the sources

If auditwheel is installed (.venv-package), wheels get the tag of the oldest Linux on which they run, else a tag that
pip accepts only on this machine. A file beyond its size limit is an error.
"""
from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
TARGETS: tuple[str, ...] = (
    "tessera-compile-static",
    "bmrt",
    "bmrt_npu",
    "bmrt_cuda",
    "bmrt_bench",
    "bmrt_peak",
    "bmodel-combine",
    "bmodel-dump",
)
TARGETS += ("npu-perf", "npu-describe", "tessera_runtime_module", "tessera_calibration_module")
MODULES = ("tessera_runtime_module", "tessera_calibration_module", "bmrt_cuda")
# Megabytes: download, installed.
LIMITS = {"tessera_runtime": (3, 10), "tessera": (120, 350)}


def run(*command: object, cwd: Path = ROOT, **environment: str) -> str:
    """Runs a command and returns its output; exits if it fails."""
    result = subprocess.run(
        [str(word) for word in command],
        cwd=cwd,
        env={**os.environ, "PYTHONPATH": "", **environment},
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )
    if result.returncode != 0:
        raise SystemExit(f"{result.stdout[-4000:]}\npackage: failed to run {' '.join(map(str, command))}")
    return result.stdout


def stage_sources(folder: Path) -> None:
    """Copies the files in git, because setuptools writes beside its sources."""
    listing = subprocess.run(
        ["git", "ls-files", "-co", "--exclude-standard", "-z"], cwd=ROOT, check=True, capture_output=True
    ).stdout.decode()
    for name in filter(None, listing.split("\0")):
        if (ROOT / name).is_file():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, folder / name)


def make_wheel(project: Path, build: Path, output: Path, **environment: str) -> Path:
    """Builds the wheel of a staged project from the contents of `build`."""
    output.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as fresh:
        words = ("--no-build-isolation", "--no-deps", "--no-index", "-q", "-w", fresh)
        run(
            sys.executable,
            "-m",
            "pip",
            "wheel",
            *words,
            ".",
            cwd=project,
            TESSERA_WHEEL_PREBUILT=str(build),
            **environment,
        )
        for result in (project / "build", *project.glob("**/*.egg-info")):  # else the next wheel contains its files
            shutil.rmtree(result, ignore_errors=True)
        wheel = next(Path(fresh).glob("*.whl"))
        return Path(shutil.move(str(wheel), output / wheel.name))


def repair(wheel: Path) -> Path:
    """Returns the wheel with a manylinux tag, if auditwheel is available."""
    tool = Path(sys.executable).with_name("auditwheel")
    if not tool.exists():
        return wheel
    with tempfile.TemporaryDirectory() as fresh:
        path = f"{tool.parent}{os.pathsep}{os.environ['PATH']}"
        run(tool, "repair", "--strip", "-w", fresh, wheel, PATH=path)
        done = next(Path(fresh).glob("*.whl"))
        wheel.unlink()
        return Path(shutil.move(str(done), wheel.parent / done.name))


def build_all(build: Path) -> None:
    run("cmake", "--preset", "package", "-B", build, "-DPython3_EXECUTABLE=/usr/bin/python3")
    run("ninja", "-C", build, *TARGETS)


def modules_for(python: str) -> Path:
    """Returns a build folder with the modules for another Python; ccache holds everything except the modules
    themselves."""
    version = run(python, "-c", "import sys; print('%d%d' % sys.version_info[:2])").strip()
    headers = run(sys.executable, "-c", "import pybind11; print(pybind11.get_cmake_dir())").strip()
    folder = ROOT / "build" / f"package-cp{version}"
    flags = ["-DTESSERA_BUILD_COMPILER=OFF", f"-DPython3_EXECUTABLE={python}", f"-Dpybind11_DIR={headers}"]
    run("cmake", "--preset", "package", "-B", folder, *flags)
    run("ninja", "-C", folder, *MODULES)
    return folder


def debs(build: Path, output: Path) -> list[Path]:
    shutil.rmtree(build / "packages", ignore_errors=True)
    run("cpack", "-G", "DEB", cwd=build)
    return [Path(shutil.copy2(package, output)) for package in sorted((build / "packages").glob("*.deb"))]


def size(path: Path) -> tuple[float, float]:
    """Returns the megabytes to download and, for wheels, installed."""
    unpacked = sum(entry.file_size for entry in zipfile.ZipFile(path).infolist()) if path.suffix == ".whl" else 0
    return path.stat().st_size / 1e6, unpacked / 1e6


def print_report(files: list[Path]) -> bool:
    """Prints the sizes; returns true if all are within their limits."""
    good = True
    for path in files:
        download, installed = size(path)
        limit = LIMITS.get(path.name.split("-")[0]) if path.suffix == ".whl" else None
        beyond = limit is not None and (download > limit[0] or installed > limit[1])
        good &= not beyond
        print(
            f"{path.name:66} {download:7.2f} MB"
            + (f", {installed:6.1f} MB installed" if installed else "")
            + (f"  BEYOND {limit[0]} MB, {limit[1]} MB" if beyond and limit else "")
        )
    return good


def main() -> int:
    parser = argparse.ArgumentParser(prog="./dev package", description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument("--build", type=Path, metavar="DIR", help="use this folder's programs (default: build them)")
    parser.add_argument(
        "--python", action="append", default=[], help="another Python (3.9 to 3.13) to build a wheel for"
    )
    parser.add_argument(
        "--try", action="store_true", dest="attempt", help="also install them into a bare Debian and run the examples"
    )
    parser.add_argument("-o", "--output", type=Path, default=ROOT / "dist", help="output folder (default: dist/)")
    args = parser.parse_args()
    build, output = (args.build or ROOT / "build" / "package").absolute(), args.output.absolute()
    if args.build is None:
        build_all(build)
    else:
        run("ninja", "-C", build, *TARGETS)
    shutil.rmtree(output, ignore_errors=True)
    output.mkdir(parents=True)
    files = debs(build, output)
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder, "source")
        stage_sources(source)
        for modules in (build, *(modules_for(python) for python in args.python)):
            files.append(repair(make_wheel(source / "bmruntime" / "python", modules, output)))
        files.append(repair(make_wheel(source, build, output)))
        run(sys.executable, "setup.py", "-q", "sdist", "-d", output, cwd=source)
    files += output.glob("*.tar.gz")
    if not print_report(files):
        return 1
    attempt = [sys.executable, str(ROOT / "python_tools" / "dev" / "try_packages.py"), str(output)]
    return subprocess.run(attempt).returncode if args.attempt else 0


if __name__ == "__main__":
    sys.exit(main())
