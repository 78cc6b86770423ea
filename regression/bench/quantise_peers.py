# SPDX-License-Identifier: Apache-2.0
"""Quantises a model with a peer's own tools, for preparation.py; runs in the environment with these tools. Arguments:
onnxruntime or openvino, the model, a folder of samples (.npz), the output file (.onnx or .xml)."""
from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "accuracy"))

import peers  # noqa: E402
from tessera.files import load_npz  # noqa: E402


def main() -> None:
    engine, model, samples, output = sys.argv[1], *map(Path, sys.argv[2:])
    arrays = [load_npz(path) for path in sorted(samples.glob("*.npz"))]
    shapes = {name: array.shape for name, array in arrays[0].items()}
    if engine == "openvino":
        import openvino as ov

        ov.save_model(peers.nncf_network(model, shapes, arrays), output, compress_to_fp16=False)
    else:
        peers.onnxruntime_file(model, shapes, arrays, "MinMax", output.parent).replace(output)


if __name__ == "__main__":
    main()
