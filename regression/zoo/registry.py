# SPDX-License-Identifier: Apache-2.0
"""Descriptions of the zoo's networks. They do not need torch; building a network imports it."""
from __future__ import annotations

import importlib
from dataclasses import dataclass, field, replace
from typing import Any, Callable, Mapping, Sequence

import numpy as np

OPTIMISED = {"ort-extended": "ORT_ENABLE_EXTENDED", "ort-all": "ORT_ENABLE_ALL"}
"""Forms that onnxruntime's optimiser writes of the file of "dynamo", and their optimisation level."""
OPEN = {"torchscript-open": "torchscript", "dynamo-open": "dynamo"}
"""Files with dynamic shapes, and their exporter."""
EXPORTERS = ("torchscript", "dynamo", *OPTIMISED)


@dataclass(frozen=True)
class Input:
    """An input. kind: normal, uniform (0 to 1), ids (below `high`), ones, zeros or positions (0, 1, 2, ..); integers
    are i64."""

    shape: tuple[int, ...]
    kind: str = "normal"
    high: int = 2

    def sample(self, generator: np.random.Generator) -> np.ndarray:
        if self.kind == "normal":
            return generator.normal(size=self.shape).astype(np.float32)
        if self.kind == "uniform":
            return generator.uniform(size=self.shape).astype(np.float32)
        if self.kind == "ids":
            return generator.integers(1, self.high, self.shape)
        if self.kind == "positions":
            return np.broadcast_to(np.arange(self.shape[-1], dtype=np.int64), self.shape).copy()
        return np.full(self.shape, {"ones": 1, "zeros": 0}[self.kind], np.int64)


def normal(*shape: int) -> Input:
    return Input(shape)


def uniform(*shape: int) -> Input:
    return Input(shape, "uniform")


def ids(high: int, *shape: int) -> Input:
    return Input(shape, "ids", high)


def ones(*shape: int) -> Input:
    return Input(shape, "ones")


@dataclass(frozen=True)
class Network:
    """A network. build: returns (module in evaluation mode, names of its outputs or none). inputs: by name, in the
    order of forward. exporters: those to use; a network whose code is written for one exporter names it. after:
    processing of the exported file ("networks.quantised:qdq_static")."""

    name: str
    family: str
    build: Callable[[], Any]
    inputs: Mapping[str, Input]
    exporters: Sequence[str] = ("torchscript", "dynamo")
    after: str = ""
    opset: int = 18
    notes: Mapping[str, str] = field(default_factory=dict)


def resolve(text: str) -> Any:
    """Returns the object with the name "module:name"."""
    module, _, name = text.partition(":")
    return getattr(importlib.import_module(module), name)


def image(size: int, channels: int = 3, batch: int = 1) -> dict[str, Input]:
    return {"image": Input((batch, channels, size, size))}


def timm(name: str, size: int, family: str, channels: int = 3, **arguments: Any) -> Network:
    """Describes a model of timm with random weights; `arguments` make it smaller."""

    def build() -> Any:
        import timm as library

        return library.create_model(name, pretrained=False, num_classes=10, **arguments)

    return Network(f"timm-{name}", family, build, image(size, channels))


def torchvision(
    path: str, family: str, inputs: Mapping[str, Input], label: str = "", wrap: str = "", **arguments: Any
) -> Network:
    """Describes a model of torchvision by its path, e.g. "segmentation.lraspp_mobilenet_v3_large"."""

    def build() -> Any:
        model = importlib.import_module("torchvision.models")
        for part in path.split("."):
            model = getattr(model, part)
        result = model(weights=None, **({"weights_backbone": None} if _takes_backbone(path) else {}), **arguments)
        return resolve(wrap)(result) if wrap else result

    return Network(f"torchvision-{label or path.rpartition('.')[2]}", family, build, inputs)


def _takes_backbone(path: str) -> bool:
    return path.startswith(("segmentation.", "detection."))


def transformer(
    label: str,
    family: str,
    config: str,
    model: str,
    inputs: Mapping[str, Input],
    outputs: Sequence[str],
    **arguments: Any,
) -> Network:
    """Describes a model of transformers with a small configuration."""

    def build() -> Any:
        import transformers as library
        from networks.wrap import Picked

        settings = getattr(library, config)(**arguments)
        settings._attn_implementation = "eager"
        settings._experts_implementation = (
            "batched_mm"  # a mixture of experts as one matmul, not as a loop whose length depends on values
        )
        return Picked(getattr(library, model)(settings), list(inputs), list(outputs))

    return Network(f"hf-{label}", family, build, inputs)


def own(label: str, family: str, path: str, inputs: Mapping[str, Input], **arguments: Any) -> Network:
    """Describes a module of this folder by its path, e.g. "networks.audio:Demucs"."""
    return Network(f"own-{label}", family, lambda: resolve(path)(**arguments), inputs)


def recent(network: Network) -> Network:
    """Returns the network exported as users export today: by the newest exporter, also through onnxruntime."""
    return replace(network, exporters=("dynamo", *OPTIMISED))


def quantised(label: str, of: Network, after: str, exporter: str = "torchscript", opset: int = 17) -> Network:
    """Describes a network that is exported and then quantised with onnxruntime's tools."""
    return Network(f"quantised-{label}", "quantised", of.build, of.inputs, (exporter,), after, opset)


def all_networks() -> list[Network]:
    """Returns every description, by family."""
    from networks import audio_text, generative, recent_audio, recent_text, recent_vision, vision

    groups = (vision, audio_text, generative, recent_vision, recent_text, recent_audio)
    return _named_once([network for group in groups for network in group.NETWORKS])


def full_size_networks() -> list[Network]:
    """Returns the networks that ./dev bench measures; they are too large for ./dev zoo to judge."""
    from networks import full_size

    return _named_once(full_size.NETWORKS)


def _named_once(found: list[Network]) -> list[Network]:
    names = [network.name for network in found]
    if twice := {name for name in names if names.count(name) > 1}:
        raise ValueError(f"the zoo names {', '.join(sorted(twice))} twice")
    return found
