# SPDX-License-Identifier: Apache-2.0
"""Tessera: compile trained networks into .bmodel files and run them.

`tessera.runtime` runs a .bmodel; the commands are in `tessera.cli`, and as functions in `tessera.api`: compile,
calibrate, estimate and accuracy, also by these names here.
"""
__version__ = "0.1.0"
_API = ("accuracy", "calibrate", "compile", "estimate")


def __getattr__(name: str):  # type: ignore[no-untyped-def]
    """Imports the compiler's functions on first use: the runtime alone is installed without them."""
    if name not in _API:
        raise AttributeError(f"module 'tessera' has no attribute '{name}'")
    from . import api

    return getattr(api, name)
