# SPDX-License-Identifier: Apache-2.0
"""Random networks whose batch, and often height and width, are known at run time: one compile, then runs at several
sizes against the file compiled for this size alone, and against onnxruntime.

    build/bin/tessera-python regression/conformance/random_sizes.py --seeds 0:500 [--isa x86-v2] [--keep FOLDER]

Floats, also with integer weights, within a tolerance; INT8 and INT16, by ranges or by quantise/dequantise pairs of the
network, bit by bit unless an op stays float, also against the reference. All sizes run in one context; between them, a
size outside its range must be rejected. Where a network does not hold in a whole range, the range is narrowed; networks
without an open dim that holds are counted.
"""
from __future__ import annotations

import json
import random
import re
import sys
from pathlib import Path
from typing import Callable, Mapping, Sequence

import numpy as np
import onnxruntime
import random_graphs
import seed_runner
import random_narrow
import random_quantized
from engines import Compiler, StageError, deploy, in_child, run_bmodel, run_reference
from guarded import guarded
from open_networks import OpenNetwork
from random_attention import write_table

from tessera import safetensors_io

REJECTED = "rejected"
NO_SUCH_SIZES = "dimension [0-9]+ .* of input|of the net becomes|the model takes|no stage of the net takes"
VARIANTS = random_quantized.supported_isas("x86-avx512vnni", "x86-avx512bf16")
MODES = ("F32", "INT8", "QDQ", "F32", "BF16", "INT8", "QDQ", "F16")  # by seed
MORE_MODES = ("F32", "INT16", "W8", "W4", "DYNAMIC_INT8")  # in place of the second F32, by seed
# A difference of floats may move a number that a run quantises by a step.
TOLERANCE = {"F32": random_graphs.TOLERANCE, **random_narrow.TOLERANCE}
TOLERANCE.update(dict.fromkeys(("DYNAMIC_INT8", "W8A8", "W4A8"), 4e-2))
TABLES, INTEGERS = ("INT8", "INT16"), ("INT8", "INT16", "QDQ")
NETWORKS = {"QDQ": random_quantized.make_network}
Arrays = Mapping[str, np.ndarray]


def run_at_sizes(bmodel: Path, given: Sequence[Arrays], outside: Arrays) -> list[dict[str, np.ndarray]]:
    """Runs a file with inputs of several sizes in one context, first to last and again, on 1 and 2 threads; all runs of
    a size must give the same bits. Returns no outputs for sizes that the file rejects because some must be equal. The
    inputs `outside` must be rejected. Rejected sizes must not disturb later runs."""

    def work() -> list[dict[str, np.ndarray]]:
        import tessera.runtime as rt

        results: list[dict[str, np.ndarray]] = [{} for _ in given]
        for threads in (1, 2):
            net = rt.load(str(bmodel), threads=threads).net()
            for turn, i in enumerate((*range(len(given)), *range(len(given)))):
                placed = {name: guarded(array, at_end=turn % 2 == 0) for name, array in given[i].items()}
                try:
                    outputs = {name: np.array(array) for name, array in net(placed).items()}
                except ValueError as error:
                    if not re.search(NO_SUCH_SIZES, str(error)):
                        raise
                    outputs = {}
                for name, array in outputs.items():
                    if array.tobytes() != results[i].setdefault(name, array).tobytes():
                        raise ValueError(f"run {turn} on {threads} threads has other bits in '{name}'")
                if turn == 0:
                    check_rejected(net, outside)
        return results

    return in_child("run", work)  # type: ignore[return-value]


def check_rejected(net: object, outside: Arrays) -> None:
    try:
        net(dict(outside))  # type: ignore[operator]
    except ValueError as error:
        if not any(name in str(error) for name in outside):
            raise ValueError(f"the rejection of a size names no input: {error}") from error
    else:
        raise ValueError("a size outside its range was accepted")


class OrtError(Exception):
    """onnxruntime rejected the inputs."""


def mode_of(seed: int) -> str:
    return MORE_MODES[seed // 8 % len(MORE_MODES)] if seed % 8 == 3 else MODES[seed % 8]


class Network:
    """An open network in a folder, imported open or for given sizes, and deployed in its mode."""

    def __init__(self, compiler: Compiler, seed: int, isa: str, folder: Path, mode: str, network: OpenNetwork) -> None:
        self.compiler, self.isa, self.folder, self.mode, self.open = compiler, isa, folder, mode, network
        self.seed, self.path = seed, folder / "model.onnx"
        self.path.write_bytes(self.open.model.SerializeToString())
        self.ranges: dict[str, np.ndarray] = {}
        self.requantise = random.Random(seed).choice(random_quantized.MODES)
        self.flags: Sequence[str] = ()  # of every deployment
        self.has_floats = True  # some results are not integers, so that bits may differ

    def tolerance(self) -> float:
        """Returns 0 if all results are integers. Behind a float op, an integer may round to its neighbour."""
        if self.mode not in INTEGERS:
            return TOLERANCE[self.mode]
        return TOLERANCE["BF16"] if self.has_floats else 0.0

    def compile_open(self) -> Path:
        """Compiles with open dims. Where the network does not hold at all sizes of a range, narrows the range."""
        while True:
            try:
                bmodel = self.compile("open", "--dims", self.open.ranges())
                break
            except StageError as fault:
                if not fault.rejected:
                    raise
                if not self.open.narrow(str(fault)) or all(len(e.sizes()) == 1 for e in self.open.symbols.values()):
                    raise StageError(REJECTED, str(fault)) from fault
        info = self.compiler.info
        floats = any(op["type"] == "F32" for op in info.get("quantization", {}).get("ops", []))
        self.has_floats = floats or bool(info["bit_equal_except"])
        return bmodel

    def compile(self, name: str, *flags: str) -> Path:
        folder = self.folder / name
        folder.mkdir(exist_ok=True)
        mlir = folder / "model_top.mlir"
        self.compiler("import", "import", "--onnx", self.path, "--output", mlir, *flags)
        if self.mode == "QDQ":
            return self._deploy(mlir, "--requantize", self.requantise)
        if self.mode not in TABLES:
            return self._deploy(mlir, "--quantize", self.mode)
        table, model_hash = folder / "table.json", str(self.compiler("info", "info", "--mlir", mlir)["model_hash"])
        write_table(table, model_hash, self.ranges, self.seed)
        while True:  # tensors of the network may be folded at other sizes
            try:
                return self._deploy(mlir, "--quantize", self.mode, "--calibration-table", str(table))
            except StageError as fault:
                unknown = re.search("the model has no tensor '([^']*)'", str(fault))
                if not unknown:
                    raise
                remove_entry(table, unknown[1])

    def _deploy(self, mlir: Path, *flags: str) -> Path:
        return deploy(self.compiler, mlir, self.isa, *flags, *self.flags)

    def compile_at(self, name: str, given: Arrays) -> Path:
        shapes = ",".join(f"{name}={'x'.join(map(str, array.shape))}" for name, array in given.items())
        return self.compile(name, "--input-shapes", shapes)

    def calibrate(self) -> None:
        """Stores the values of all tensors at the network's own sizes."""
        mlir, given, results = (self.folder / name for name in ("own_top.mlir", "in.safetensors", "out.safetensors"))
        self.compiler("import", "import", "--onnx", self.path, "--output", mlir, "--input-shapes", self._own_shapes())
        safetensors_io.save(given, self.open.inputs)
        flags = ("--mlir", mlir, "--input", given, "--output", results, "--all")
        self.compiler("reference", "reference", *flags)
        self.ranges = safetensors_io.load(results)

    def _own_shapes(self) -> str:
        return ",".join(f"{name}={'x'.join(map(str, array.shape))}" for name, array in self.open.inputs.items())

    def outside(self) -> dict[str, np.ndarray]:
        """Returns inputs of which one has a size outside its range."""
        sizes = {name: each.own for name, each in self.open.symbols.items()}
        name = next(iter(sizes))
        sizes[name] = self.open.symbols[name].most + 1
        return self.open.inputs_at(sizes)

    def expected(self, name: str, given: Arrays) -> list[tuple[str, Arrays]]:
        """Returns outputs to compare with, and who computed them; none if the network does not hold at these sizes."""
        try:
            outputs = expected_outputs(self.path, given) if self.mode == "F32" else {}
            if any(array.size == 0 for array in given.values()):
                outputs = {}  # ONNX does not define means of no elements
            fixed = self.compile_at(name, given)
            if self.mode in INTEGERS and count_reductions(fixed.parent) != count_reductions(self.folder / "open"):
                return []  # a mean of one element folds, but the open file rounds it to the scale of the mean
            exact = self.mode in INTEGERS and not self.has_floats
            integers = self.evaluate(fixed.parent, given) if exact else {}
            of_open = self.evaluate_open(given) if exact else {}
        except (StageError, OrtError) as error:
            if isinstance(error, StageError) and (error.stage != "import" or self.mode == "F32"):
                raise
            return []
        wanted: list[tuple[str, Arrays]] = [(f"the fixed file at {name}", run_bmodel(fixed, given, threads=(1,)))]
        more = (("onnxruntime", outputs), ("the reference", integers), ("the reference of the open model", of_open))
        return wanted + [(f"{who} at {name}", arrays) for who, arrays in more if arrays]

    def evaluate_open(self, given: Arrays) -> Arrays:
        """Returns the outputs of the reference for the open network; none for sizes that contradict each other."""
        try:
            return self.evaluate(self.folder / "open", given)
        except StageError as error:
            if "; the size is " not in str(error):
                raise
            return {}

    def evaluate(self, folder: Path, given: Arrays) -> Arrays:
        """Returns the outputs of the reference for the network in a folder, in integers."""
        flags: tuple[object, ...] = ("--quantize", "INT8", "--calibration-table", folder / "table.json")
        if self.mode == "QDQ":
            flags = ("--requantize", self.requantise)
        elif self.mode == "INT16":
            flags = ("--int16", *flags[2:])
        return random_quantized.reference(self.compiler, folder / "model_top.mlir", given, "--device", *flags)


def count_reductions(folder: Path) -> int:
    return (folder / "model_top.mlir").read_text().count("top.reduce ")


def remove_entry(table: Path, name: str) -> None:
    content = json.loads(table.read_text())
    content["tensors"] = [entry for entry in content["tensors"] if entry["name"] != name]
    table.write_text(json.dumps(content))


def compare(what: str, got: Arrays, wanted: Arrays, tolerance: float) -> None:
    for name, value in wanted.items():
        if got[name].shape != value.shape or got[name].dtype != value.dtype:
            raise StageError(
                "compare", f"'{name}' is {got[name].dtype}{got[name].shape}, {what} {value.dtype}{value.shape}"
            )
        if tolerance == 0.0:
            if not np.array_equal(got[name], value, equal_nan=value.dtype.kind == "f"):
                raise StageError(
                    "compare", f"{int((got[name] != value).sum())} of {value.size} differ: '{name}', {what}"
                )
            continue
        finite = np.abs(value[np.isfinite(value)])
        scale = tolerance * max(float(finite.max(initial=0)), 1e-2)
        if not np.allclose(got[name], value, rtol=tolerance, atol=scale, equal_nan=True):
            error = float(np.nan_to_num(np.abs(got[name] - value)).max())
            raise StageError("compare", f"'{name}' {value.shape}: error {error:.3g} of {scale / tolerance:.3g}, {what}")


def expected_outputs(path: Path, given: Arrays) -> dict[str, np.ndarray]:
    """Returns onnxruntime's outputs. Raises OrtError if the network does not hold at these sizes."""
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    names = [output.name for output in session.get_outputs()]
    try:
        return dict(zip(names, session.run(names, dict(given))))
    except Exception as error:  # the binding raises many types
        raise OrtError(str(error)) from error


def check(compiler: Compiler, seed: int, isa: str, folder: Path) -> None:
    mode = mode_of(seed)
    model, inputs = NETWORKS.get(mode, random_graphs.make_network)(seed, None)
    network = Network(compiler, seed, isa, folder, mode, OpenNetwork(model, inputs, seed))
    if not network.open.symbols:
        raise StageError(REJECTED, "no open dim")
    check_network(network)


def check_network(network: Network, tolerance: float | None = None) -> None:
    """Raises StageError if the open file computes something else than files of fixed sizes, or onnxruntime, within a
    tolerance; None: that of the mode."""
    if network.mode in TABLES:
        network.calibrate()
    bmodel = network.compile_open()
    if tolerance is None:
        tolerance = network.tolerance()
    cases = []
    for sizes in network.open.draw_sizes():
        given, name = network.open.inputs_at(sizes), "_".join(f"{name}.{size}" for name, size in sizes.items())
        wanted = network.expected(name, given)
        if wanted:
            cases.append((given, wanted))
    results = run_at_sizes(bmodel, [given for given, _ in cases], network.outside()) if cases else []
    for (_, wanted), got in zip(cases, results):
        for what, outputs in wanted if got else []:
            compare(what, got, outputs, tolerance)


def run_seed(seed: int, isa: str, keep: Path | None = None) -> str:
    """Returns the fault of the network of a seed, or ""."""
    fault = seed_runner.run_in_folder(check, "sizes", seed, isa, keep)
    return fault and f"{mode_of(seed)} on {isa}, {fault}"


def run_seeds(
    seeds: Sequence[int], jobs: int, isa: str | None = None, keep: Path | None = None
) -> tuple[list[str], int]:
    """Returns the faults of many seeds, and how many networks were rejected."""
    return faults_of(run_seed, seeds, jobs, isa, keep)


def faults_of(
    run_seed: Callable[..., str], seeds: Sequence[int], jobs: int, isa: str | None, keep: Path | None
) -> tuple[list[str], int]:
    """Returns the faults that `run_seed` finds, and how many networks were rejected."""
    texts = list(filter(None, seed_runner.map_seeds(run_seed, VARIANTS, seeds, jobs, isa, keep)))
    faults = [text for text in texts if f", {REJECTED}:" not in text]
    return faults, len(texts) - len(faults)


def main(description: str | None, run: Callable[..., tuple[list[str], int]], variants: Sequence[str] = VARIANTS) -> int:
    """Runs the command of a generator whose `run` returns the faults of seeds and how many networks were rejected."""
    arguments = seed_runner.parse_arguments(description, variants)
    faults, rejected = run(arguments.seeds, arguments.jobs, arguments.isa, arguments.keep)
    print("\n".join(faults))
    print(f"{len(faults)} of {len(arguments.seeds)} networks fail, {rejected} are rejected")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main(__doc__, run_seeds))
