# SPDX-License-Identifier: Apache-2.0
"""Copies of arrays beside memory that ends the process when it is touched."""
from __future__ import annotations

import ctypes
import mmap

import numpy as np

_MPROTECT = ctypes.CDLL(None, use_errno=True).mprotect
_MPROTECT.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int)
_NOTHING = 0  # PROT_NONE


def guarded(array: np.ndarray, at_end: bool = True) -> np.ndarray:
    """Returns a copy that ends right before an inaccessible page, so that it is aligned to its elements only. Without
    `at_end`, the copy begins right after an inaccessible page."""
    page = mmap.PAGESIZE
    inside = max(page, -(-array.nbytes // page) * page)
    memory = mmap.mmap(-1, inside + 2 * page, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    whole = np.frombuffer(memory, np.uint8)
    for begin in (0, page + inside):
        if _MPROTECT(whole.ctypes.data + begin, page, _NOTHING) != 0:
            raise OSError(ctypes.get_errno(), "mprotect failed")
    begin = page + (inside - array.nbytes if at_end else 0)
    copy = whole[begin : begin + array.nbytes].view(array.dtype).reshape(array.shape)
    copy[...] = array
    return copy
