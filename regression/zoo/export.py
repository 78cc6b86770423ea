# SPDX-License-Identifier: Apache-2.0
"""Builds networks of the zoo with random weights and exports them; runs with .venv-zoo's Python.

    python export.py FOLDER NAME:EXPORTER [NAME:EXPORTER ..]

writes FOLDER/NAME.EXPORTER/model.onnx and inputs.json (name, shape, kind of every input), or error.txt where the
network cannot be built or exported. Says one line per network on stdout when it is done.
"""
from __future__ import annotations

import json
import shutil
import signal
import sys
import traceback
import warnings
import zlib
from dataclasses import asdict
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent))

import registry  # noqa: E402

LIMIT_SECONDS = 420
SAMPLES = 4


def seed_of(name: str) -> int:
    return zlib.crc32(name.encode()) % (1 << 31)


def awaken(module) -> None:
    """Gives what initialisation leaves constant (norms, biases, layer scales, running statistics) values of a trained
    network's size, so that no part of the network is dead or the identity."""
    import torch

    generator = torch.Generator().manual_seed(1)

    def noise(like, spread: float):
        return torch.randn(like.shape, generator=generator).to(like) * spread

    with torch.no_grad():
        for parameter in module.parameters():
            if not parameter.is_floating_point() or parameter.numel() < 2 or float(parameter.std()) > 1e-7:
                continue
            value = float(parameter.flatten()[0])
            if parameter.dim() >= 2 and parameter.numel() > max(parameter.shape) and value == 0:
                parameter.add_(noise(parameter, parameter[0].numel() ** -0.5))
            elif 0 < abs(value) < 0.05:  # a layer scale, which is initialised close to zero
                parameter.copy_(0.3 + noise(parameter, 0.1))
            else:
                parameter.add_(noise(parameter, 0.1))
        for name, buffer in module.named_buffers():
            if name.endswith("running_mean"):
                buffer.add_(noise(buffer, 0.1))
            elif name.endswith("running_var"):
                buffer.mul_(1 + noise(buffer, 0.3).clamp(-0.6, 0.6))


def optimise(network: registry.Network, exporter: str, folder: Path) -> None:
    """Writes the file of the exporter "dynamo" as onnxruntime optimises it for this machine."""
    import onnxruntime

    source = folder.with_name(f"{network.name}.dynamo")
    if not any((source / name).exists() for name in ("inputs.json", "error.txt")):
        one(network, "dynamo", source)
    if not (source / "model.onnx").exists():
        raise RuntimeError("torch does not export the network")
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    options.optimized_model_filepath = str(folder / "model.onnx")
    options.graph_optimization_level = getattr(onnxruntime.GraphOptimizationLevel, registry.OPTIMISED[exporter])
    onnxruntime.InferenceSession(str(source / "model.onnx"), options, providers=["CPUExecutionProvider"])
    must_run(folder / "model.onnx", sample(network, np.random.default_rng(seed_of(network.name))))


def sample(network: registry.Network, generator: np.random.Generator) -> dict[str, np.ndarray]:
    return {name: info.sample(generator) for name, info in network.inputs.items()}


def export(network: registry.Network, exporter: str, folder: Path) -> None:
    """Builds the network and exports it to `folder`/model.onnx. Passes on all exceptions of torch and the exporter."""
    import torch

    torch.manual_seed(seed_of(network.name))
    module = network.build().eval().requires_grad_(False)
    awaken(module)
    generator = np.random.default_rng(seed_of(network.name))
    arrays = sample(network, generator)
    tensors = tuple(torch.from_numpy(array) for array in arrays.values())
    path = folder / "model.onnx"
    names = list(network.inputs)
    if exporter == "torchscript":
        torch.onnx.export(
            module, tensors, str(path), input_names=names, opset_version=min(network.opset, 17), dynamo=False
        )
    else:
        torch.onnx.export(
            module,
            tensors,
            str(path),
            input_names=names,
            opset_version=network.opset,
            dynamo=True,
            external_data=False,
            verbose=False,
        )
    must_run(path, arrays)
    if network.after:
        plain = path.rename(folder / "float.onnx")
        samples = [sample(network, generator) for _ in range(SAMPLES)]
        registry.resolve(network.after)(plain, path, samples)
        for left in ("float.onnx", "prepared.onnx"):
            (folder / left).unlink(missing_ok=True)


def must_run(path: Path, arrays: dict[str, np.ndarray]) -> None:
    """Raises if onnxruntime cannot run the file: that is a fault of the exporter, and there is nothing to compare
    Tessera with."""
    import onnxruntime

    session = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    session.run(None, {given.name: arrays[given.name] for given in session.get_inputs()})


def one(network: registry.Network, exporter: str, folder: Path) -> str:
    """Exports one network into `folder`. Returns the error, or ""."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    signal.alarm(LIMIT_SECONDS)
    try:
        (optimise if exporter in registry.OPTIMISED else export)(network, exporter, folder)
        (folder / "inputs.json").write_text(
            json.dumps({key: asdict(value) for key, value in network.inputs.items()}, indent=1)
        )
        return ""
    except Exception as error:  # a library may fail in any way; the other networks continue
        (folder / "model.onnx").unlink(missing_ok=True)
        (folder / "error.txt").write_text(traceback.format_exc())
        lines = str(error).strip().splitlines()
        return f"{type(error).__name__}: {lines[0] if lines else ''}"[:300]
    finally:
        signal.alarm(0)


def _too_long(*_: object) -> None:
    raise TimeoutError(f"took longer than {LIMIT_SECONDS} s")


def main() -> int:
    root = Path(sys.argv[1])
    signal.signal(signal.SIGALRM, _too_long)
    warnings.simplefilter("ignore")
    import logging
    import torch

    logging.disable(logging.WARNING)
    torch.set_num_threads(1)
    torch.backends.mha.set_fastpath_enabled(False)  # fused layers that exporters do not know
    known = [*registry.all_networks(), *registry.full_size_networks()]
    networks = {network.name: network for network in known}
    for text in sys.argv[2:]:
        name, exporter = text.split(":")
        error = one(networks[name], exporter, root / f"{name}.{exporter}")
        print(f"{name}:{exporter} {error or 'exported'}", flush=True)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
