#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Exports networks in the shape of Whisper and T5, with random weights, as optimum lays out its files:
encoder_model.onnx, decoder_model.onnx and decoder_with_past_model.onnx. Needs torch and transformers.

    python regression/export_seq2seq.py whisper FOLDER          # the tiny networks in regression/models/seq2seq
    python regression/export_seq2seq.py t5 FOLDER --real_shape  # the shapes of whisper-tiny and t5-small

expected.json receives an input (a seed for Whisper, tokens for T5) and the tokens that PyTorch chooses greedily.
"""
from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import torch
from transformers import T5Config, T5ForConditionalGeneration, WhisperConfig, WhisperForConditionalGeneration
from transformers.cache_utils import DynamicCache, EncoderDecoderCache
from transformers.modeling_outputs import BaseModelOutput

STEPS = 24


def whisper(real: bool) -> Any:
    if real:
        return WhisperForConditionalGeneration(WhisperConfig())  # the defaults are those of whisper-tiny
    config = WhisperConfig(
        vocab_size=64, d_model=16, encoder_layers=1, decoder_layers=2, encoder_attention_heads=2,
        decoder_attention_heads=2, encoder_ffn_dim=32, decoder_ffn_dim=32, max_source_positions=50,
        max_target_positions=32, decoder_start_token_id=1, pad_token_id=0, bos_token_id=0, eos_token_id=2,
        suppress_tokens=None, begin_suppress_tokens=None,
    )  # fmt: skip
    return WhisperForConditionalGeneration(config)


def t5(real: bool) -> Any:
    size = dict(d_model=512, num_layers=6) if real else dict(d_model=16, num_layers=2, d_kv=8, d_ff=32, num_heads=2)
    vocabulary = 32128 if real else 64
    config = T5Config(vocab_size=vocabulary, decoder_start_token_id=0, attn_implementation="eager", **size)
    return T5ForConditionalGeneration(config)


def to_pairs(cache: EncoderDecoderCache) -> list[tuple[torch.Tensor, ...]]:
    parts = zip(cache.self_attention_cache.layers, cache.cross_attention_cache.layers)
    return [(own.keys, own.values, cross.keys, cross.values) for own, cross in parts]


def to_cache(pairs: list[tuple[torch.Tensor, ...]]) -> EncoderDecoderCache:
    own, cross = DynamicCache(), DynamicCache()
    for layer, (key, value, cross_key, cross_value) in enumerate(pairs):
        own.update(key, value, layer)
        cross.update(cross_key, cross_value, layer)
    return EncoderDecoderCache(own, cross)


class Encoder(torch.nn.Module):
    def __init__(self, model: Any) -> None:
        super().__init__()
        self.encoder = model.get_encoder()

    def forward(self, x: torch.Tensor, mask: torch.Tensor | None = None) -> torch.Tensor:
        return self.encoder(x, attention_mask=mask).last_hidden_state if mask is not None else self.encoder(x)[0]


class Decoder(torch.nn.Module):
    """A decoder without, or with earlier tokens, whose arguments are optional."""

    def __init__(self, model: Any, has_past: bool) -> None:
        super().__init__()
        self.model, self.has_past = model, has_past

    def forward(self, tokens: torch.Tensor, hidden: Any, mask: Any, past: Any) -> Any:
        cache = to_cache(past) if self.has_past else EncoderDecoderCache(DynamicCache(), DynamicCache())
        encoded = BaseModelOutput(last_hidden_state=hidden if hidden is not None else past[0][2][:, 0])
        keywords = {} if mask is None else {"attention_mask": mask}
        result = self.model(
            decoder_input_ids=tokens, encoder_outputs=encoded, past_key_values=cache, use_cache=True, **keywords
        )
        pairs = to_pairs(result.past_key_values)
        return result.logits, [pair[:2] if self.has_past else pair for pair in pairs]


def export(
    module: torch.nn.Module, arguments: Any, path: Path, inputs: list[str], outputs: list[str], open: Any
) -> None:
    torch.onnx.export(
        module.eval(), arguments, str(path), dynamo=True, opset_version=18, external_data=False,
        input_names=inputs, output_names=outputs, dynamic_shapes=open, verbose=False,
    )  # fmt: skip
    graph = onnx.load(path)
    graph.graph.ClearField("value_info")
    for part in (graph, graph.graph, *graph.graph.node, *graph.graph.initializer, *graph.graph.input):
        part.ClearField("metadata_props")  # stack traces
    onnx.save(graph, path)


def names(layers: int, prefix: str, kinds: tuple[str, ...]) -> list[str]:
    return [f"{prefix}.{i}.{kind}.{part}" for i in range(layers) for kind in kinds for part in ("key", "value")]


def choose_tokens(model: Any, x: torch.Tensor, prompt: list[int]) -> list[int]:
    """Returns the tokens that follow `prompt`, chosen greedily without caches."""
    name = "input_ids" if x.dtype == torch.int64 else "input_features"
    tokens = torch.tensor([prompt])
    with torch.no_grad():
        for _ in range(STEPS):
            chosen = model(**{name: x}, decoder_input_ids=tokens).logits[:, -1:].argmax(-1)
            if chosen.item() == model.config.eos_token_id:
                break
            tokens = torch.cat([tokens, chosen], 1)
    return [int(token) for token in tokens[0, len(prompt) :]]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("kind", choices=("whisper", "t5"))
    parser.add_argument("folder", type=Path)
    parser.add_argument("--real_shape", action="store_true")
    args = parser.parse_args()
    args.folder.mkdir(parents=True, exist_ok=True)
    is_text, auto = args.kind == "t5", torch.export.Dim.AUTO
    torch.manual_seed(0)
    model = {"whisper": whisper, "t5": t5}[args.kind](args.real_shape).eval()
    for parameter in model.parameters():
        parameter.data += (0.02 if args.real_shape and not is_text else 1.0) * torch.randn_like(
            parameter
        )  # so that the most likely tokens vary
    layers = model.config.num_layers if is_text else model.config.decoder_layers
    frames = None if is_text else 2 * model.config.max_source_positions
    rng = np.random.default_rng(0)
    source = rng.integers(3, 60, 11).tolist()
    if is_text:
        x: torch.Tensor = torch.tensor([source])
        mask = torch.ones_like(x)
        export(
            Encoder(model), (x, mask), args.folder / "encoder_model.onnx",
            ["input_ids", "attention_mask"], ["last_hidden_state"], {"x": {1: auto}, "mask": {1: auto}},
        )  # fmt: skip
    else:
        x = torch.tensor(rng.standard_normal((1, model.config.num_mel_bins, frames)), dtype=torch.float32)
        mask = None
        names_in = ["input_features"]
        export(Encoder(model), (x,), args.folder / "encoder_model.onnx", names_in, ["last_hidden_state"], None)
    with torch.no_grad():
        hidden = Encoder(model)(x, mask)
        first = Decoder(model, False)
        pairs = first(torch.ones((1, 3), dtype=torch.int64), hidden, mask, None)[1]
    open_mask = {1: auto} if is_text else None
    shared = ["encoder_attention_mask"] if is_text else []
    kinds = ("decoder", "encoder")
    export(
        first, (torch.ones((1, 3), dtype=torch.int64), hidden, mask, None), args.folder / "decoder_model.onnx",
        ["input_ids", "encoder_hidden_states", *shared], ["logits", *names(layers, "present", kinds)],
        {"tokens": {1: auto}, "hidden": {1: auto} if is_text else None, "mask": open_mask, "past": None},
    )  # fmt: skip
    cross = {2: auto} if is_text else None
    export(
        Decoder(model, True), (torch.ones((1, 1), dtype=torch.int64), None, mask, pairs),
        args.folder / "decoder_with_past_model.onnx",
        ["input_ids", *shared, *names(layers, "past_key_values", kinds)],
        ["logits", *names(layers, "present", ("decoder",))],
        {"tokens": None, "hidden": None, "mask": open_mask, "past": [({2: auto}, {2: auto}, cross, cross)] * layers},
    )  # fmt: skip
    (args.folder / "config.json").write_text(json.dumps(model.config.to_dict(), indent=1, default=str))
    prompt = [model.config.decoder_start_token_id, *([] if is_text else [5, 6])]
    expected = {"source": source if is_text else 0, "prompt": prompt, "tokens": choose_tokens(model, x, prompt)}
    (args.folder / "expected.json").write_text(json.dumps(expected) + "\n")


if __name__ == "__main__":
    main()
