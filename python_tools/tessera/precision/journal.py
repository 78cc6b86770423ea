# SPDX-License-Identifier: Apache-2.0
"""Measurements of a search, written to a file as they are made, so that an interrupted search can continue."""
from __future__ import annotations

import contextlib
import hashlib
import json
from pathlib import Path
from typing import IO, Any, Mapping

from ..files import atomic_write


class Journal:
    """A file with one JSON object per line. identity: everything that the measurements depend on; a file with another
    identity is started anew."""

    def __init__(self, path: Path, identity: str) -> None:
        self.path = path
        self._digest = hashlib.sha256(identity.encode(errors="surrogateescape")).hexdigest()
        self._known: dict[str, Any] = {}
        self._file: IO[str] | None = None
        self.resumed = 0

    def __enter__(self) -> "Journal":
        self._known = self._read()
        self.resumed = len(self._known)
        records = [{"identity": self._digest}, *({"key": key, "value": value} for key, value in self._known.items())]
        with atomic_write(self.path) as file:  # rewritten, because the last line may be incomplete
            file.write("".join(json.dumps(record) + "\n" for record in records).encode())
        self._file = open(self.path, "a", encoding="utf-8")
        return self

    def __exit__(self, *unused: object) -> None:
        assert self._file is not None
        self._file.close()

    def get(self, kind: str, types: Mapping[str, str]) -> Any:
        """Returns the measurement, or None."""
        return self._known.get(_key(kind, types))

    def put(self, kind: str, types: Mapping[str, str], value: Any) -> None:
        key = _key(kind, types)
        self._known[key] = value
        assert self._file is not None
        self._file.write(json.dumps({"key": key, "value": value}) + "\n")
        self._file.flush()

    def _read(self) -> dict[str, Any]:
        known: dict[str, Any] = {}
        with contextlib.suppress(OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
            with open(self.path, encoding="utf-8") as file:
                if json.loads(next(file, "{}")).get("identity") != self._digest:
                    return {}
                for line in file:
                    record = json.loads(line)
                    known[record["key"]] = record["value"]
        return known


def _key(kind: str, types: Mapping[str, str]) -> str:
    text = json.dumps(sorted(types.items()))
    return f"{kind} {hashlib.blake2b(text.encode(), digest_size=12).hexdigest()}"
