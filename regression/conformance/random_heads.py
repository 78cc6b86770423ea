# SPDX-License-Identifier: Apache-2.0
"""Random detectors: scales of a picture, joined upwards and downwards, and heads with large results.

An NPU needs long to store these results, so it computes them early and reserves their places while it computes the
rest. Heads come last, as in files, or anywhere; their parts are joined by channels, and those of all scales by
positions, as rows or unchanged.

    build/bin/tessera-python regression/conformance/random_heads.py --seeds 0:500 [--isa npu-base] [--keep FOLDER]

INT8: the integers of the device reference.
"""
from __future__ import annotations

import functools
import sys
from pathlib import Path

import numpy as np
import onnx
import seed_runner
import random_network
import random_quantized
from random_network import positions
from random_quantized import NPUS, VARIANTS, QuantisedNetwork


class Detector(QuantisedNetwork):
    """A network generated from a seed; `results` are its results, which are integers."""

    def __init__(self, seed: int) -> None:
        super().__init__(seed)
        self.results: list[str] = []

    def conv(self, x: str, channels: int, kernel: int, step: int = 1, group: int = 1) -> str:
        n, c, h, w = self.values[x]
        pad = kernel // 2
        places = [positions(size, kernel, step, (pad, pad)) for size in (h, w)]
        depth = c // group
        operands = [x, self.weights(channels, depth, kernel, kernel, scale=(depth * kernel * kernel) ** -0.5)]
        operands += [self.weights(channels)] if self.rng.random() < 0.7 else []
        window = {"kernel_shape": [kernel] * 2, "strides": [step] * 2, "pads": [pad] * 4, "group": group}
        return self.node("Conv", operands, [(n, channels, *places)], **window)[0]

    def layer(self, x: str, channels: int) -> str:
        """Adds a convolution of any usual kind."""
        kind = self.rng.choice(["1x1", "1x1", "3x3", "depthwise"])
        if kind == "depthwise":
            return self.conv(x, self.values[x][1], 3, group=self.values[x][1])
        return self.conv(x, channels, 1 if kind == "1x1" else 3)

    def join(self, parts: list[str], axis: int) -> str:
        """Joins parts by data movement only, if the parts have the same scale."""
        shape = [*self.values[parts[0]]]
        shape[axis] = sum(self.values[part][axis] for part in parts)
        whole = self.raw("Concat", parts, axis=axis)[0]
        return self.quantise(whole, tuple(shape), self.parameters[parts[0]])

    def upwards(self, deep: str, shallow: str) -> str:
        """Enlarges the deeper scale to the size of the other one and joins both."""
        (n, c, *_), (_, _, h, w) = self.values[deep], self.values[shallow]
        larger = self.node(
            "Resize",
            [deep, "", "", self.ints(n, c, h, w)],
            [(n, c, h, w)],
            mode="nearest",
            coordinate_transformation_mode="asymmetric",
        )[0]
        return self.conv(self.join([larger, shallow], 1), c, 1)

    def head(self, x: str) -> None:
        r = self.rng
        parts, stem = [], x
        for _ in range(r.randint(0, 2)):
            stem = self.layer(stem, r.choice([16, 24, 32]))
        shared = self.draw_parameters()
        for channels in r.sample([1, 4, r.randint(2, 20), r.randint(20, 90)], r.randint(1, 3)):
            part = stem
            for _ in range(r.randint(0, 3)):
                part = self.layer(part, r.choice([16, 24, 32]))
            part = self.conv(part, channels, 1)
            parts.append(self.quantise(part, self.values.pop(part), shared if r.random() < 0.8 else None))
        if len(parts) > 1 and r.random() < 0.8:
            parts = [self.join(parts, 1)]
        self.results += parts

    def finish_results(self) -> None:
        """Joins parts with the same number of channels by positions to one result."""
        r = self.rng
        if len({self.values[part][:2] for part in self.results}) > 1 or len(self.results) == 1 or r.random() < 0.3:
            return
        rows = []
        for part in self.results:
            n, c, h, w = self.values[part]
            flat = self.raw("Reshape", [part, self.ints(n, c, h * w)])[0]
            rows.append(self.quantise(flat, (n, c, h * w), self.parameters[part]))
        whole = self.join(rows, 2)
        if r.random() < 0.5:
            n, c, places = self.values[whole]
            turned = self.raw("Transpose", [whole], perm=[0, 2, 1])[0]
            whole = self.quantise(turned, (n, places, c), self.parameters[whole])
        self.results = [whole]


def make_network(seed: int, steps: int | None = None) -> tuple[onnx.ModelProto, dict[str, np.ndarray]]:
    """Returns the network of a seed with its inputs; only its first `steps` heads if given."""
    net = Detector(seed)
    r = net.rng
    h, w = (r.choice([r.randint(6, 19), r.randint(20, 34)]) for _ in range(2))
    channels = r.choice([8, 16, 24, 32, 40])
    # Sizes that halve, so that deeper scales fit shallower ones.
    net.add_input((r.choice([1, 1, 1, 2]), channels, 2 * h, 2 * w))
    scales = [net.layer(next(reversed(net.values)), channels)]
    for _ in range(r.randint(1, 2)):
        scales.append(net.layer(net.conv(scales[-1], r.choice([channels, 2 * channels]), 3, 2), channels))
    if r.random() < 0.7:
        for index in reversed(range(len(scales) - 1)):
            scales[index] = net.upwards(scales[index + 1], scales[index])
    order = [*range(len(scales))]
    if r.random() < 0.3:
        r.shuffle(order)
    if r.random() < 0.6:  # and downwards again, before the heads
        for index in range(1, len(scales)):
            below = net.conv(scales[index - 1], channels, 3, 2)
            fits = net.values[below][2:] == net.values[scales[index]][2:]
            scales[index] = net.conv(net.join([below, scales[index]], 1), channels, 1) if fits else scales[index]
    for index in order[: max(steps, 1) if steps is not None else None]:
        net.head(scales[index])
    net.finish_results()
    outputs = [
        (net.integers[name], random_quantized.ELEMENTS[net.parameters[name][1].dtype.type], net.values[name])
        for name in net.results
    ]
    return random_network.finish(net, seed, outputs), net.inputs


check = functools.partial(random_quantized.check, make=make_network)


def run_seed(seed: int, isa: str, keep: Path | None = None) -> str:
    """Returns the fault of the network of a seed, or ""."""
    return random_quantized.run_seed(seed, isa, keep, make_network)[0]


def main() -> int:
    arguments = seed_runner.parse_arguments(__doc__, (*VARIANTS, *NPUS))
    return seed_runner.report_faults(run_seed, (*VARIANTS, *NPUS), arguments)


if __name__ == "__main__":
    sys.exit(main())
