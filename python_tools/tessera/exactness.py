# SPDX-License-Identifier: Apache-2.0
"""Whether all engines give a model's integers to the bit, as the compiler found and the .bmodel says
(docs/numerics.md)."""
from __future__ import annotations

from typing import Any, Mapping, Sequence

SHOWN = 5  # names of nodes


def of_properties(properties: Sequence[Mapping[str, str]]) -> list[str] | None:
    """The nodes that a file names as exceptions; None where it promises nothing, as for a float model or an older
    file."""
    exceptions = [entry.get("value", "") for entry in properties if entry["key"] == "bit_equal_except"]
    return exceptions if exceptions or any(entry["key"] == "bit_equal" for entry in properties) else None


def of_file(model: Mapping[str, Any]) -> list[str] | None:
    """of_properties() of a model as bmodel-dump tells it."""
    return of_properties(model.get("properties", []))


def describe(exceptions: Sequence[str]) -> str:
    """One line for people."""
    if not exceptions:
        return "bit-equal on all chips and instruction sets"
    more = f" and {len(exceptions) - SHOWN} more" if len(exceptions) > SHOWN else ""
    names = ", ".join(f"'{name}'" for name in exceptions[:SHOWN])
    return (
        f"bit-equal on all chips and instruction sets except {len(exceptions)} "
        f"op{'s' * (len(exceptions) > 1)} whose sums stay float ({names}{more}) and what reads them"
    )
