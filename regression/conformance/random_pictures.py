# SPDX-License-Identifier: Apache-2.0
"""Random first layers: quantised pictures with few channels, and the convolutions that read them.

They have kernels, strides and pads of any kind as well as common ones, odd sizes, several images, blocks of pixels as
channels, a picture of floats, of bytes or converted from bytes, and sometimes a second reader of the quantised picture.

    build/bin/tessera-python regression/conformance/random_pictures.py --seeds 0:500 [--isa npu-base] [--keep FOLDER]

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
from onnx import TensorProto
from random_network import positions
from random_quantized import NPUS, VARIANTS, QuantisedNetwork

ELEMENTS = {np.float32: TensorProto.FLOAT, np.uint8: TensorProto.UINT8}  # of the input
MOST_ELEMENTS = 300_000  # of a picture, and of a layer's result: several tiles of a chip


class PictureNet(QuantisedNetwork):
    """A network generated from a seed, which begins with the picture."""

    def add_picture(self) -> str:
        r = self.rng
        n, c = r.choice([1, 1, 1, 1, 2, 3]), r.choice([1, 2, 3, 3, 3, 3, 4, 5, 7])
        tall, wide = r.choice([(9, 90), (60, 150), (100, 330)]), r.choice([(5, 70), (40, 130), (100, 300)])
        self.usual = r.random() < 0.5  # common first layers, for which chips have special forms
        if self.usual:
            n, c, tall, wide = 1, r.choice([1, 3, 3]), (100, 250), (100, 250)
        shape = (n, c, r.randint(*tall), r.randint(*wide))
        random_network.Network.add_input(self, shape)
        del self.values["x0"]
        name = "x0"
        if r.random() < 0.2:  # of bytes, as from a camera
            self.inputs[name] = self.array_rng.integers(0, 256, shape).astype(np.uint8)
            name = self.raw("Cast", [name], to=TensorProto.FLOAT)[0]
            name = self.raw("Mul", [name, self.constant(np.array(r.choice([1 / 255, 0.017]), np.float32))])[0]
        if r.random() < 0.3:
            name = self.normalised(name, c)
        name = self.quantise(name, shape)
        return self.blocks(name) if shape[2] % 2 == 0 and shape[3] % 2 == 0 and r.random() < 0.5 else name

    def normalised(self, name: str, channels: int) -> str:
        """Normalises by a mean and a deviation per channel, or of all channels."""
        shape = self.rng.choice([(1, channels, 1, 1), ()])
        mean = self.constant(self.array_rng.uniform(-0.5, 0.5, shape).astype(np.float32))
        name = self.raw("Sub", [name, mean])[0]
        return self.raw("Div", [name, self.constant(self.array_rng.uniform(0.3, 2, shape).astype(np.float32))])[0]

    def blocks(self, x: str) -> str:
        """Moves pixels of 2 x 2 blocks to channels, as detectors do."""
        n, c, h, w = self.values.pop(x)
        parts = [
            self.raw("Slice", [x, self.ints(i, j), self.ints(h, w), self.ints(2, 3), self.ints(2, 2)])[0]
            for i, j in ((0, 0), (1, 0), (0, 1), (1, 1))
        ]
        whole = self.raw("Concat", parts, axis=1)[0]
        return self.quantise(whole, (n, 4 * c, h // 2, w // 2), self.parameters[x])


def picture_conv(net: PictureNet, picture: str) -> bool:
    """Adds a convolution of the picture, or of another one's result."""
    r = net.rng
    x = picture if r.random() < (0.1 if net.usual else 0.6) else [*net.values][-1]
    n, c, h, w = net.values[x]
    kernel = r.choice([(3, 3)] * 4 + [(5, 5), (7, 7), (6, 6), (4, 4), (2, 2), (1, 3), (3, 1), (5, 2), (8, 3), (1, 1)])
    steps = r.choice([(1, 1), (2, 2), (2, 2), (2, 2), (3, 3), (4, 4), (1, 2), (2, 1), (5, 3)])
    usual = net.usual and x == picture
    if usual:
        kernel, steps = r.choice([(3, 3), (5, 5), (7, 7)]), r.choice([(1, 1), (2, 2), (2, 2)])
    dilations = [1 if net.usual or r.random() < 0.9 else r.randint(2, 3) for _ in range(2)]
    pads = [r.choice([k // 2, r.randint(0, k)]) for k in kernel * 2]
    oh, ow = (positions(s, kernel[i], steps[i], (pads[i], pads[i + 2]), dilations[i]) for i, s in enumerate((h, w)))
    m = r.choice([16, 24, 32]) if usual else r.choice([r.randint(1, 20), r.choice([16, 24, 32, 40, 64, 70])])
    group = c if r.random() < 0.05 else 1
    m = m // group * group or group
    if min(oh, ow) < 1 or n * m * oh * ow > MOST_ELEMENTS:
        return False
    operands = [x, net.weights(m, c // group, *kernel, scale=(c // group * float(np.prod(kernel))) ** -0.5)]
    operands += [net.weights(m)] if r.random() < 0.6 else []
    net.node("Conv", operands, [(n, m, oh, ow)], strides=steps, pads=pads, dilations=dilations, group=group)
    return True


def make_network(seed: int, steps: int | None = None) -> tuple[onnx.ModelProto, dict[str, np.ndarray]]:
    """Returns the network of a seed with its inputs; only its first `steps` steps if given."""
    net = PictureNet(seed)
    picture = net.add_picture()
    count, done = net.rng.choice([1, 1, 2, 3]), 0
    while done < (count if steps is None else min(steps, count)):
        done += picture_conv(net, picture)
    outputs = [
        (net.integers[name], random_quantized.ELEMENTS[net.parameters[name][1].dtype.type], net.values[name])
        for name in random_network.choose_outputs(net, seed, net.values)
    ]
    model = random_network.finish(net, seed, outputs)
    model.graph.input[0].type.tensor_type.elem_type = ELEMENTS[net.inputs["x0"].dtype.type]
    return model, net.inputs


check = functools.partial(random_quantized.check, make=make_network)


def run_seed(seed: int, isa: str, keep: Path | None = None) -> str:
    """Returns the fault of the network of a seed, or ""."""
    return random_quantized.run_seed(seed, isa, keep, make_network)[0]


def main() -> int:
    arguments = seed_runner.parse_arguments(__doc__, (*VARIANTS, *NPUS))
    return seed_runner.report_faults(run_seed, (*VARIANTS, *NPUS), arguments)


if __name__ == "__main__":
    sys.exit(main())
