# SPDX-License-Identifier: Apache-2.0
"""Writes top_dialect/Import/Onnx/Model/OnnxSchemas.inc: the operands, results and attributes of every operator as
defined by ONNX.

    pip install onnx          # the newest, in its own environment
    python python_tools/dev/onnx_schemas.py > top_dialect/Import/Onnx/Model/OnnxSchemas.inc

Run it when kNewestOpset rises (OnnxModel.h).
"""
from __future__ import annotations

from collections import defaultdict

from onnx import __version__, defs


def rows() -> list[str]:
    """Returns a line for each version of an operator that differs from the previous one in these facts."""
    versions: dict[str, list] = defaultdict(list)
    for schema in defs.get_all_schemas_with_history():
        if schema.domain == "" and schema.support_level == defs.OpSchema.SupportType.COMMON:
            versions[schema.name].append(schema)
    lines = []
    for name in sorted(versions):
        before = None
        for schema in sorted(versions[name], key=lambda each: each.since_version):
            counts = [min(count, 1 << 30) for count in (schema.min_input, schema.max_input, schema.max_output)]
            fact = "{}, {}, {}".format(*counts) + ', "' + " ".join(sorted(schema.attributes)) + '"'
            if schema.deprecated:
                fact = "0, kAny, kAny, nullptr"
            fact = fact.replace(str(1 << 30), "kAny")
            if fact != before:
                lines.append(f'{{"{name}", {schema.since_version}, {fact}}},')
            before = fact
    return lines


def main() -> None:
    print("// SPDX-License-Identifier: Apache-2.0")
    print(
        f"// Written by python_tools/dev/onnx_schemas.py from onnx {__version__}, opset {defs.onnx_opset_version()}: "
        "do not edit."
    )
    print("// Operator, opset, least and most inputs, most outputs, attributes (null: not to be checked).")
    print("// clang-format off")
    print("\n".join(rows()))


if __name__ == "__main__":
    main()
