# SPDX-License-Identifier: Apache-2.0
"""Mixtures of experts of onnxruntime (com.microsoft MoE, QMoE): random cases and a reference, because onnxruntime's CPU
build does not run every form of them."""
from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from contrib_case import Case, Rng, floats, maybe, pick


def softmax(x: np.ndarray) -> np.ndarray:
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def activate(case: Case, gate: np.ndarray, gated: np.ndarray | None) -> np.ndarray:
    """Returns the activation of `gate`, times `gated`, as the operators' specification defines them."""
    kind = case.attributes["activation_type"]
    if kind == "swiglu":
        limit = case.attributes.get("swiglu_limit", np.inf)
        alpha, beta = (
            case.attributes.get(f"activation_{name}", default) for name, default in (("alpha", 1), ("beta", 0))
        )
        gate, gated = np.minimum(gate, limit), np.clip(gated, -limit, limit) + beta
        return gate / (1 + np.exp(-alpha * gate)) * gated
    y = {
        "relu": lambda x: np.maximum(x, 0),
        "gelu": lambda x: 0.5 * x * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3))),
        "silu": lambda x: x / (1 + np.exp(-x)),
        "identity": lambda x: x,
    }[kind](gate)
    return y if gated is None else y * gated


def mix(case: Case, first: np.ndarray, second: np.ndarray, third: np.ndarray | None, normalises: bool) -> list:
    """Computes a mixture of experts from float weights; the biases are those of the case."""
    known = case.fed | case.constants
    x, router = known["x"].reshape(-1, known["x"].shape[-1]).astype(np.float64), known["router"].astype(np.float64)
    y = np.zeros_like(x)

    def layer(row: np.ndarray, weights: np.ndarray, bias: str, expert: int) -> np.ndarray:
        return weights[expert] @ row + (known[bias][expert] if bias in known else 0)

    for token, row in enumerate(x):
        chosen = np.argsort(-router[token])[: case.attributes["k"]]
        factors = softmax(router[token][chosen]) if normalises else softmax(router[token])[chosen]
        for expert, factor in zip(chosen, factors):
            gate, gated = layer(row, first, "fc1_bias", expert), None
            fusion = case.attributes.get("swiglu_fusion", 0)
            if third is not None:
                gated = layer(row, third, "fc3_bias", expert)
            elif fusion:
                gate, gated = (gate[::2], gate[1::2]) if fusion == 1 else np.split(gate, 2)
            y[token] += factor * layer(activate(case, gate, gated), second, "fc2_bias", expert)
    return [y.reshape(known["x"].shape).astype(np.float32)]


@dataclass
class MixtureSizes:
    """Sizes of a mixture of experts; inner: outputs of the first layer for each input of the second."""

    tokens: int
    hidden: int
    inner: int
    experts: int
    inner_factor: int
    has_third: bool

    @staticmethod
    def draw(rng: Rng, case: Case, multiple: int) -> MixtureSizes:
        """Draws sizes, the activation and the routing, and adds the first two inputs."""
        experts = int(rng.integers(1, 9))
        kind = pick(rng, "relu", "gelu", "silu", "identity", "swiglu", "swiglu")
        fusion = pick(rng, 0, 1, 1, 2) if kind == "swiglu" else 0
        case.attributes |= {"activation_type": kind, "k": int(rng.integers(1, experts + 1))}
        if fusion or maybe(rng, 0.3):
            case.attributes["swiglu_fusion"] = fusion
        if kind == "swiglu" and maybe(rng, 0.7):
            case.attributes |= {"activation_alpha": 1.702, "activation_beta": 1.0}
        if kind == "swiglu" and maybe(rng):
            case.attributes["swiglu_limit"] = float(np.float32(rng.uniform(0.3, 2)))
        if maybe(rng, 0.7):
            case.attributes["normalize_routing_weights"] = int(maybe(rng))
        hidden, inner = (multiple * int(rng.integers(1, 4)) for _ in range(2))
        rows = pick(rng, (1,), (int(rng.integers(1, 7)),), (2, int(rng.integers(1, 4))))
        case.add("x", floats(rng, *rows, hidden))
        case.add("router", floats(rng, int(np.prod(rows)), experts))
        third = kind == "swiglu" and fusion == 0 or kind == "silu" and maybe(rng, 0.3)
        return MixtureSizes(int(np.prod(rows)), hidden, inner, experts, 2 if fusion else 1, third)

    def layers(self) -> list[tuple[str, int, int]]:
        """Lists the layers: name, outputs, inputs."""
        third = [("fc3", self.inner, self.hidden)] if self.has_third else []
        return [("fc1", self.inner * self.inner_factor, self.hidden), ("fc2", self.hidden, self.inner), *third]


def mixture(rng: Rng) -> Case:
    case = Case("MoE")
    sizes = MixtureSizes.draw(rng, case, 4)
    weights = {}
    for name, outputs, inputs in sizes.layers():
        weights[name] = floats(rng, sizes.experts, outputs, inputs) / 2
        case.add(f"{name}_weights", weights[name], constant=maybe(rng))
        case.add(f"{name}_bias", floats(rng, sizes.experts, outputs), constant=maybe(rng)) if maybe(
            rng
        ) else case.skip()
    normalises = bool(case.attributes.get("normalize_routing_weights", 0))
    case.reference = lambda: mix(case, weights["fc1"], weights["fc2"], weights.get("fc3"), normalises)
    return case


def quantised_mixture(rng: Rng) -> Case:
    case = Case("QMoE")
    bits, block = pick(rng, 2, 4, 8), pick(rng, 0, 16, 32)
    sizes = MixtureSizes.draw(rng, case, 32)
    case.attributes["expert_weight_bits"] = bits
    if block:
        case.attributes["block_size"] = block
    if bits == 8 and block:
        case.tolerance = 0.1  # onnxruntime rounds the activations to 8 bits
    weights, zeros, has_zeros = {}, [], maybe(rng)
    for name, outputs, inputs in sizes.layers():
        blocks = inputs // block if block else 1
        packed = rng.integers(0, 256, (sizes.experts, outputs, inputs * bits // 8)).astype(np.uint8)
        scales = np.abs(floats(rng, sizes.experts, outputs, blocks)) * 2.0**-bits / 4 + 0.001
        zero = np.full(scales.shape, 1 << (bits - 1))
        if has_zeros:
            shape = (outputs, -(-blocks * bits // 8)) if block else (outputs * bits // 8,)
            zeros.append(rng.integers(0, 256, (sizes.experts, *shape)).astype(np.uint8))
            zero = unpack(zeros[-1], bits)[..., : blocks if block else None].reshape(scales.shape)
        spread = inputs // blocks
        weights[name] = (unpack(packed, bits) - zero.repeat(spread, -1)) * scales.repeat(spread, -1)
        case.add(f"{name}_weights", packed, constant=True)
        case.add(
            f"{name}_scales", scales.astype(np.float32) if block else scales[..., 0].astype(np.float32), constant=True
        )
        case.add(f"{name}_bias", floats(rng, sizes.experts, outputs), constant=True) if maybe(rng) else case.skip()
    if has_zeros:
        while len(case.names) < 11:
            case.skip()
        for (name, _, _), zero in zip(sizes.layers(), zeros):
            case.add(f"{name}_zeros", zero, constant=True)
    case.reference = lambda: mix(case, weights["fc1"], weights["fc2"], weights.get("fc3"), True)
    return case


def unpack(packed: np.ndarray, bits: int) -> np.ndarray:
    """Returns the numbers of `bits` bits in bytes, lowest bits first."""
    parts = [packed >> shift & (1 << bits) - 1 for shift in range(0, 8, bits)]
    return np.stack(parts, -1).reshape(*packed.shape[:-1], -1).astype(np.int32)
