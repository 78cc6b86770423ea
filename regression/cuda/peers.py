#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Times networks with PyTorch on a GPU, to compare with on_device.py: eagerly, as a CUDA graph and with torch.compile.

    peers.py --json peers.json resnet50:F16:1 vit_small_patch16_224:F16:1 bert:F16:1 [--compile] [--ceilings]

Needs torch with CUDA, timm, and transformers for bert. A case is NETWORK:PRECISION:BATCH; F32 does not use TF32.
Weights are random. Inputs and outputs stay on the GPU; times are those between two CUDA events, in microseconds.
--ceilings measures a copy within the card's memory and a large matmul.
"""
from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any, Callable

import torch

TYPES = {"F32": torch.float32, "F16": torch.float16, "BF16": torch.bfloat16}
TOKENS = 128
Call = Callable[[], Any]


def network(name: str, kind: torch.dtype, batch: int) -> Call:
    """Returns a call of the network on random inputs."""
    if name == "bert":
        from transformers import BertConfig, BertModel

        model = BertModel(BertConfig()).cuda().eval().to(kind)
        ids = torch.randint(0, 1000, (batch, TOKENS), device="cuda")
        inputs = (ids, torch.ones_like(ids), torch.zeros_like(ids))
    else:
        import timm

        model = timm.create_model(name).cuda().eval().to(kind)
        images = torch.randn(batch, 3, 224, 224, device="cuda").to(kind)
        inputs = (images.to(memory_format=torch.channels_last),)
        model = model.to(memory_format=torch.channels_last)
    call: Call = lambda: model(*inputs)
    call.module, call.inputs = model, inputs  # type: ignore[attr-defined]
    return call


def median(call: Call, seconds: float) -> float:
    """Returns the median microseconds of a call between two events, after warm-up runs."""
    begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    times: list[float] = []
    for _ in range(5):
        call()
    torch.cuda.synchronize()
    while len(times) < 10 or sum(times) < 1e6 * seconds and len(times) < 1000:
        begin.record()
        call()
        end.record()
        end.synchronize()
        times.append(begin.elapsed_time(end) * 1e3)
    return round(sorted(times)[len(times) // 2], 2)


def graph_of(call: Call) -> Call:
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(3):
            call()
    torch.cuda.current_stream().wait_stream(side)
    captured = torch.cuda.CUDAGraph()
    with torch.cuda.graph(captured):
        call()
    return captured.replay


def compiled(call: Any) -> Call:
    module = torch.compile(call.module)
    module(*call.inputs)
    return graph_of(lambda: module(*call.inputs))


def measure(case: str, args: argparse.Namespace) -> dict[str, Any]:
    name, precision, batch = case.split(":")
    row: dict[str, Any] = {"network": name, "precision": precision, "batch": int(batch)}
    call = network(name, TYPES[precision], int(batch))
    ways = {"eager_us": lambda: call, "graph_us": lambda: graph_of(call)}
    if args.compile:
        ways["compile_graph_us"] = lambda: compiled(call)
    for key, make in ways.items():
        try:
            row[key] = median(make(), args.seconds)
        except Exception as error:  # torch raises many types; the other figures are measured nevertheless
            row[key.replace("_us", "_error")] = (str(error) or type(error).__name__).splitlines()[0][:200]
    return row


def ceilings(seconds: float) -> dict[str, float]:
    """Returns the rates of a copy (bytes read and written) and of matmuls of 8192 x 8192 x 8192."""
    source = torch.randn(1 << 29, device="cuda")
    target = torch.empty_like(source)
    found = {"copy_gbps": round(2 * source.nbytes / median(lambda: target.copy_(source), seconds) / 1e3, 1)}
    del source, target
    for precision, kind in TYPES.items():
        a, b = (torch.randn(8192, 8192, device="cuda").to(kind) for _ in range(2))
        found[f"matmul_{precision.lower()}_tflops"] = round(2 * 8192**3 / median(lambda: a @ b, seconds) / 1e6, 1)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("cases", nargs="*", metavar="NETWORK:PRECISION:BATCH")
    parser.add_argument("--compile", action="store_true")
    parser.add_argument("--ceilings", action="store_true")
    parser.add_argument("--seconds", type=float, default=0.3, help="of timed runs of each figure")
    parser.add_argument("--json", type=Path)
    args = parser.parse_args()
    info: dict[str, Any] = {"torch": torch.__version__, "device": torch.cuda.get_device_name()}
    if args.ceilings:
        info["ceilings"] = ceilings(args.seconds)
    print(json.dumps(info), flush=True)
    info["cases"] = []
    with torch.no_grad():
        for case in args.cases:
            info["cases"].append(measure(case, args))
            print(json.dumps(info["cases"][-1]), flush=True)
            if args.json:
                args.json.write_text(json.dumps(info, indent=1) + "\n")


if __name__ == "__main__":
    main()
