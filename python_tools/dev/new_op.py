#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""./dev new-op: scaffolds a new elementwise operator with one operand, from ONNX to x86.

Writes the definition with its scalar form (computed by every chip), the reference evaluation (in double, the golden),
the ONNX handler, and two tests. The remaining parts (device op, kernel, threads) exist already. See
docs/adding-an-op.md, also for operators that need more.

  ./dev new-op square_plus --domain com.example --onnx SquarePlus --summary "Square plus" \\
      --formula "(x + sqrt(x^2 + 4)) / 2" \\
      --scalar "e.mul(e.constant(x, 0.5), e.add(x, e.sqrt(e.add(e.mul(x, x), e.constant(x, 4)))))" \\
      --reference "(x + std::sqrt(x * x + 4)) / 2"
"""
from __future__ import annotations

import argparse
import re
import sys
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


@dataclass(frozen=True)
class Insertion:
    """Text to insert before the last line of a file that matches `before` (at its end for '')."""

    path: str
    text: str
    before: str = ""


def camel(name: str) -> str:
    return "".join(part.capitalize() for part in name.split("_"))


def insertions(args: argparse.Namespace) -> list[Insertion]:
    """Returns the edits of sources and tests."""
    op = camel(args.name) + "Op"
    definition = (
        f'def Top_{op} : Top_UnaryOp<"{args.name}", "{args.summary}", "{args.formula}", '
        f'"detail::elementOf(getX())", [{{\n  return {args.scalar};\n}}]>;\n\n'
    )
    reference = (
        f"LogicalResult {op}::evaluate(Inputs inputs, Outputs outputs) {{\n"
        f"  return evaluateUnary(inputs, outputs, [](double x) {{ return {args.reference}; }});\n}}\n"
    )
    test = (
        f"\n// CHECK-LABEL: @{args.name}\n// CHECK: top.{args.name}\n"
        f"func.func @{args.name}(%a: tensor<2x?xf32>) {{\n"
        f"  %0 = top.{args.name} %a : (tensor<2x?xf32>) -> tensor<2x?xf32>\n  return\n}}\n"
    )
    return [
        Insertion("top_dialect/IR/TopElementwiseOps.td", definition, r"#endif"),
        Insertion("top_dialect/Reference/ReferenceMath.cpp", "\n" + reference),
        Insertion(
            "top_dialect/Import/Onnx/Operators/OnnxElementwise.cpp",
            f'      {{"{args.domain}", "{args.onnx}", unary<{op}>}},\n',
            r"  };$",
        ),
        Insertion("top_dialect/test/IR/elementwise.mlir", test),
    ]


def apply(insertion: Insertion, root: Path) -> str:
    """Returns the file's new text. Raises SystemExit if the position is not found or the text exists already."""
    path = root / insertion.path
    lines = path.read_text(encoding="utf-8").splitlines(True)
    if insertion.text.strip() in "".join(lines):
        raise SystemExit(f"new-op: {insertion.path} already contains the new text")
    if not insertion.before:
        return "".join(lines) + insertion.text
    places = [i for i, line in enumerate(lines) if re.match(insertion.before, line)]
    if not places:
        raise SystemExit(f"new-op: {insertion.path} does not contain a line that matches '{insertion.before}'")
    lines.insert(places[-1], insertion.text)
    return "".join(lines)


def reject_existing(args: argparse.Namespace, root: Path) -> None:
    """Raises SystemExit if Top has an op with that name, or the importer has a handler for the operator; a second one
    would only hide the first."""
    for path in sorted((root / "top_dialect" / "IR").glob("*.td")):
        if re.search(
            rf'\bdef Top_{camel(args.name)}Op\b|^def Top_\w+\s*:[^{{;]*?<"{re.escape(args.name)}"',
            path.read_text(encoding="utf-8"),
            re.M,
        ):
            raise SystemExit(
                f"new-op: top.{args.name} exists already, in {path.relative_to(root)}: choose another name, or "
                "change that op"
            )
    entry = re.compile(rf'\{{\s*"{re.escape(args.domain)}",\s*"{re.escape(args.onnx)}",')
    for path in sorted((root / "top_dialect" / "Import" / "Onnx").rglob("*.cpp")):
        text = path.read_text(encoding="utf-8")
        if found := entry.search(text):
            line = text.count("\n", 0, found.start()) + 1
            raise SystemExit(
                f"new-op: {args.domain or 'ai.onnx'}.{args.onnx} has a handler already, in "
                f"{path.relative_to(root)}:{line}; change that handler"
            )


def parse(argv: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="./dev new-op", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("name", help="mnemonic, snake_case")
    parser.add_argument("--onnx", help="the ONNX operator (default: the name in CamelCase)")
    parser.add_argument("--domain", default="", help="ONNX domain (default: ai.onnx)")
    parser.add_argument("--summary", help="title in the op reference (default: the ONNX name)")
    parser.add_argument("--formula", required=True, help='for the op reference, e.g. "x / (1 + |x|)"')
    parser.add_argument(
        "--scalar", required=True, help='C++ with ScalarEmitter e and mlir::Value x, e.g. "e.mul(x, e.sigmoid(x))"'
    )
    parser.add_argument("--reference", required=True, help='C++ on a double x, e.g. "x / (1 + std::exp(-x))"')
    parser.add_argument("--root", type=Path, default=ROOT, help=argparse.SUPPRESS)
    args = parser.parse_args(argv)
    if not re.fullmatch(r"[a-z][a-z0-9_]*", args.name):
        parser.error(f"'{args.name}' is not a snake_case name")
    args.onnx = args.onnx or camel(args.name)
    args.summary = args.summary or args.onnx
    return args


def main(argv: list[str] | None = None) -> int:
    args = parse(argv)
    reject_existing(args, args.root)
    edits = insertions(args)
    texts = [(edit, apply(edit, args.root)) for edit in edits]  # all places are found before any file is written
    for edit, text in texts:
        (args.root / edit.path).write_text(text, encoding="utf-8")
        print(f"edited {edit.path}")
    print(
        f"""
Next:
  add a function @{args.name} with numbers worked out by hand to top_dialect/Reference/test/math.mlir
  ninja -C build tessera-opt tessera-compile top_reference_test && ctest --test-dir build -R top
  ./dev docs"""
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
