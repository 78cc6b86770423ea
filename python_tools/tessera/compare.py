# SPDX-License-Identifier: Apache-2.0
"""Compares tensors with a reference: metrics, tolerance, verdict, table.

Metrics of `e = got - ref`: cosine; relative L2 error |e|/|ref|; SQNR = 20·log10(|ref|/|e|) in dB; max|e|, absolute and
as a fraction of the reference's range max(ref)-min(ref). `euclid` of a tolerance is the similarity 1 - relative L2
error. Own error: relative L2 error of an op's result for exact operands; errors of independent origin add up as
squares, so its share is (own/whole)². NaN and infinity are counted, never left out silently: they must occur at the
same positions on both sides.
"""
from __future__ import annotations

import csv
import io
import math
from dataclasses import asdict, dataclass, field
from typing import Collection, Iterable, Mapping, Sequence

import numpy as np

from .errors import ExitCode, TesseraError, usage_error

# Two units in the last place of 1.0 in float32: functions with results in [0,1] differ by this much anyway.
FLOAT32_FLOOR = 2.0**-22
CHANNEL_GROUPS, WORST = 32, 5
MOST_BY_CHANNEL = 1 << 23  # elements; errors by channel are not reported for larger tensors
_CHUNK = 1 << 13  # elements processed at once: their float64 copies stay in the cache and reuse the same memory


@dataclass(frozen=True)
class Tolerance:
    """The limits for a tensor; None: no limit.

    cosine, euclid: at least this. max_of_range: max|e| is at most this fraction of the reference's range. floor: a
    tensor whose max|e| is at most this passes whatever the ratios are, and is marked: functions with results in [0,1]
    are exact to about 1e-7 absolutely, not relatively.
    """

    cosine: float | None = 0.99
    euclid: float | None = 0.99
    max_of_range: float | None = None
    floor: float = 0.0

    @staticmethod
    def parse(text: str, floor: float = 0.0) -> "Tolerance":
        """Parses 'cos' or 'cos,euclid', e.g. '0.999,0.99'. Raises a usage error."""
        try:
            values = [float(part) for part in text.split(",")]
        except ValueError:
            values = []
        if not 1 <= len(values) <= 2 or any(not -1 <= v <= 1 for v in values):
            raise usage_error(
                f"--tolerance '{text}': expected 'cosine' or 'cosine,euclid', each at most 1, " "e.g. 0.999,0.99"
            )
        return Tolerance(values[0], values[1] if len(values) == 2 else None, floor=floor)

    def __str__(self) -> str:
        parts = []
        if self.cosine is not None:
            parts.append(f"cos >= {self.cosine:g}")
        if self.euclid is not None:
            parts.append(f"euclid >= {self.euclid:g}")
        if self.max_of_range is not None:
            parts.append(f"max|e| <= {self.max_of_range:g} of range")
        return ", ".join(parts) or "none"


@dataclass
class Row:
    """The comparison of one tensor. If shapes differ, the metrics are NaN and `passed` is False."""

    name: str
    shape: tuple[int, ...]
    dtype: str
    place: int = 0  # in the order of computation
    cosine: float = math.nan
    rel_l2: float = math.nan
    sqnr_db: float = math.nan
    max_abs: float = math.nan
    max_of_range: float = math.nan
    own_rel_l2: float = math.nan  # of the op's result for exact operands; NaN if unknown
    non_finite: int = 0  # NaN or infinity on either side
    non_finite_differs: int = 0  # of these, positions where the two sides disagree
    passed: bool = False
    missed: tuple[str, ...] = ()  # the metrics outside the tolerance: "cos", "euclid", "max|e|", "NaN/inf"
    excuse: str = ""  # why a tensor outside the tolerance is not a fault
    note: str = ""
    channels: tuple[float, ...] = ()  # the worst of each of at most CHANNEL_GROUPS groups of neighbours: see _channels
    worst_channels: tuple[tuple[int, float], ...] = ()

    @property
    def euclid(self) -> float:
        return 1.0 - self.rel_l2

    @property
    def shape_differs(self) -> bool:
        """True if the two sides could not be compared element by element."""
        return math.isnan(self.cosine)

    @property
    def own_share(self) -> float:
        """Share of the squared error that the op and its rounding add; the rest is inherited. NaN if unknown."""
        if math.isnan(self.own_rel_l2) or not self.rel_l2 > 0:
            return math.nan
        return min(1.0, (self.own_rel_l2 / self.rel_l2) ** 2)


@dataclass
class Comparison:
    """All rows of one comparison, the worst first, and the names present on only one side."""

    rows: list[Row]
    tolerance: Tolerance
    missing: list[str] = field(default_factory=list)  # in the reference, not in the tested tensors
    extra: list[str] = field(default_factory=list)  # in the tested tensors, not in the reference
    excepted: list[str] = field(default_factory=list)  # left out at the user's request

    @property
    def failed(self) -> list[Row]:
        """Rows outside the tolerance without an excuse."""
        return [row for row in self.rows if not row.passed and not row.excuse]

    @property
    def excused(self) -> list[Row]:
        return [row for row in self.rows if not row.passed and row.excuse]

    @property
    def passed(self) -> bool:
        """True if at least one tensor was compared and all passed."""
        return bool(self.rows) and not self.failed

    def require_rows(self, what: str) -> None:
        """Raises TesseraError if nothing was compared, which is never a success."""
        if not self.rows:
            raise TesseraError(
                f"{what}: nothing was compared: the two sides have no tensor name in common",
                details=[
                    f"only in the reference: {_shorten(self.missing)}",
                    f"only in the result: {_shorten(self.extra)}",
                ],
                hint="list the names of both files with 'npz_tool dump FILE'",
            )

    def require_passed(self, what: str, outputs: Sequence[str] = (), reason: str = "") -> None:
        """Raises TesseraError with exit code 3 if a tensor is outside the tolerance. outputs: the network's, to report
        which of them differ. reason: the known cause."""
        self.require_rows(what)
        if not self.failed:
            return
        worst = self.failed[0]
        details = [f"cause: {reason}"] if reason else []
        if outputs:
            affected = [f"'{row.name}' ({describe(row)})" for row in self.failed if row.name in outputs]
            details.append(
                f"outputs outside: {', '.join(affected)}"
                if affected
                else "no output is outside: only tensors inside the network differ"
            )
        raise TesseraError(
            f"{what}: {len(self.failed)} of {len(self.rows)} tensors are outside the tolerance "
            f"({self.tolerance}); the worst is '{worst.name}': {describe(worst)}",
            ExitCode.ACCURACY,
            details=details,
            hint="'tessera reduce' finds the smallest network that shows it; --excepts leaves tensors out, --tolerance "
            "sets another limit",
        )

    def as_dict(self) -> dict[str, object]:
        return {
            "passed": self.passed,
            "tolerance": asdict(self.tolerance),
            "compared": len(self.rows),
            "failed": len(self.failed),
            "excused": len(self.excused),
            "missing": self.missing,
            "extra": self.extra,
            "excepted": self.excepted,
            "tensors": [row_dict(row) for row in self.rows],
        }


def row_dict(row: Row) -> dict[str, object]:
    """Converts a row for JSON: NaN metrics become null, infinities strings."""

    def clean(value: object) -> object:
        if isinstance(value, float) and not math.isfinite(value):
            return None if math.isnan(value) else str(value)
        return value

    return {key: clean(value) for key, value in {**asdict(row), "euclid": row.euclid}.items()}


def describe(row: Row) -> str:
    """Describes one row in words."""
    if row.note and math.isnan(row.cosine):
        return row.note
    text = f"cos {row.cosine:.7f}, euclid {row.euclid:.4g}, max|e| {row.max_abs:.3g}"
    if row.missed:
        text += f", outside by {', '.join(row.missed)}"
    return f"{text}; {row.note}" if row.note else text


def compare_tensor(name: str, got: np.ndarray, ref: np.ndarray, tolerance: Tolerance) -> Row:
    """Compares one tensor; shapes must be equal, types may differ (values are compared as float64)."""
    row = Row(name, tuple(ref.shape), str(ref.dtype))
    if got.shape != ref.shape:
        row.note = f"shape {list(got.shape)} instead of {list(ref.shape)}"
        return row
    if got.dtype != ref.dtype:
        row.note = f"type {got.dtype} instead of {ref.dtype}"
    if np.iscomplexobj(got) or got.dtype.kind in "OSUV" or ref.dtype.kind in "OSUV":
        row.note = f"type {got.dtype} cannot be compared"
        return row
    _measure(row, np.ravel(got), np.ravel(ref))
    if row.rel_l2 > 0 and not row.non_finite and ref.size <= MOST_BY_CHANNEL:
        _channels(row, got, ref)
    if row.non_finite:
        text = f"{row.non_finite} NaN/inf"
        text += f", {row.non_finite_differs} different on the two sides" if row.non_finite_differs else " on both sides"
        row.note = f"{row.note}; {text}" if row.note else text
    row.missed = _missed(row, tolerance)
    row.passed = not row.missed
    if not row.passed and not row.non_finite_differs and row.max_abs <= tolerance.floor:
        row.passed, row.missed = True, ()
        text = f"max|e| below {tolerance.floor:.1e}"
        row.note = f"{row.note}; {text}" if row.note else text
    return row


def _measure(row: Row, got: np.ndarray, ref: np.ndarray) -> None:
    """Computes the metrics over all positions where both sides are finite."""
    dot = got2 = ref2 = err2 = 0.0
    max_abs, low, high = 0.0, math.inf, -math.inf
    for begin in range(0, ref.size, _CHUNK):
        g = got[begin : begin + _CHUNK].astype(np.float64)
        r = ref[begin : begin + _CHUNK].astype(np.float64)
        finite = np.isfinite(g) & np.isfinite(r)
        if not finite.all():
            odd_g, odd_r = g[~finite], r[~finite]
            row.non_finite += odd_g.size
            same = (odd_g == odd_r) | (np.isnan(odd_g) & np.isnan(odd_r))
            row.non_finite_differs += int(np.count_nonzero(~same))
            g, r = g[finite], r[finite]
        if g.size == 0:
            continue
        e = g - r
        dot += float(g @ r)
        got2 += float(g @ g)
        ref2 += float(r @ r)
        err2 += float(e @ e)
        max_abs = max(max_abs, float(np.abs(e).max()))
        low, high = min(low, float(r.min())), max(high, float(r.max()))
    row.max_abs = max_abs
    if err2 == 0.0:
        row.cosine, row.rel_l2, row.sqnr_db, row.max_of_range = 1.0, 0.0, math.inf, 0.0
        return
    row.cosine = dot / math.sqrt(got2 * ref2) if got2 > 0 and ref2 > 0 else 0.0
    row.rel_l2 = math.sqrt(err2 / ref2) if ref2 > 0 else math.inf
    row.sqnr_db = 10 * math.log10(ref2 / err2) if ref2 > 0 else -math.inf
    # A constant reference has no range; its errors are measured by its magnitude.
    extent = high - low if high > low else abs(high)
    row.max_of_range = max_abs / extent if extent > 0 else math.inf


def _channels(row: Row, got: np.ndarray, ref: np.ndarray) -> None:
    """Fills the errors of the channels, each relative to the average norm of a channel. Channels are the dims of axis
    1; for tensors of rank 3 (tokens), of the last axis."""
    if ref.ndim < 3:
        return
    axis = 2 if ref.ndim == 3 else 1
    others = tuple(i for i in range(ref.ndim) if i != axis)
    error = np.square(got.astype(np.float32) - ref.astype(np.float32)).sum(axis=others, dtype=np.float64)
    whole = float(np.square(ref.astype(np.float32)).sum(dtype=np.float64))
    if not whole > 0:
        return
    relative = np.sqrt(error / (whole / len(error)))
    row.worst_channels = tuple((int(i), float(relative[i])) for i in np.argsort(-relative, kind="stable")[:WORST])
    groups = np.array_split(relative, min(len(relative), CHANNEL_GROUPS))
    row.channels = tuple(float(f"{group.max():.4g}") for group in groups)


def _missed(row: Row, tolerance: Tolerance) -> tuple[str, ...]:
    """Returns the metrics that are outside the tolerance and decide the verdict."""
    if row.non_finite_differs:
        return ("NaN/inf",)
    checks = (("cos", tolerance.cosine, row.cosine), ("euclid", tolerance.euclid, row.euclid))
    missed = tuple(name for name, wanted, value in checks if wanted is not None and not value >= wanted)
    if tolerance.max_of_range is not None and not row.max_of_range <= tolerance.max_of_range:
        missed += ("max|e|",)
    return missed


class Comparing:
    """A comparison of tensors one by one as they are computed, so that none has to be kept."""

    def __init__(self, tolerance: Tolerance, excepts: Iterable[str] = ()) -> None:
        self._tolerance = tolerance
        self._excepted = [name for name in excepts if name]
        self._rows: dict[str, Row] = {}

    def add(self, name: str, got: np.ndarray, ref: np.ndarray) -> None:
        """Compares a tensor; the last one with a name counts."""
        if name not in self._excepted:
            self._rows[name] = compare_tensor(name, got, ref, self._tolerance)
            self._rows[name].place = len(self._rows)

    def result(self, got: Collection[str], ref: Collection[str]) -> Comparison:
        """Returns the comparison of the added tensors, the worst first. got, ref: the names of all tensors on each
        side. An `excepts` name that neither side has is an error, because a misspelt exception would hide nothing."""
        unknown = [name for name in self._excepted if name not in got and name not in ref]
        if unknown:
            raise TesseraError(f"--excepts names tensors that are not compared: {_shorten(unknown)}")
        rows = sorted(
            self._rows.values(),
            key=lambda row: (
                row.passed,
                -math.inf if math.isnan(row.cosine) else row.cosine,
                -row.rel_l2 if not math.isnan(row.rel_l2) else -math.inf,
            ),
        )
        return Comparison(
            rows,
            self._tolerance,
            missing=[n for n in ref if n not in got and n not in self._excepted],
            extra=[n for n in got if n not in ref and n not in self._excepted],
            excepted=self._excepted,
        )


def compare(
    got: Mapping[str, np.ndarray], ref: Mapping[str, np.ndarray], tolerance: Tolerance, excepts: Iterable[str] = ()
) -> Comparison:
    """Compares all tensors that both sides have, except the names in `excepts`; the rows are sorted, the worst
    first."""
    comparing = Comparing(tolerance, excepts)
    for name in ref:
        if name in got:
            comparing.add(name, got[name], ref[name])
    return comparing.result(got, ref)


def add_own_errors(comparison: Comparison, own: Mapping[str, np.ndarray], ref: Mapping[str, np.ndarray]) -> None:
    """Fills own_rel_l2 of the rows whose tensor is in `own`: each op's result for the operands in `ref`."""
    for row in comparison.rows:
        if row.name in own and own[row.name].shape == ref[row.name].shape:
            row.own_rel_l2 = compare_tensor(row.name, own[row.name], ref[row.name], comparison.tolerance).rel_l2


HEADER = ("tensor", "shape", "cos", "euclid", "rel L2", "SQNR dB", "max|e|", "status")
OWN = "own error"


def table_cells(row: Row, below: str = "FAIL") -> tuple[str, ...]:
    """Returns the cells of one row under HEADER. `below`: status of a row outside the tolerance."""

    def number(value: float, form: str) -> str:
        return "-" if math.isnan(value) else "inf" if value == math.inf else format(value, form)

    status = (
        "ok" if row.passed else f"ok, {row.excuse}" if row.excuse else " ".join((below, ", ".join(row.missed))).rstrip()
    )
    return (
        row.name,
        "x".join(map(str, row.shape)) or "scalar",
        number(row.cosine, ".7f"),
        number(row.euclid, ".6f"),
        number(row.rel_l2, ".2e"),
        number(row.sqnr_db, ".1f"),
        number(row.max_abs, ".2e"),
        f"{status} ({row.note})" if row.note else status,
    )


def format_table(comparison: Comparison, limit: int | None = 15, below: str = "FAIL") -> str:
    """Returns the rows as an aligned text table, the worst first, at most `limit` rows (None: all). Below it stands the
    first of several tensors outside the tolerance, since the worst one often only inherits its error. `below` as in
    table_cells."""
    rows = comparison.rows if limit is None else comparison.rows[:limit]
    lines = [HEADER, *(table_cells(row, below) for row in rows)]
    if any(not math.isnan(row.own_rel_l2) for row in comparison.rows):
        own = [
            OWN,
            *(
                "-"
                if math.isnan(row.own_rel_l2)
                else f"{row.own_rel_l2:.2e} = "
                + ("-" if math.isnan(row.own_share) else f"{100 * row.own_share:3.0f} %")
                for row in rows
            ),
        ]
        lines = [(*line[:-1], cell, line[-1]) for line, cell in zip(lines, own)]
    text = align(lines, right=tuple(range(2, len(lines[0]) - 1)))
    hidden = len(comparison.rows) - len(rows)
    if hidden:
        text += f"\n… and {hidden} more tensors, each closer than these"
    if len(comparison.failed) > 1:
        first = min(comparison.failed, key=lambda row: row.place)
        text += f"\nthe first outside, in the order of computation, is '{first.name}': {describe(first)}"
    return text


def align(rows: Sequence[Sequence[str]], right: Sequence[int] = (), longest: int = 48) -> str:
    """Formats rows of cells as text with aligned columns. `right`: indices of right-aligned columns."""

    def cut(cell: str) -> str:
        return cell if len(cell) <= longest else "…" + cell[-(longest - 1) :]

    cells = [[cut(c) if i == 0 else c for i, c in enumerate(row)] for row in rows]
    widths = [max(len(row[i]) for row in cells) for i in range(len(cells[0]))]
    lines = [
        "  ".join(c.rjust(w) if i in right else c.ljust(w) for i, (c, w) in enumerate(zip(row, widths))).rstrip()
        for row in cells
    ]
    lines.insert(1, "  ".join("-" * w for w in widths))
    return "\n".join(lines)


def percent(part: float, whole: float) -> str:
    return f"{100 * part / whole:.1f}" if whole else "0"


def to_csv(comparison: Comparison) -> str:
    """Formats all rows as CSV with a header line."""
    out = io.StringIO()
    names = [name for name in asdict(Row("", (), "")) if not name.endswith("channels")]
    writer = csv.DictWriter(out, [*names, "euclid"], lineterminator="\n", extrasaction="ignore")
    writer.writeheader()
    for row in comparison.rows:
        writer.writerow({**asdict(row), "missed": " ".join(row.missed), "euclid": row.euclid})
    return out.getvalue()


def _shorten(names: Sequence[str], limit: int = 8) -> str:
    text = ", ".join(f"'{n}'" for n in names[:limit])
    return text + (f" and {len(names) - limit} more" if len(names) > limit else "") if names else "none"
