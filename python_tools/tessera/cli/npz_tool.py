# SPDX-License-Identifier: Apache-2.0
"""The command npz_tool."""
from __future__ import annotations

import argparse
from pathlib import Path
from typing import Sequence

import numpy as np

from .. import channels, compare, safetensors_io, tolerances
from ..errors import ExitCode, TesseraError
from ..files import atomic_write, save_npz
from ..tensor_files import load_tensors
from .common import Context, Parser, run_command

NAME = "npz_tool"
PURPOSE = "Compares, shows and edits files of named tensors (.npz, .safetensors, .npy)."
CHANNELS_SHOWN = 15
EPILOG = """examples:
  npz_tool compare out.npz reference.npz --tolerance 0.999,0.99 -v
  npz_tool compare out.npz reference.npz --per_channel conv1 --heat_map conv1.png
  npz_tool print_diff out.npz reference.npz conv1 --top 10
  npz_tool extract all.npz some.npz conv1,relu1"""


def parse(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = Parser(NAME, PURPOSE, EPILOG)
    verbs = parser.add_subparsers(dest="verb", required=True, metavar="VERB")

    def verb(name: str, help_text: str, *files: str) -> Parser:
        sub: Parser = verbs.add_parser(name, help=help_text, description=help_text)
        for file in files:
            sub.add_argument(file)
        return sub.add_common()

    sub = verb(
        "compare",
        "compare all tensors that both files have; exit code 3 if one is outside the tolerance",
        "target",
        "reference",
    )
    sub.add_argument(
        "--tolerance",
        metavar=tolerances.METAVAR,
        help="least cosine and euclidean similarity of each tensor, or a precision "
        f"to use its default: {tolerances.ALL} (default: F32's)",
    )
    sub.add_argument("--excepts", default="", metavar="A,B", help="names to leave out")
    sub.add_argument("--save", metavar="CSV", help="write the whole table as CSV")
    sub.add_argument("--per_channel", metavar="NAME", help="also show a table of this tensor's channels, worst first")
    sub.add_argument(
        "--heat_map",
        metavar="FILE.png",
        help="write a picture of the error of --per_channel's tensor, by default of the worst tensor",
    )
    sub.add_argument("--axis", type=int, default=1, metavar="N", help="the dim of the channels (default: %(default)s)")
    sub.add_argument("-v", "--verbose", action="count", default=0, help="show every tensor, not only the worst")
    sub = verb("print_diff", "show the positions where one tensor differs most", "target", "reference", "name")
    sub.add_argument("--top", type=int, default=10, metavar="N", help="number of positions (default: %(default)s)")
    sub = verb("dump", "show names, shapes, types and ranges; with NAME, its values", "file")
    sub.add_argument("name", nargs="?")
    sub.add_argument(
        "--count", type=int, default=32, metavar="N", help="number of values (-1: all; default: %(default)s)"
    )
    verb("statistic", "show minimum, maximum, mean, standard deviation, NaN and infinity of every tensor", "file")
    verb("check_nan_inf", "fail with exit code 1 if a tensor holds NaN or infinity", "file")
    verb("extract", "write the named tensors to a new file", "file", "output", "names")
    verb("remove", "write all but the named tensors to a new file", "file", "output", "names")
    sub = verb("rename", "write a copy with tensors renamed: OLD=NEW,OLD=NEW", "file", "output", "renames")
    sub = verb("merge", "write the tensors of several files to one", "output")
    sub.add_argument("files", nargs="+")
    verb("to_npy", "write one tensor as .npy", "file", "name", "output")
    return parser.parse_args(argv)


def pick(tensors: dict[str, np.ndarray], name: str, file: str) -> np.ndarray:
    """Returns one tensor by name; otherwise raises TesseraError with the available names."""
    if name not in tensors:
        raise TesseraError(
            f"{file} does not contain tensor '{name}'", details=[f"it contains: {', '.join(list(tensors)[:20])}"]
        )
    return tensors[name]


def save(context: Context, tensors: dict[str, np.ndarray]) -> None:
    path = context.args.output
    if not tensors:
        raise TesseraError(f"failed to write {path}: no tensors are left")
    target = context.outputs.path(path)
    if Path(path).suffix == ".safetensors":
        safetensors_io.save(target, tensors)
    else:
        save_npz(target, tensors)


def compare_files(context: Context) -> None:
    args = context.args
    tolerance = tolerances.parse(args.tolerance)
    target, reference = load_tensors(args.target), load_tensors(args.reference)
    result = compare.compare(target, reference, tolerance, args.excepts.split(","))
    context.result["comparison"] = result.as_dict()
    what = f"{args.target} against {args.reference}"
    result.require_rows(what)
    context.report.say(compare.format_table(result, None if args.verbose else 15))
    for names, text in ((result.missing, "only in the reference"), (result.extra, "only in the target")):
        if names:
            context.report.say(
                f"{text}, not compared ({len(names)}): {', '.join(names[:10])}{' …' if len(names) > 10 else ''}"
            )
    if args.save:
        with atomic_write(context.outputs.path(args.save)) as file:
            file.write(compare.to_csv(result).encode(errors="backslashreplace"))
    show_channels(context, result, target, reference)
    context.report.say(f"{len(result.rows) - len(result.failed)} of {len(result.rows)} tensors within {tolerance}")
    result.require_passed(what)


def show_channels(
    context: Context, result: compare.Comparison, target: dict[str, np.ndarray], reference: dict[str, np.ndarray]
) -> None:
    """Shows the table of one tensor's channels and writes the picture of its error, as the flags request."""
    args = context.args
    if not args.per_channel and not args.heat_map:
        return
    name = args.per_channel or result.rows[0].name
    got, ref = pick(target, name, args.target), pick(reference, name, args.reference)
    if args.per_channel:
        rows = channels.by_channel(name, got, ref, args.axis, result.tolerance)
        context.result["channels"] = [
            {"channel": int(row.name), "cosine": row.cosine, "rel_l2": row.rel_l2, "max_abs": row.max_abs}
            for row in rows
        ]
        shown = rows if args.verbose else rows[:CHANNELS_SHOWN]
        context.report.say(f"\n'{name}' {list(ref.shape)}, {len(rows)} channels along dim {args.axis}, worst first:")
        context.report.say(
            compare.align(
                [
                    ("channel", "cos", "rel L2", "SQNR dB", "max|e|"),
                    *(
                        (row.name, f"{row.cosine:.7f}", f"{row.rel_l2:.2e}", f"{row.sqnr_db:.1f}", f"{row.max_abs:.2e}")
                        for row in shown
                    ),
                ],
                right=(0, 1, 2, 3, 4),
            )
        )
    if args.heat_map:
        channels.save_heat_map(context.outputs.path(args.heat_map), channels.heat_map(name, got, ref, args.axis))
        context.report.say(
            f"error of '{name}' by channel: {args.heat_map} (black: none, white: {result_max(result, name):.3g})"
        )


def result_max(result: compare.Comparison, name: str) -> float:
    """Returns max|e| of a compared tensor; NaN if it was left out."""
    return next((row.max_abs for row in result.rows if row.name == name), float("nan"))


def print_diff(context: Context) -> None:
    args = context.args
    got = pick(load_tensors(args.target), args.name, args.target)
    ref = pick(load_tensors(args.reference), args.name, args.reference)
    row = compare.compare_tensor(args.name, got, ref, compare.Tolerance())
    if got.shape != ref.shape:
        raise TesseraError(f"'{args.name}': {row.note}", ExitCode.ACCURACY)
    context.report.say(f"'{args.name}' {ref.dtype}{list(ref.shape)}: {compare.describe(row)}")
    error = np.abs(got.astype(np.float64) - ref.astype(np.float64))
    order = np.argsort(np.nan_to_num(error, nan=np.inf), axis=None)[::-1][: max(args.top, 0)]
    cells = [("index", "target", "reference", "difference")]
    for flat in order:
        index = np.unravel_index(flat, ref.shape)
        cells.append((str(list(map(int, index))), f"{got[index]:.7g}", f"{ref[index]:.7g}", f"{error[index]:.3g}"))
    context.report.say(compare.align(cells, right=(1, 2, 3)))
    context.result["worst"] = [dict(zip(cells[0], row)) for row in cells[1:]]


def dump(context: Context) -> None:
    args = context.args
    tensors = load_tensors(args.file)
    context.result["tensors"] = {n: {"shape": list(t.shape), "dtype": str(t.dtype)} for n, t in tensors.items()}
    if args.name is not None:
        tensor = pick(tensors, args.name, args.file)
        flat = tensor.ravel() if args.count < 0 else tensor.ravel()[: args.count]
        context.report.say(f"'{args.name}' {tensor.dtype}{list(tensor.shape)}")
        context.report.say(np.array2string(flat, threshold=flat.size + 1, max_line_width=110))
        return
    cells = [("tensor", "type", "shape", "min", "max")]
    for name, tensor in tensors.items():
        low, high = (f"{tensor.min():.6g}", f"{tensor.max():.6g}") if tensor.size else ("-", "-")
        cells.append((name, str(tensor.dtype), "x".join(map(str, tensor.shape)) or "scalar", low, high))
    context.report.say(compare.align(cells, right=(3, 4)))


def statistic(context: Context) -> None:
    cells: list[tuple[str, ...]] = [("tensor", "shape", "min", "max", "mean", "std", "NaN", "inf")]
    for name, tensor in load_tensors(context.args.file).items():
        values = tensor.astype(np.float64).ravel()
        finite = values[np.isfinite(values)]
        numbers = (finite.min(), finite.max(), finite.mean(), finite.std()) if finite.size else ()
        cells.append(
            (
                name,
                "x".join(map(str, tensor.shape)) or "scalar",
                *([f"{n:.6g}" for n in numbers] or ["-"] * 4),
                str(np.count_nonzero(np.isnan(values))),
                str(np.count_nonzero(np.isinf(values))),
            )
        )
    context.report.say(compare.align(cells, right=(2, 3, 4, 5, 6, 7)))
    context.result["tensors"] = [dict(zip(cells[0], row)) for row in cells[1:]]


def check_nan_inf(context: Context) -> None:
    tensors = load_tensors(context.args.file)
    bad = [n for n, t in tensors.items() if t.dtype.kind in "fc" and not np.isfinite(t).all()]
    if not tensors:
        raise TesseraError(f"{context.args.file} does not contain tensors: nothing was checked")
    context.result["non_finite"] = bad
    if bad:
        raise TesseraError(f"{len(bad)} of {len(tensors)} tensors hold NaN or infinity: {', '.join(bad[:10])}")
    context.report.say(f"{len(tensors)} tensors, all finite")


def edit(context: Context) -> None:
    """Runs extract, remove, rename, merge or to_npy."""
    args = context.args
    if args.verb == "merge":
        merged: dict[str, np.ndarray] = {}
        for file in args.files:
            for name, tensor in load_tensors(file).items():
                if name in merged:
                    raise TesseraError(f"'{name}' is in more than one file; the second is {file}")
                merged[name] = tensor
        return save(context, merged)
    tensors = load_tensors(args.file)
    if args.verb == "to_npy":
        array = pick(tensors, args.name, args.file)
        path = args.output if args.output.endswith(".npy") else args.output + ".npy"
        with atomic_write(context.outputs.path(path), array.nbytes) as file:
            np.lib.format.write_array(file, array, allow_pickle=False)
    elif args.verb == "extract":
        save(context, {n: pick(tensors, n, args.file) for n in args.names.split(",")})
    elif args.verb == "remove":
        gone = [n for n in args.names.split(",") if pick(tensors, n, args.file) is not None]
        save(context, {n: t for n, t in tensors.items() if n not in gone})
    else:
        pairs = dict(pair.split("=", 1) if "=" in pair else (pair, "") for pair in args.renames.split(","))
        for old, new in pairs.items():
            pick(tensors, old, args.file)
            if not new or (new in tensors and new not in pairs):
                raise TesseraError(f"cannot rename '{old}' to '{new}'", hint="write OLD=NEW with an unused new name")
        save(context, {pairs.get(n, n): t for n, t in tensors.items()})


WORK = {
    "compare": compare_files,
    "print_diff": print_diff,
    "dump": dump,
    "statistic": statistic,
    "check_nan_inf": check_nan_inf,
}


def work(context: Context) -> None:
    WORK.get(context.args.verb, edit)(context)


def main(argv: Sequence[str] | None = None) -> int:
    return run_command(NAME, parse, work, argv=argv)


if __name__ == "__main__":
    raise SystemExit(main())
