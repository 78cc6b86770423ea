# SPDX-License-Identifier: Apache-2.0
"""The stages that one model_deploy command compiles: one for each --mlir, or for each combination of --buckets."""
from __future__ import annotations

import argparse
import itertools
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Iterator, Mapping

from ..errors import usage_error

HOST_CHANGES: Mapping[str, Any] = dict(chip_set=[], strict=False, host_chip=None, opt=None, report=None, layers=None)


@dataclass(frozen=True)
class Variant:
    """One stage. name: for people. changes: of the command's flags."""

    name: str
    changes: Mapping[str, Any] = field(default_factory=dict)

    @contextmanager
    def applied(self, args: argparse.Namespace) -> Iterator[None]:
        """Changes the flags during the block."""
        before = {key: getattr(args, key) for key in self.changes}
        vars(args).update(self.changes)
        try:
            yield
        finally:
            vars(args).update(before)


def parse_buckets(text: str) -> list[tuple[str, list[str]]]:
    """Parses "h=320,640,w=320" to names and sizes; the compiler checks both."""
    found: list[tuple[str, list[str]]] = []
    for part in text.split(","):
        name, equals, size = part.rpartition("=")
        if equals:
            found.append((name, []))
        if not found or not size:
            raise usage_error(f"--buckets {text}: expected NAME=SIZE,SIZE,…, e.g. batch=1,4,8, not '{part}'")
        found[-1][1].append(size)
    return found


def variants(args: argparse.Namespace) -> list[Variant]:
    """Returns the stages in the order in which a run looks for one that fits its inputs."""
    if not args.buckets:
        return [Variant(mlir, {"mlir": mlir}) for mlir in args.mlirs]
    dims = parse_buckets(args.buckets)
    found = []
    for index, sizes in enumerate(itertools.product(*(each for _, each in dims))):
        name = ",".join(f"{dim}<={size}" for (dim, _), size in zip(dims, sizes))
        found.append(Variant(name, {"bucket": index}))
    if args.beyond_buckets:
        name = f"any size on {args.beyond_buckets}"
        found.append(Variant(name, {**HOST_CHANGES, "chip": args.beyond_buckets, "buckets": None}))
    return found
