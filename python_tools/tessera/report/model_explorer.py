# SPDX-License-Identifier: Apache-2.0
"""Converts a report's graph and node values to the JSON of Model Explorer
(github.com/google-ai-edge/model-explorer)."""
from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Mapping, Sequence

VALUES = {"time": ("us", "time, us"), "traffic": ("moved", "bytes moved"), "products": ("products", "multiplications")}
"""Values shown for nodes: suffix of the file name, key of a layer, title."""
GRADIENT = [{"stop": 0, "bgColor": "#f4f6f9"}, {"stop": 1, "bgColor": "#f0954f"}]


def graph_of(stage: Mapping[str, Any], name: str) -> dict[str, Any]:
    """Returns one graph with a node per layer, identified by its number."""
    incoming: dict[int, list[int]] = {}
    for source, target in stage["edges"]:
        incoming.setdefault(target, []).append(source)
    return {
        "id": name,
        "nodes": [_node(layer, row, incoming.get(row, [])) for row, layer in enumerate(stage["layers"])],
    }


def _node(layer: Mapping[str, Any], row: int, sources: Sequence[int]) -> dict[str, Any]:
    first = layer["nodes"][0] if layer["nodes"] else layer["name"]
    info = {
        key: layer[key] for key in ("on", "op", "top", "bound", "us", "moved", "least", "products") if layer.get(key)
    }
    info["ONNX nodes"] = ", ".join(layer["nodes"])
    return {
        "id": str(row),
        "label": layer["name"],
        # The folders of an ONNX name become collapsible groups.
        "namespace": first.strip("/").rpartition("/")[0],
        "attrs": [{"key": key, "value": str(value)} for key, value in info.items()],
        "incomingEdges": [
            {"sourceNodeId": str(source), "sourceNodeOutputId": "0", "targetNodeInputId": str(number)}
            for number, source in enumerate(sources)
        ],
        "outputsMetadata": [{"id": "0", "attrs": [{"key": "tensor_name", "value": name}]}
                            for name in layer.get("tensors", [])[:1]],
    }  # fmt: skip


def node_data(stage: Mapping[str, Any], name: str, key: str, title: str) -> dict[str, Any]:
    """Returns values of the graph's nodes, with colours from the least to the largest."""
    known = {str(row): layer[key] for row, layer in enumerate(stage["layers"]) if layer.get(key) is not None}
    results = {node: {"value": value} for node, value in known.items()}
    return {name: {"name": title, "results": results, "gradient": GRADIENT}}


def files(models: Sequence[Mapping[str, Any]]) -> dict[str, str]:
    """Returns the texts by file name."""
    result = {}
    for model in models:
        file, _, sizes = model["file"].partition(" at ")
        stem = Path(file).stem + (f"_{sizes}" if sizes else "")
        for number, stage in enumerate(model["stages"]):
            name = stem if len(model["stages"]) == 1 else f"{stem}_{number}"
            result[f"{name}.json"] = json.dumps({"label": name, "graphs": [graph_of(stage, name)]}) + "\n"
            for ending, (key, title) in VALUES.items():
                result[f"{name}_{ending}.json"] = json.dumps(node_data(stage, name, key, title)) + "\n"
    return result
