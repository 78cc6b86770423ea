# SPDX-License-Identifier: Apache-2.0
"""Libraries of custom operators that the user names: with --custom_ops, or in the environment variable.

Both tessera-compile, a child process, and tessera.runtime read the variable. A model file never names a library.
"""
from __future__ import annotations

import argparse
import contextlib
import os
from typing import Iterator, Sequence

VARIABLE = "TESSERA_CUSTOM_OPS"


def add_argument(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--custom_ops",
        nargs="+",
        action="extend",
        default=[],
        metavar="LIBRARY",
        help="shared libraries of operators that Tessera does not know (docs/custom-operators.md). Their code runs in "
        f"this command; those in the environment variable {VARIABLE}, separated by colons, are loaded as well",
    )


@contextlib.contextmanager
def named(libraries: Sequence[str]) -> Iterator[None]:
    """Adds `libraries` to the variable during the block."""
    before = os.environ.get(VARIABLE)
    if libraries:
        paths = [os.path.abspath(library) for library in libraries]
        os.environ[VARIABLE] = os.pathsep.join([before, *paths] if before else paths)
    try:
        yield
    finally:
        if before is None:
            os.environ.pop(VARIABLE, None)
        else:
            os.environ[VARIABLE] = before
