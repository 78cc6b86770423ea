# SPDX-License-Identifier: Apache-2.0
"""Builds networks of the zoo with random weights and exports them; runs with .venv-zoo's Python.

    python export.py FOLDER NAME:EXPORTER [NAME:EXPORTER ..]

writes FOLDER/NAME.EXPORTER/model.onnx and inputs.json (name, shape, kind of every input), with open dims also open.json
(the value of --dims, shapes to run, why no more dims are open), or error.txt where the network cannot be built or
exported. Says one line per network on stdout when it is done.
"""
from __future__ import annotations

import inspect
import json
import shutil
import signal
import sys
import traceback
import warnings
import zlib
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Mapping

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent))

import open_sizes  # noqa: E402
import registry  # noqa: E402

if TYPE_CHECKING:
    import onnx
    import torch

Axes = Mapping[str, Mapping[int, str]]
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
    must_run(folder / "model.onnx", draw(network.inputs, np.random.default_rng(seed_of(network.name))))


def draw(inputs: Mapping[str, registry.Input], generator: np.random.Generator) -> dict[str, np.ndarray]:
    return {name: info.sample(generator) for name, info in inputs.items()}


def build(network: registry.Network) -> torch.nn.Module:
    import torch

    torch.manual_seed(seed_of(network.name))
    module = network.build().eval().requires_grad_(False)
    awaken(module)
    return module


def write(
    module: torch.nn.Module, exporter: str, opset: int, arrays: Mapping[str, np.ndarray], path: Path, axes: Axes = {}
) -> None:
    """Exports the module. axes: names of open dims by input and axis. Passes on all exceptions of the exporter."""
    import torch

    tensors = tuple(torch.from_numpy(array) for array in arrays.values())
    names = list(arrays)
    if exporter == "torchscript":
        torch.onnx.export(
            module,
            tensors,
            str(path),
            input_names=names,
            opset_version=min(opset, 17),
            dynamo=False,
            dynamic_axes=axes or None,
        )
    else:
        torch.onnx.export(
            module,
            tensors,
            str(path),
            input_names=names,
            opset_version=opset,
            dynamo=True,
            external_data=False,
            verbose=False,
            dynamic_shapes=dynamic_shapes(module, axes) if axes else None,
        )


def dynamic_shapes(module: torch.nn.Module, axes: Axes) -> tuple:
    """Returns the argument of this name: one entry per argument of forward, of which one may stand for all inputs."""
    each = tuple(dict(names) for names in axes.values())
    kinds = {parameter.kind for parameter in inspect.signature(module.forward).parameters.values()}
    return (each,) if inspect.Parameter.VAR_POSITIONAL in kinds else each


def export_open(network: registry.Network, exporter: str, folder: Path) -> None:
    """Exports the network with as many open dims as the exporter and the network allow, and describes them in
    `folder`/open.json."""
    import onnx

    module, failed, path = build(network), {}, folder / "model.onnx"
    for opened in open_sizes.levels(network.inputs):
        generator = np.random.default_rng(seed_of(network.name))
        arrays = draw(opened.exported(), generator)
        try:
            write(module, registry.OPEN[exporter], network.opset, arrays, path, opened.axes)
            dims = open_sizes.named_ranges(opened, open_names(onnx.load(str(path), load_external_data=False), opened))
            for shapes in opened.tried():
                inputs = {name: replace(each, shape=shapes[name]) for name, each in network.inputs.items()}
                must_run(path, draw(inputs, generator))
        except Exception as error:  # a library may fail in any way; fewer open dims may do
            failed[",".join(opened.symbols)] = one_line(error)
            continue
        content = {"dims": dims, "shapes": opened.tried(), "failed": failed}
        (folder / "open.json").write_text(json.dumps(content))
        return
    raise RuntimeError(next(reversed(failed.values()), "no dim to open"))


def open_names(model: onnx.ModelProto, opened: open_sizes.OpenInputs) -> dict[str, list[str]]:
    """Returns the names of the dims of a file's inputs. Raises if the exporter fixed a dim that was to be open."""
    result = {}
    for value in model.graph.input:
        dims = value.type.tensor_type.shape.dim
        result[value.name] = [dim.dim_param for dim in dims]
        fixed = [axis for axis in opened.axes.get(value.name, ()) if dims[axis].HasField("dim_value")]
        if fixed:
            raise RuntimeError(f"the exporter fixes dim {fixed[0]} of {value.name} at {dims[fixed[0]].dim_value}")
    return result


def export(network: registry.Network, exporter: str, folder: Path) -> None:
    """Builds the network and exports it to `folder`/model.onnx. Passes on all exceptions of torch and the exporter."""
    module = build(network)
    generator = np.random.default_rng(seed_of(network.name))
    arrays = draw(network.inputs, generator)
    path = folder / "model.onnx"
    write(module, exporter, network.opset, arrays, path)
    must_run(path, arrays)
    if network.after:
        plain = path.rename(folder / "float.onnx")
        samples = [draw(network.inputs, generator) for _ in range(SAMPLES)]
        registry.resolve(network.after)(plain, path, samples)
        for left in ("float.onnx", "prepared.onnx"):
            (folder / left).unlink(missing_ok=True)


def must_run(path: Path, arrays: dict[str, np.ndarray]) -> None:
    """Raises if onnxruntime cannot run the file: that is a fault of the exporter, and there is nothing to compare
    Tessera with."""
    import onnxruntime

    session = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    session.run(None, {given.name: arrays[given.name] for given in session.get_inputs()})


def one_line(error: Exception) -> str:
    lines = str(error).strip().splitlines()
    return f"{type(error).__name__}: {lines[0] if lines else ''}"[:300]


def one(network: registry.Network, exporter: str, folder: Path) -> str:
    """Exports one network into `folder`. Returns the error, or ""."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    signal.alarm(LIMIT_SECONDS)
    try:
        others = {**dict.fromkeys(registry.OPTIMISED, optimise), **dict.fromkeys(registry.OPEN, export_open)}
        others.get(exporter, export)(network, exporter, folder)
        (folder / "inputs.json").write_text(
            json.dumps({key: asdict(value) for key, value in network.inputs.items()}, indent=1)
        )
        return ""
    except Exception as error:  # a library may fail in any way; the other networks continue
        (folder / "model.onnx").unlink(missing_ok=True)
        (folder / "error.txt").write_text(traceback.format_exc())
        return one_line(error)
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
