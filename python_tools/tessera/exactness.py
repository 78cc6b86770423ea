# SPDX-License-Identifier: Apache-2.0
"""Bit-exactness of a model on all engines, as determined by the compiler and stored in the .bmodel
(docs/numerics.md)."""
from __future__ import annotations

from typing import Any, Mapping, Sequence

SHOWN = 5  # largest number of node names in a message


def of_properties(properties: Sequence[Mapping[str, str]]) -> list[str] | None:
    """Returns the nodes that a file lists as exceptions; None if the file promises nothing, as for a float model or an
    older file."""
    exceptions = [entry.get("value", "") for entry in properties if entry["key"] == "bit_equal_except"]
    return exceptions if exceptions or any(entry["key"] == "bit_equal" for entry in properties) else None


def of_file(model: Mapping[str, Any]) -> list[str] | None:
    """Returns of_properties() of a model as described by bmodel-dump."""
    return of_properties(model.get("properties", []))


def describe(exceptions: Sequence[str]) -> str:
    """Returns one line for people."""
    if not exceptions:
        return "bit-equal on all chips and instruction sets"
    more = f" and {len(exceptions) - SHOWN} more" if len(exceptions) > SHOWN else ""
    names = ", ".join(f"'{name}'" for name in exceptions[:SHOWN])
    return (
        f"bit-equal on all chips and instruction sets except {len(exceptions)} "
        f"op{'s' * (len(exceptions) > 1)} whose sums stay in float ({names}{more}) and their readers"
    )
