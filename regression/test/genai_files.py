# SPDX-License-Identifier: Apache-2.0
"""Writes decoders in the layout of onnxruntime-genai's model builder: GroupQueryAttention, fused norms, and, with a
number of bits, MatMulNBits and GatherBlockQuantized."""
from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Mapping

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

Arrays = Mapping[str, np.ndarray]
_MICROSOFT = "com.microsoft"


@dataclass(frozen=True)
class Form:
    """How the builder writes a decoder. bits: of weights, 0 for f32. asymmetric: weights have zero points. fused:
    GroupQueryAttention rotates queries and keys; otherwise RotaryEmbedding does, and position_ids is an input.
    last_row: only the last token has logits."""

    bits: int = 0
    block: int = 32
    accuracy_level: int = 0
    asymmetric: bool = False
    fused: bool = True
    quantised_embedding: bool = False
    last_row: bool = False


@dataclass(frozen=True)
class Shape:
    layers: int
    width: int
    heads: int
    key_heads: int
    epsilon: float = 1e-5
    rotary_base: float = 10000.0
    positions: int = 256

    @property
    def size(self) -> int:
        return self.width // self.heads


def quantise(weight: np.ndarray, form: Form) -> tuple[np.ndarray, np.ndarray, np.ndarray | None]:
    """Returns the integers of a matrix [N, K] as [N, blocks, block], their scales [N, blocks] and zero points."""
    rows, depth = weight.shape
    blocks = -(-depth // form.block)
    padded = np.zeros((rows, blocks * form.block), np.float32)
    padded[:, :depth] = weight
    x, most = padded.reshape(rows, blocks, form.block), 2**form.bits - 1
    low, high = np.minimum(x.min(2), 0), np.maximum(x.max(2), 0)
    middle = 2 ** (form.bits - 1)
    scale = (high - low) / most if form.asymmetric else np.abs(x).max(2) / (middle - 1)
    scale = np.where(scale == 0, 1, scale).astype(np.float32)
    zero = np.clip(np.rint(-low / scale), 0, most) if form.asymmetric else np.full_like(scale, middle)
    q = np.clip(np.rint(x / scale[:, :, None]) + zero[:, :, None], 0, most).astype(np.uint8)
    return q, scale, zero.astype(np.uint8) if form.asymmetric else None


def pack(q: np.ndarray, bits: int) -> np.ndarray:
    """Packs numbers of 4 bits along the last axis, the first one in the low half of a byte."""
    if bits == 8:
        return q
    q = np.concatenate([q, np.zeros((*q.shape[:-1], q.shape[-1] % 2), np.uint8)], -1)
    return q[..., ::2] | q[..., 1::2] << 4


class Writer:
    def __init__(self, shape: Shape, form: Form, weights: Arrays) -> None:
        self.shape, self.form, self.weights = shape, form, weights
        self.nodes: list[onnx.NodeProto] = []
        self.constants: dict[str, np.ndarray] = {}

    def add(self, kind: str, name: str, *inputs: str, outputs: int = 1, domain: str = "", **attributes: object) -> str:
        results = [f"{name}/output_{i}" for i in range(outputs)]
        kept = [results[0], *("" for _ in results[1:-1]), *results[-1:]] if outputs > 1 else results
        self.nodes.append(helper.make_node(kind, inputs, kept, name=name, domain=domain, **attributes))
        return results[0]

    def constant(self, name: str, array: np.ndarray) -> str:
        self.constants[name] = array
        return name

    def embed(self) -> str:
        table = self.weights["model.embed_tokens.weight"]
        if not (self.form.bits and self.form.quantised_embedding):
            return self.add("Gather", "/embed", self.constant("embed", table), "input_ids")
        q, scale, zero = quantise(table, self.form)
        inputs = [self.constant("embed_q", pack(q.reshape(len(q), -1), self.form.bits)), "input_ids"]
        inputs.append(self.constant("embed_scales", scale))
        inputs += [] if zero is None else [self.constant("embed_zero", pack(zero, self.form.bits))]
        how = dict(bits=self.form.bits, block_size=self.form.block, gather_axis=0, quantize_axis=1)
        return self.add("GatherBlockQuantized", "/embed", *inputs, domain=_MICROSOFT, **how)

    def linear(self, x: str, name: str, weight: np.ndarray) -> str:
        if not self.form.bits:
            return self.add("MatMul", f"/{name}", x, self.constant(f"{name}.weight", weight.T.copy()))
        q, scale, zero = quantise(weight, self.form)
        inputs = [x, self.constant(f"{name}.q", pack(q, self.form.bits))]
        inputs.append(self.constant(f"{name}.scales", scale.reshape(-1)))
        if zero is not None:
            inputs.append(self.constant(f"{name}.zero", pack(zero, self.form.bits).reshape(-1)))
        rows, depth = weight.shape
        how = dict(K=depth, N=rows, bits=self.form.bits, block_size=self.form.block)
        how["accuracy_level"] = self.form.accuracy_level
        return self.add("MatMulNBits", f"/{name}", *inputs, domain=_MICROSOFT, **how)

    def norm(self, x: str, skip: str, name: str) -> tuple[str, str]:
        """Returns the norm of x + skip, and the sum."""
        scale = self.constant(name, self.weights[name])
        epsilon = self.shape.epsilon
        if not skip:
            how: dict[str, object] = dict(axis=-1, epsilon=epsilon, stash_type=1)
            return self.add("SimplifiedLayerNormalization", f"/{name}", x, scale, **how), x
        y = self.add(
            "SkipSimplifiedLayerNormalization",
            f"/{name}",
            x,
            skip,
            scale,
            outputs=4,
            domain=_MICROSOFT,
            epsilon=epsilon,
        )
        return y, y.replace("output_0", "output_3")

    def attend(self, x: str, layer: int) -> str:
        shape, prefix = self.shape, f"model.layers.{layer}.self_attn"
        q, k, v = (self.linear(x, f"{prefix}.{p}_proj", self.weights[f"{prefix}.{p}_proj.weight"]) for p in "qkv")
        inputs = [v, f"past_key_values.{layer}.key", f"past_key_values.{layer}.value", "seqlens_k", "total"]
        if self.form.fused:
            inputs += ["cos_cache", "sin_cache"]
        else:
            rotate = lambda value, heads, name: self.add(
                "RotaryEmbedding",
                f"/{prefix}/{name}_rotary",
                value,
                "position_ids",
                "cos_cache",
                "sin_cache",
                domain=_MICROSOFT,
                interleaved=0,
                num_heads=heads,
                rotary_embedding_dim=0,
            )
            q, k = rotate(q, shape.heads, "q"), rotate(k, shape.key_heads, "k")
        results = [f"/{prefix}/gqa/output_0", f"present.{layer}.key", f"present.{layer}.value"]
        how = dict(num_heads=shape.heads, kv_num_heads=shape.key_heads, scale=shape.size**-0.5)
        how |= dict(local_window_size=-1, softcap=0.0, do_rotary=int(self.form.fused), rotary_interleaved=0)
        self.nodes.append(
            helper.make_node(
                "GroupQueryAttention", [q, k, *inputs], results, name=f"/{prefix}/gqa", domain=_MICROSOFT, **how
            )
        )
        return self.linear(results[0], f"{prefix}.o_proj", self.weights[f"{prefix}.o_proj.weight"])

    def feed_forward(self, x: str, layer: int) -> str:
        prefix = f"model.layers.{layer}.mlp"
        gate, up = (
            self.linear(x, f"{prefix}.{p}", self.weights[f"{prefix}.{p}.weight"]) for p in ("gate_proj", "up_proj")
        )
        active = self.add("Mul", f"/{prefix}/act", gate, self.add("Sigmoid", f"/{prefix}/sigmoid", gate))
        product = self.add("Mul", f"/{prefix}/mul", active, up)
        return self.linear(product, f"{prefix}.down_proj", self.weights[f"{prefix}.down_proj.weight"])

    def add_lengths(self) -> None:
        """Adds the number of tokens of each sequence - 1, and the largest one."""
        ones = self.constant("one", np.array([1], np.int64))
        self.add("ReduceSum", "/lengths", "attention_mask", ones, keepdims=1)
        self.add("Sub", "/lasts", "/lengths/output_0", ones)
        self.nodes.append(helper.make_node("Cast", ["/lasts/output_0"], ["seqlens_k"], to=TensorProto.INT32))
        self.add("Shape", "/mask_shape", "attention_mask")
        self.add("Gather", "/total", "/mask_shape/output_0", self.constant("index", np.array(1, np.int64)), axis=0)
        self.nodes.append(helper.make_node("Cast", ["/total/output_0"], ["total"], to=TensorProto.INT32))

    def add_angles(self) -> None:
        half = self.shape.size // 2
        frequencies = self.shape.rotary_base ** (-np.arange(half) / half)
        angles = np.arange(self.shape.positions)[:, None] * frequencies.astype(np.float32)
        self.constant("cos_cache", np.cos(angles).astype(np.float32))
        self.constant("sin_cache", np.sin(angles).astype(np.float32))

    def write(self, path: Path) -> None:
        shape = self.shape
        self.add_lengths()
        self.add_angles()
        x, skip = self.embed(), ""
        for layer in range(shape.layers):
            prefix = f"model.layers.{layer}"
            y, x = self.norm(x, skip, f"{prefix}.input_layernorm.weight")
            y, x = self.norm(x, self.attend(y, layer), f"{prefix}.post_attention_layernorm.weight")
            skip = self.feed_forward(y, layer)
        y, _ = self.norm(x, skip, "model.norm.weight")
        if self.form.last_row:
            y = self.add("Gather", "/last", y, self.constant("last", np.array([-1], np.int64)), axis=1)
        head = self.weights.get("lm_head.weight", self.weights["model.embed_tokens.weight"])
        self.nodes.append(helper.make_node("Identity", [self.linear(y, "lm_head", head)], ["logits"]))
        is_large = shape.width >= 512
        onnx.save(self.model(len(head)), str(path), save_as_external_data=is_large, location=path.name + ".data")

    def model(self, vocabulary: int) -> onnx.ModelProto:
        info, shape = helper.make_tensor_value_info, self.shape
        inputs = [info("input_ids", TensorProto.INT64, ["batch_size", "sequence_length"])]
        inputs.append(info("attention_mask", TensorProto.INT64, ["batch_size", "total_sequence_length"]))
        if not self.form.fused:
            inputs.append(info("position_ids", TensorProto.INT64, ["batch_size", "sequence_length"]))
        rows = 1 if self.form.last_row else "sequence_length"
        outputs = [info("logits", TensorProto.FLOAT, ["batch_size", rows, vocabulary])]
        for layer in range(shape.layers):
            for kind in ("key", "value"):
                for values, name, length in (
                    (inputs, f"past_key_values.{layer}.{kind}", "past_sequence_length"),
                    (outputs, f"present.{layer}.{kind}", "total_sequence_length"),
                ):
                    dims = ["batch_size", shape.key_heads, length, shape.size]
                    values.append(info(name, TensorProto.FLOAT, dims))
        constants = [numpy_helper.from_array(array, name) for name, array in self.constants.items()]
        graph = helper.make_graph(self.nodes, "main_graph", inputs, outputs, constants)
        opsets = [helper.make_opsetid("", 14), helper.make_opsetid(_MICROSOFT, 1)]
        return helper.make_model(graph, opset_imports=opsets, ir_version=8)


def write(path: Path, shape: Shape, form: Form, weights: Arrays) -> None:
    """Writes a decoder with the weights of a checkpoint of the architecture llama, by their names there."""
    Writer(shape, form, weights).write(path)


def random_weights(shape: Shape, vocabulary: int, hidden: int, seed: int = 0) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(seed)
    matrix = lambda rows, depth: (rng.standard_normal((rows, depth)) / depth**0.5).astype(np.float32)
    scale = lambda: rng.uniform(0.5, 1.5, shape.width).astype(np.float32)
    keys = shape.key_heads * shape.size
    weights = {"model.embed_tokens.weight": 3 * matrix(vocabulary, shape.width), "model.norm.weight": scale()}
    for layer in range(shape.layers):
        prefix = f"model.layers.{layer}"
        for part, rows in (("q", shape.width), ("k", keys), ("v", keys), ("o", shape.width)):
            weights[f"{prefix}.self_attn.{part}_proj.weight"] = matrix(rows, shape.width)
        for part, rows, depth in (
            ("gate", hidden, shape.width),
            ("up", hidden, shape.width),
            ("down", shape.width, hidden),
        ):
            weights[f"{prefix}.mlp.{part}_proj.weight"] = matrix(rows, depth)
        weights |= {f"{prefix}.{name}_layernorm.weight": scale() for name in ("input", "post_attention")}
    return weights
