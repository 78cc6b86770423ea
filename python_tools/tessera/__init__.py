# SPDX-License-Identifier: Apache-2.0
"""Tessera: compile trained networks into .bmodel files and run them.

`tessera.runtime` runs a .bmodel. The commands are in `tessera.cli`; `tessera.api` offers them as functions, of which
compile, calibrate, estimate and accuracy are also available here.
"""
__version__ = "0.1.0"
_API = ("accuracy", "calibrate", "compile", "estimate")


def __getattr__(name: str):  # type: ignore[no-untyped-def]
    """Imports the compiler's functions on first use: the runtime alone is installed without them."""
    if name not in _API:
        raise AttributeError(f"module 'tessera' has no attribute '{name}'")
    from . import api

    return getattr(api, name)
