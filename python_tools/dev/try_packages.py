#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""./dev package --try: installs the contents of dist/ into a bare Debian and runs the demo and the examples there.

A Debian with only its base packages is unpacked by debootstrap (which requires root and a Debian mirror) once, as
build/package-base.tar. In a copy of it, the Debian packages are installed by apt, the demo and the examples run, C++ is
compiled by g++ and clang, and the packages are purged, which must not leave new files. In a second copy, the wheels are
installed into a virtual environment, without and with the compiler; numpy and pillow are downloaded from PyPI outside.
"""
from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
MIRROR = "http://deb.debian.org/debian"
SUITE = "bookworm"
# Additional requirements of the examples and the demo: compilers, and packages for pictures.
BUILD_TOOLS = "g++ clang cmake make pkg-config".split()
EXAMPLES = "c cpp server camera several-models calibration scorer own-chip".split()
ENVIRONMENT = {
    "PATH": "/usr/sbin:/usr/bin:/sbin:/bin",
    "HOME": "/root",
    "LANG": "C.UTF-8",
    "DEBIAN_FRONTEND": "noninteractive",
}
# Paths written by apt, dpkg and programs that they call for any package, and working folders.
PASSING = ("var/", "tmp/", "root/", "proc/", "sys/", "dev/", "run/", "etc/ld.so.cache", "work/", "etc/apt/")


class Root:
    """A separate Debian in which commands run by chroot."""

    def __init__(self, base: Path, folder: Path) -> None:
        self.folder = folder
        run("tar", "-xpf", base, "-C", folder)
        shutil.copy("/etc/resolv.conf", folder / "etc" / "resolv.conf")
        self.shell("mount -t proc proc /proc")

    def shell(self, command: str) -> str:
        return run("chroot", self.folder, "sh", "-ec", command, environment=ENVIRONMENT)

    def files(self) -> set[str]:
        listing = self.shell("find / -xdev ! -type d").splitlines()
        return {name[1:] for name in listing if not name[1:].startswith(PASSING)}

    def close(self) -> None:
        self.shell("umount /proc")
        shutil.rmtree(self.folder)


def run(*command: object, environment: dict[str, str] | None = None) -> str:
    """Runs a command and returns its output; exits if it fails."""
    words = [str(word) for word in command]
    result = subprocess.run(
        words, env=environment or dict(os.environ), text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    )
    if result.returncode != 0:
        raise SystemExit(f"{result.stdout[-4000:]}\ntry_packages: failed to run {' '.join(words)}")
    return result.stdout


def base_system(cache: Path) -> Path:
    """Returns the archive of the bare Debian, creating it if necessary."""
    if not cache.exists():
        with tempfile.TemporaryDirectory() as folder:
            run("debootstrap", "--variant=minbase", SUITE, folder, MIRROR)
            run("tar", "-cpf", cache.with_suffix(".begun"), "-C", folder, ".")
        cache.with_suffix(".begun").rename(cache)
    return cache


def provide(root: Root, dist: Path) -> None:
    """Copies packages, examples, models and the demo, but no build results."""
    shutil.copytree(dist, root.folder / "work" / "dist")
    for name in ("examples", "regression/models", "regression/demo"):
        shutil.copytree(ROOT / name, root.folder / "work" / name, dirs_exist_ok=True)


def run_examples(root: Root, names: list[str], before: str = "") -> None:
    for name in names:
        command = f"{before} mkdir -p /tmp/{name}; cd /tmp/{name}; "
        command += f"/work/examples/{name}/run.sh 2>errors || (cat errors; exit 1)"
        printed = root.shell(command)
        if printed != (ROOT / "examples" / name / "expected.txt").read_text(encoding="utf-8"):
            raise SystemExit(f"{printed}\ntry_packages: the example {name} printed unexpected output")
        print(f"  example {name}: ok")


def try_debs(root: Root) -> None:
    root.shell("apt-get update -qq; apt-get install -y -qq --no-install-recommends ca-certificates")
    bare = root.files()
    root.shell("apt-get install -y -qq --no-install-recommends /work/dist/libbmrt0_*.deb")
    print("libbmrt0:", root.shell("dpkg-query -W -f '${Installed-Size} KiB, needs ${Depends}' libbmrt0"))
    root.shell("apt-get purge -y -qq libbmrt0")
    check_left(root, bare, "libbmrt0")

    tools = " ".join([*BUILD_TOOLS, "python3-numpy", "python3-pil", "libonnx1", "libprotobuf32"])
    root.shell(f"apt-get install -y -qq --no-install-recommends {tools}")
    before = root.files()
    root.shell("apt-get install -y -qq --no-install-recommends /work/dist/*.deb")
    demo = "TESSERA_BUILD_DIR=/opt/b python3 /work/regression/demo/demo.py"
    printed = root.shell(f"mkdir -p /opt/b; ln -sfn /usr/bin /opt/b/bin; {demo}")
    print("  demo:", printed.splitlines()[-1])
    run_examples(root, EXAMPLES)
    for compiler in ("g++", "clang++"):
        configure = f"cmake -S /work/examples/cpp -B /tmp/{compiler} -DCMAKE_CXX_COMPILER={compiler}"
        root.shell(f"{configure}; cmake --build /tmp/{compiler}")
        print(f"  find_package(Tessera), {compiler}: builds")
    root.shell("rm -rf /opt/b; apt-get purge -y -qq tessera-tools libbmrt-dev libbmrt0")
    check_left(root, before, "all packages")


def check_left(root: Root, before: set[str], what: str) -> None:
    left = sorted(root.files() - before)
    if left:
        raise SystemExit(f"try_packages: uninstalling {what} leaves {len(left)} files: {', '.join(left[:10])}")
    print(f"  uninstalling {what}: no file is left")


def try_wheels(root: Root) -> None:
    root.shell("apt-get update -qq; apt-get install -y -qq --no-install-recommends python3-venv ca-certificates")
    run(sys.executable, "-m", "pip", "download", "-q", "-d", root.folder / "work" / "dist", "numpy", "pillow")
    root.shell("python3 -m venv /opt/v")
    pip = "/opt/v/bin/pip -q --disable-pip-version-check"
    install = f"{pip} install --no-index --find-links /work/dist"
    root.shell(f"{install} tessera-runtime")
    root.shell("cd /tmp; /opt/v/bin/python -c 'import tessera.runtime'")
    kib = root.shell("du -sk /opt/v/lib/python3.11/site-packages/tessera | cut -f1").strip()
    print(f"tessera-runtime: {kib} KiB installed")
    root.shell(f"{install} tessera")
    within = "export PATH=/opt/v/bin:$PATH;"
    printed = root.shell(f"{within} TESSERA_BUILD_DIR=/opt/v python3 /work/regression/demo/demo.py")
    print("  demo:", printed.splitlines()[-1])
    run_examples(root, [name for name in EXAMPLES if name not in ("c", "cpp")], within)
    root.shell(f"{pip} uninstall -y tessera tessera-runtime")
    left = root.shell("find /opt/v -iname '*tessera*'").split()
    if left:
        raise SystemExit(f"try_packages: uninstalling the wheels leaves {', '.join(left)}")
    print("  uninstalling the wheels: no file is left")


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument("dist", type=Path, nargs="?", default=ROOT / "dist")
    parser.add_argument(
        "--base", type=Path, default=ROOT / "build" / "package-base.tar", help="archive of the bare Debian"
    )
    parser.add_argument("--only", choices=("debs", "wheels"), help="test only one kind")
    args = parser.parse_args()
    if os.geteuid() != 0 or shutil.which("debootstrap") is None:
        print("try_packages: skipped: requires root and debootstrap")
        return 0
    base = base_system(args.base)
    attempts = {"debs": try_debs, "wheels": try_wheels}
    for attempt in [attempts[args.only]] if args.only else attempts.values():
        root = Root(base, Path(tempfile.mkdtemp(prefix="tessera-root-")))
        try:
            provide(root, args.dist)
            attempt(root)
        finally:
            root.close()
    return 0


if __name__ == "__main__":
    sys.exit(main())
