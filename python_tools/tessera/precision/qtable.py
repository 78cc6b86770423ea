# SPDX-License-Identifier: Apache-2.0
"""The quantise table NAME_qtable.json: one line per op with its precision and the reason, meant to be edited.

    {"format": "tessera-quantize-table", "version": 1, "model": "m", "tool": "tessera 0.1.0",
     "ops": [
      {"name": "Conv_3", "type": "F32", "reason": "..."}
     ]}

The compiler reads it (quant/Transforms/Tables/QuantizeTable.h) and checks types and names.
"""
from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Sequence

from .. import __version__
from ..errors import TesseraError
from ..files import atomic_write, load_json

FORMAT, VERSION = "tessera-quantize-table", 1


@dataclass(frozen=True)
class Line:
    name: str
    type: str
    reason: str = ""


def save(path: str | Path, model: str, lines: Sequence[Line]) -> None:
    """Writes one op per line, so that tables can be compared with diff."""
    head = {"format": FORMAT, "version": VERSION, "model": model, "tool": f"tessera {__version__}"}
    records = [
        {"name": line.name, "type": line.type, **({"reason": line.reason} if line.reason else {})} for line in lines
    ]
    body = ",\n".join("  " + json.dumps(record, ensure_ascii=False) for record in records)
    with atomic_write(path) as file:
        file.write(
            (json.dumps(head, indent=1)[:-2] + ',\n "ops": [\n' + body + ("\n" if body else "") + " ]\n}\n").encode()
        )


def load(path: str | Path) -> list[Line]:
    """Reads the lines. Raises TesseraError if the file is not such a table; the compiler checks the contents."""
    document = load_json(path, "quantise table")
    try:
        if document["format"] != FORMAT or document["version"] != VERSION:
            raise ValueError(f'"format" is not "{FORMAT}", or "version" not {VERSION}')
        return [Line(str(op["name"]), str(op["type"]), str(op.get("reason", ""))) for op in document["ops"]]
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise TesseraError(f"{path} is not a quantise table: {type(error).__name__}: {error}") from error
