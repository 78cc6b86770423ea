# SPDX-License-Identifier: Apache-2.0
"""The engines that llm.py measures beside Tessera: llama.cpp, and onnxruntime with a decoder of the same shape."""
from __future__ import annotations

import importlib.util
import struct
import sys
from pathlib import Path
from typing import Any, BinaryIO, Sequence

import numpy as np

LLAMA_CPP, ONNXRUNTIME = "llama.cpp", "onnxruntime"


class LlamaCpp:
    def __init__(self, model: str, threads: int, context: int) -> None:
        import llama_cpp

        self._api = llama_cpp
        self._model = llama_cpp.Llama(
            model, n_ctx=context, n_batch=512, n_threads=threads, n_threads_batch=threads, verbose=False
        )
        self._context = self._model.ctx
        self._vocabulary = self._model.n_vocab()

    def feed(self, tokens: Sequence[int]) -> int:
        for begin in range(0, len(tokens), 512):
            part = list(tokens[begin : begin + 512])
            array = (self._api.llama_token * len(part))(*part)
            if self._api.llama_decode(self._context, self._api.llama_batch_get_one(array, len(part))):
                raise RuntimeError("llama_decode failed")
        logits = self._api.llama_get_logits_ith(self._context, -1)
        return int(np.ctypeslib.as_array(logits, (self._vocabulary,)).argmax())

    def truncate(self, length: int) -> None:
        self._api.llama_memory_seq_rm(self._api.llama_get_memory(self._context), 0, length, -1)


class OnnxRuntime:
    """Runs a decoder in the form of onnxruntime-genai as that library does: past and present share their memory."""

    def __init__(self, model: str, threads: int, context: int) -> None:
        import onnxruntime

        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = threads
        self._make = onnxruntime.OrtValue.ortvalue_from_numpy
        self._session = onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
        self._binding = self._session.io_binding()
        self._caches = []
        for entry in self._session.get_inputs():
            if entry.name.startswith("past_key_values."):
                cache = self._make(np.zeros((1, entry.shape[1], context, entry.shape[3]), np.float32))
                self._binding.bind_ortvalue_input(entry.name, cache)
                self._binding.bind_ortvalue_output(entry.name.replace("past_key_values", "present"), cache)
                self._caches.append(cache)
        self._length = 0

    def feed(self, tokens: Sequence[int]) -> int:
        self._length += len(tokens)
        self._binding.bind_cpu_input("input_ids", np.array([tokens], np.int64))
        self._binding.bind_cpu_input("attention_mask", np.ones((1, self._length), np.int64))
        self._binding.bind_output("logits")
        self._session.run_with_iobinding(self._binding)
        logits = self._binding.get_outputs()[-1].numpy()
        return int(logits[0, -1].argmax())

    def truncate(self, length: int) -> None:
        self._length = length


def installed() -> list[str]:
    """Returns the peers whose packages are installed."""
    packages = {LLAMA_CPP: "llama_cpp", ONNXRUNTIME: "onnxruntime"}
    return [peer for peer, package in packages.items() if importlib.util.find_spec(package)]


_SCALARS = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q", 12: "d"}


def _read(file: BinaryIO, code: str) -> Any:
    return struct.unpack("<" + code, file.read(struct.calcsize("<" + code)))[0]


def _value(file: BinaryIO, kind: int) -> Any:
    if kind == 8:
        return file.read(_read(file, "Q"))
    if kind == 9:
        element, count = _read(file, "I"), _read(file, "Q")
        return [_value(file, element) for _ in range(count)]
    return _read(file, _SCALARS[kind])


def read_metadata(path: Path) -> dict[str, Any]:
    """Returns the metadata of a GGUF file; texts are bytes."""
    with open(path, "rb") as file:
        file.seek(16)
        count = _read(file, "Q")
        return {_value(file, 8).decode(): _value(file, _read(file, "I")) for _ in range(count)}


def write_decoder(model: Path, context: int, path: Path) -> None:
    """Writes a decoder of the shape of a GGUF file with architecture llama for onnxruntime: random weights of 4 bits
    with zero points in groups of 32, as Q4_1 has them, whose inputs are quantised to int8 (accuracy level 4). As in
    llama.cpp and Tessera, only the last row has logits."""
    sys.path.append(str(Path(__file__).parents[1] / "test"))
    import genai_files  # imports onnx, which would add to the measured memory

    metadata = read_metadata(model)
    number = lambda name: metadata[f"llama.{name}"]
    shape = genai_files.Shape(
        number("block_count"),
        number("embedding_length"),
        number("attention.head_count"),
        number("attention.head_count_kv"),
        positions=context,
    )
    form = genai_files.Form(bits=4, accuracy_level=4, asymmetric=True, quantised_embedding=True, last_row=True)
    vocabulary = len(metadata["tokenizer.ggml.tokens"])
    weights = genai_files.random_weights(shape, vocabulary, number("feed_forward_length"))
    genai_files.write(path, shape, form, weights)
