# SPDX-License-Identifier: Apache-2.0
"""Console scripts of the wheel for programs that are not Python; the process becomes the program of its name."""
from __future__ import annotations

import os
import sys

from ..errors import TesseraError
from ..programs import find_program
from .common import print_error


def main() -> int:
    """Replaces this process by the program; returns only if the program is missing."""
    name = os.path.basename(sys.argv[0])
    try:
        path = find_program(name)
    except TesseraError as error:
        print_error(name, error)
        return int(error.code)
    os.execv(path, [name, *sys.argv[1:]])
