# SPDX-License-Identifier: Apache-2.0
"""Tests networks whose branches and loops are decided at run time, against onnxruntime."""
from __future__ import annotations

import json
import threading
import time
from pathlib import Path
from typing import Mapping, Sequence

import numpy as np
import onnx
import onnxruntime
import pytest
from conftest import check, run_tool
from onnx import TensorProto, helper, numpy_helper

Arrays = Mapping[str, np.ndarray]
FLOAT, INT64, BOOL = TensorProto.FLOAT, TensorProto.INT64, TensorProto.BOOL
WEIGHTS = (np.random.default_rng(3).standard_normal((8, 8)) * 0.3).astype(np.float32)


def value(name: str, shape: Sequence[int | str], kind: int = FLOAT) -> onnx.ValueInfoProto:
    return helper.make_tensor_value_info(name, kind, shape)


def node(kind: str, inputs: str, outputs: str, **attributes: object) -> onnx.NodeProto:
    return helper.make_node(kind, inputs.replace("-", "").split(" "), outputs.split(), name=outputs, **attributes)


def graph(
    nodes: Sequence[onnx.NodeProto],
    outputs: Sequence[onnx.ValueInfoProto],
    inputs: Sequence[onnx.ValueInfoProto] = (),
    constants: Arrays | None = None,
) -> onnx.GraphProto:
    held = [numpy_helper.from_array(np.asarray(array), name) for name, array in (constants or {}).items()]
    return helper.make_graph(nodes, "graph", inputs, outputs, held)


def save(path: Path, made: onnx.GraphProto) -> Path:
    onnx.save(helper.make_model(made, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)
    return path


def compile_model(model: Path, *flags: str, imports: Sequence[str] = ()) -> Path:
    """Returns the .bmodel of an ONNX file; `flags` are those of model_deploy, `imports` those of model_transform."""
    mlir, bmodel = model.with_suffix(".mlir"), model.with_suffix(".bmodel")
    name = ("--model_name", model.stem, "--model_def", model, *imports)
    check(run_tool("model_transform", *name, "--mlir", mlir, "--not_inference"))
    check(
        run_tool("model_deploy", "--mlir", mlir, "--model", bmodel, "--skip_validation", *(flags or ("--chip", "x86")))
    )
    return bmodel


def compare(model: Path, bmodel: Path, runs: Sequence[Arrays], tolerance: float = 1e-5) -> None:
    """Checks runs of one context, first to last, against onnxruntime."""
    import tessera.runtime as rt

    session = onnxruntime.InferenceSession(str(model), providers=["CPUExecutionProvider"])
    net = rt.load(str(bmodel)).net()
    for number, inputs in enumerate(runs):
        wanted = session.run(None, dict(inputs))
        for want, got in zip(wanted, net(dict(inputs)).values()):
            np.testing.assert_allclose(got, want, rtol=tolerance, atol=tolerance, err_msg=f"run {number}")


def branches() -> onnx.GraphProto:
    """Branches that capture a value and an input; the condition is an input."""
    then = graph([node("MatMul", "a w", "t0"), node("Relu", "t0", "t1")], [value("t1", [4, 8])])
    other = graph([node("Sub", "x a", "e1")], [value("e1", [4, 8])])
    nodes = [
        node("Sigmoid", "x", "a"),
        node("If", "c", "r", then_branch=then, else_branch=other),
        node("Add", "r a", "y"),
    ]
    return graph(nodes, [value("y", [4, 8])], [value("c", [], BOOL), value("x", [4, 8])], {"w": WEIGHTS})


def run_of(seed: int, **others: object) -> dict[str, np.ndarray]:
    x = np.random.default_rng(seed).standard_normal((4, 8)).astype(np.float32)
    return {"x": x, **{name: np.asarray(each) for name, each in others.items()}}


def test_branches(tmp_path: Path) -> None:
    model = save(tmp_path / "branches.onnx", branches())
    compare(model, compile_model(model), [run_of(seed, c=seed % 3 == 0) for seed in range(5)])


def body_inputs(*carried: onnx.ValueInfoProto) -> list[onnx.ValueInfoProto]:
    return [value("i", [], INT64), value("going", [], BOOL), *carried]


def test_loop_with_trip_count_and_condition(tmp_path: Path) -> None:
    """The carried state is read by two ops; the condition may be false at once, after some passes, or never."""
    body = graph(
        [
            node("MatMul", "s w", "m"),
            node("Add", "m s", "m2"),
            node("Tanh", "m2", "s2"),
            node("Add", "k one", "k2"),
            node("Less", "k2 limit", "on"),
        ],
        [value("on", [], BOOL), value("s2", [4, 8]), value("k2", [])],
        body_inputs(value("s", [4, 8]), value("k", [])),
    )
    made = graph(
        [node("Loop", "n start x zero", "y passes", body=body)],
        [value("y", [4, 8]), value("passes", [])],
        [value("n", [], INT64), value("start", [], BOOL), value("x", [4, 8]), value("limit", [])],
        {"w": WEIGHTS, "one": np.float32(1), "zero": np.float32(0)},
    )
    model = save(tmp_path / "loop.onnx", made)
    runs = [
        run_of(seed, n=np.int64(n), start=start, limit=np.float32(limit))
        for seed, (n, start, limit) in enumerate(
            [(5, True, 100), (0, True, 100), (7, False, 100), (9, True, 3), (1, True, 0), (-2, True, 9), (40, True, 30)]
        )
    ]
    compare(model, compile_model(model), runs)


def test_values_change_places(tmp_path: Path) -> None:
    """An if within a loop; two carried values change places; one initial value is used twice."""
    small = graph([node("Add", "p q", "sum")], [value("sum", [3])])
    large = graph([node("Identity", "q", "same")], [value("same", [3])])
    body = graph(
        [
            node("Cast", "i", "f", to=FLOAT),
            node("Less", "f two", "early"),
            node("If", "early", "p2", then_branch=small, else_branch=large),
            node("Add", "p f", "q2"),
            node("Identity", "going", "on"),
        ],
        [value("on", [], BOOL), value("p2", [3]), value("r", [3]), value("q2", [3])],
        body_inputs(value("p", [3]), value("q", [3]), value("r", [3])),
    )
    made = graph(
        [node("Loop", "n - x z x", "a b d", body=body)],
        [value("a", [3]), value("b", [3]), value("d", [3])],
        [value("n", [], INT64), value("x", [3]), value("z", [3])],
        {"two": np.float32(2)},
    )
    model = save(tmp_path / "swap.onnx", made)
    x, z = np.array([1, 2, 3], np.float32), np.array([-4, 5, 0.5], np.float32)
    compare(model, compile_model(model), [{"n": np.array(n), "x": x, "z": z} for n in (4, 0, 1, 2, 9)])


def stacking_body() -> onnx.GraphProto:
    return graph(
        [
            node("MatMul", "s w", "m"),
            node("Tanh", "m", "s2"),
            node("ReduceSum", "s2", "total", keepdims=0),
            node("Identity", "going", "on"),
        ],
        [value("on", [], BOOL), value("s2", [4, 8]), value("s2", [4, 8]), value("total", [])],
        body_inputs(value("s", [4, 8])),
    )


def test_stacked_values(tmp_path: Path) -> None:
    """The number of passes is known, but too large to unroll."""
    made = graph(
        [node("Loop", "n - x", "y rows totals", body=stacking_body())],
        [value("y", [4, 8]), value("rows", [1500, 4, 8]), value("totals", [1500])],
        [value("x", [4, 8])],
        {"w": WEIGHTS * 2, "n": np.int64(1500)},
    )
    model = save(tmp_path / "stack.onnx", made)
    compare(model, compile_model(model), [run_of(0), run_of(1)])


def test_long_scan(tmp_path: Path) -> None:
    """One input is scanned backwards along its second dim; the body reads a value of the main graph."""
    body = graph(
        [node("Mul", "s decay", "m"), node("Add", "m u", "a"), node("Sub", "a v", "s2"), node("Add", "s2 k", "o")],
        [value("s2", [8]), value("o", [8])],
        [value("s", [8]), value("u", [8]), value("v", [8])],
    )
    scan = node("Scan", "s0 u v", "y o", body=body, num_scan_inputs=2)
    scan.attribute.extend(
        [helper.make_attribute("scan_input_axes", [0, 1]), helper.make_attribute("scan_input_directions", [0, 1])]
    )
    made = graph(
        [node("Relu", "s0", "k"), scan],
        [value("y", [8]), value("o", [1200, 8])],
        [value("s0", [8]), value("u", [1200, 8]), value("v", [8, 1200])],
        {"decay": np.float32(0.9)},
    )
    model = save(tmp_path / "scan.onnx", made)
    rng = np.random.default_rng(5)
    shapes = {"s0": [8], "u": [1200, 8], "v": [8, 1200]}
    run = {name: rng.standard_normal(shape).astype(np.float32) for name, shape in shapes.items()}
    compare(model, compile_model(model), [run])


def rejection(model: Path) -> str:
    """Returns the message with which model_deploy rejects a network that model_transform imports."""
    mlir = model.with_suffix(".mlir")
    check(run_tool("model_transform", "--model_name", "g", "--model_def", model, "--mlir", mlir, "--not_inference"))
    output = ("--model", model.with_suffix(".bmodel"), "--skip_validation")
    refused = run_tool("model_deploy", "--mlir", mlir, "--chip", "x86", *output)
    assert refused.returncode == 4, refused.stderr
    return refused.stderr


def test_captured_value_lives_until_the_loop_ends(tmp_path: Path) -> None:
    """Its last reader comes first in the body; the results of the if must not take its bytes."""
    small = graph([node("Tanh", "a", "t")], [value("t", [4, 8])])
    large = graph([node("Neg", "a", "g")], [value("g", [4, 8])])
    body = graph(
        [
            node("Add", "s k", "a"),
            node("ReduceSum", "a", "total", keepdims=0),
            node("Less", "total limit", "few"),
            node("If", "few", "r", then_branch=small, else_branch=large),
            node("Mul", "r half", "s2"),
            node("Identity", "going", "on"),
        ],
        [value("on", [], BOOL), value("s2", [4, 8])],
        body_inputs(value("s", [4, 8])),
    )
    made = graph(
        [node("Sigmoid", "x", "k"), node("Loop", "n - x", "y", body=body)],
        [value("y", [4, 8])],
        [value("n", [], INT64), value("x", [4, 8]), value("limit", [])],
        {"half": np.float32(0.5)},
    )
    model = save(tmp_path / "captured.onnx", made)
    compare(model, compile_model(model), [run_of(n, n=np.array(n), limit=np.float32(12)) for n in (1, 2, 3, 6)])


def test_open_sizes(tmp_path: Path) -> None:
    """A loop in a branch; captured and carried values have a batch that is known at run time."""
    body = graph(
        [
            node("MatMul", "s w", "m"),
            node("Add", "m a", "m2"),
            node("Tanh", "m2", "s2"),
            node("Identity", "going", "on"),
        ],
        [value("on", [], BOOL), value("s2", ["batch", 8])],
        body_inputs(value("s", ["batch", 8])),
    )
    then = graph([node("Loop", "n - x", "l", body=body)], [value("l", ["batch", 8])])
    other = graph([node("Sub", "x a", "e")], [value("e", ["batch", 8])])
    made = graph(
        [
            node("Sigmoid", "x", "a"),
            node("If", "c", "r", then_branch=then, else_branch=other),
            node("Softmax", "r", "y", axis=0),
        ],
        [value("y", ["batch", 8])],
        [value("c", [], BOOL), value("n", [], INT64), value("x", ["batch", 8])],
        {"w": WEIGHTS},
    )
    model = save(tmp_path / "open.onnx", made)
    rng = np.random.default_rng(2)
    runs = [
        {"c": np.array(flag), "n": np.array(batch - 1), "x": rng.standard_normal((batch, 8)).astype(np.float32)}
        for batch, flag in ((3, True), (8, False), (1, True), (8, True), (2, False), (1, False))
    ]
    compare(model, compile_model(model, imports=("--dims", "batch=1..8")), runs)


def test_state(tmp_path: Path) -> None:
    """A loop reads the old state in every pass and computes the new one, which is a view of another shape."""
    import tessera.runtime as rt

    body = graph(
        [
            node("Reshape", "v shape", "f"),
            node("Add", "f old", "g"),
            node("Tanh", "g", "h"),
            node("Reshape", "h long", "v2"),
            node("Identity", "going", "on"),
        ],
        [value("on", [], BOOL), value("v2", [32])],
        body_inputs(value("v", [32])),
    )
    made = graph(
        [
            node("Reshape", "x long", "flat"),
            node("Loop", "n - flat", "r", body=body),
            node("Reshape", "r shape", "new"),
            node("Add", "new old", "y"),
        ],
        [value("y", [4, 8]), value("new", [4, 8])],
        [value("n", [], INT64), value("x", [4, 8]), value("old", [4, 8])],
        {"shape": np.int64([4, 8]), "long": np.int64([32])},
    )
    model = save(tmp_path / "state.onnx", made)
    net = rt.load(str(compile_model(model, imports=("--state", "old=new")))).net()
    session = onnxruntime.InferenceSession(str(model), providers=["CPUExecutionProvider"])
    old = np.zeros((4, 8), np.float32)
    for passes in (2, 0, 5, 1):
        inputs = run_of(passes, n=np.array(passes))
        y, old = session.run(None, {**inputs, "old": old})
        np.testing.assert_allclose(net(inputs)["y"], y, rtol=1e-5, atol=1e-5)


def test_cancel_of_an_endless_loop(tmp_path: Path) -> None:
    """The condition depends on an input, which can keep it true for ever. The context can run again afterwards."""
    import tessera.runtime as rt

    body = graph(
        [node("Tanh", "s", "s2"), node("ReduceSum", "s2", "total", keepdims=0), node("Less", "total limit", "on")],
        [value("on", [], BOOL), value("s2", [4, 8])],
        body_inputs(value("s", [4, 8])),
    )
    made = graph(
        [node("Loop", "- start x", "y", body=body)],
        [value("y", [4, 8])],
        [value("start", [], BOOL), value("x", [4, 8]), value("limit", [])],
    )
    model = save(tmp_path / "endless.onnx", made)
    bmodel = compile_model(model)
    net = rt.load(str(bmodel)).net()
    timer = threading.Timer(0.2, net.cancel)
    timer.start()
    began = time.monotonic()
    with pytest.raises(rt.Error, match="cancel"):
        net(run_of(0, start=True, limit=np.float32(np.inf)))
    assert time.monotonic() - began < 1.2
    timer.join()
    finite = run_of(0, start=True, limit=np.float32(-1e9))
    np.testing.assert_allclose(net(finite)["y"], np.tanh(finite["x"]), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("chip", ["x86", "npu-base"])
@pytest.mark.parametrize("precision", ["BF16", "F16", "W8"])
def test_precisions(tmp_path: Path, chip: str, precision: str) -> None:
    model = save(tmp_path / "branches.onnx", branches())
    bmodel = compile_model(model, "--chip", chip, "--quantize", precision)
    compare(model, bmodel, [run_of(seed, c=seed % 2 == 0) for seed in range(3)], tolerance=0.05)


def calibrate(model: Path, runs: Sequence[Arrays], *flags: str) -> tuple[Path, str]:
    """Returns the table of a model for these samples, and what run_calibration prints."""
    samples = model.parent / "samples"
    samples.mkdir()
    for number, run in enumerate(runs):
        np.savez(samples / f"{number}.npz", **run)
    compile_model(model)
    table = model.with_suffix(".json")
    ran = run_tool("run_calibration", model.with_suffix(".mlir"), "--dataset", samples, "-o", table, *flags)
    check(ran)
    return table, ran.stdout + ran.stderr


def ranges_of(table: Path) -> dict[str, tuple[float, float]]:
    return {entry["name"]: (entry["min"], entry["max"]) for entry in json.loads(table.read_text())["tensors"]}


def types_of(model: Path, table: Path) -> dict[str, str]:
    """Returns the precision of each op of the model in INT8."""
    flags = ("--quantize", "INT8", "--calibration-table", table, "--output", model.with_suffix(".int8.bmodel"))
    done = run_tool("tessera-compile", "deploy", "--mlir", model.with_suffix(".mlir"), "--chip", "x86", *flags)
    events = [json.loads(line) for line in check(done).splitlines() if line.startswith("{")]
    report = next(event for event in events if event["event"] == "result")
    return {op["name"]: op["type"] for op in report["quantization"]["ops"]}


def test_calibration_in_branches(tmp_path: Path) -> None:
    """Tensors of a branch have the range of the samples that take it."""
    model = save(tmp_path / "branches.onnx", branches())
    runs = [run_of(seed, c=seed % 2 == 0) for seed in range(4)]
    table, _ = calibrate(model, runs, "--cali_method", "max")
    most = max(np.max(1 / (1 + np.exp(-run["x"])) @ WEIGHTS) for run in runs if run["c"])
    np.testing.assert_allclose(ranges_of(table)["t1"], (0, most), rtol=1e-5)
    assert types_of(model, table)["t1"] == "INT8"
    bmodel = compile_model(model, "--chip", "x86", "--quantize", "INT8", "--calibration_table", table)
    compare(model, bmodel, runs, tolerance=0.1)


def test_calibration_of_a_branch_that_no_sample_takes(tmp_path: Path) -> None:
    model = save(tmp_path / "branches.onnx", branches())
    table, printed = calibrate(model, [run_of(seed, c=False) for seed in range(4)])
    assert "1 tensor(s) of branches and loops have no value in any sample and stay in float: 't1'" in printed
    assert "t1" not in ranges_of(table)


def test_calibration_in_loops(tmp_path: Path) -> None:
    """Tensors of a loop's body have the range of all passes of all samples; a carried value also that of its first
    value."""
    inner = graph([node("MatMul", "m w", "t0")], [value("t0", [4, 8])])
    other = graph([node("Neg", "m", "e0")], [value("e0", [4, 8])])
    body = graph(
        [
            node("MatMul", "s w", "m"),
            node("If", "c", "r", then_branch=inner, else_branch=other),
            node("Tanh", "r", "s2"),
            node("Identity", "going", "on"),
        ],
        [value("on", [], BOOL), value("s2", [4, 8])],
        body_inputs(value("s", [4, 8])),
    )
    made = graph(
        [node("Relu", "x", "first"), node("Loop", "n - first", "l", body=body), node("MatMul", "l w", "y")],
        [value("y", [4, 8])],
        [value("n", [], INT64), value("c", [], BOOL), value("x", [4, 8])],
        {"w": WEIGHTS},
    )
    model = save(tmp_path / "loop.onnx", made)
    runs = [run_of(n, n=np.array(n), c=n != 3) for n in (2, 0, 5, 3)]
    table, _ = calibrate(model, runs, "--cali_method", "max")
    seen: dict[str, list[np.ndarray]] = {"m": [], "t0": [], "l": []}
    for run in runs:
        s = np.maximum(run["x"], 0)
        seen["l"].append(s)
        for _ in range(int(run["n"])):
            m = s @ WEIGHTS
            seen["m"].append(m)
            seen["t0"] += [m @ WEIGHTS] if run["c"] else []
            s = np.tanh(m @ WEIGHTS if run["c"] else -m)
            seen["l"].append(s)
    found = ranges_of(table)
    for name, arrays in seen.items():
        wanted = min(map(np.min, arrays)), max(map(np.max, arrays))
        np.testing.assert_allclose(found[name], wanted, rtol=1e-4, err_msg=name)
    types = types_of(model, table)
    assert (types["m"], types["t0"], types["y"]) == ("INT8", "INT8", "INT8"), types
    bmodel = compile_model(model, "--chip", "x86", "--quantize", "INT8", "--calibration_table", table)
    compare(model, bmodel, runs, tolerance=0.1)


def test_calibration_tries_ranges_across_a_loop(tmp_path: Path) -> None:
    """The trials run the steps behind a tensor again, among them the loop."""
    import tessera.runtime as rt

    body = graph(
        [node("Tanh", "s", "s2"), node("Identity", "going", "on")],
        [value("on", [], BOOL), value("s2", [4, 8])],
        body_inputs(value("s", [4, 8])),
    )
    made = graph(
        [node("MatMul", "x w", "m"), node("Loop", "n - m", "l", body=body), node("MatMul", "l w", "y")],
        [value("y", [4, 8])],
        [value("n", [], INT64), value("x", [4, 8])],
        {"w": WEIGHTS},
    )
    model = save(tmp_path / "across.onnx", made)
    runs = [run_of(n, n=np.array(n)) for n in (1, 0, 3)]
    net = rt.load(str(compile_model(model))).net()
    probe = net.probe()
    probe.run(runs[0])
    writer = next(tensor.step for tensor in probe.tensors if "l" in tensor.names)
    assert net.profile(runs[0], runs=1)[writer].kind == "loop", "not the copy of its first value"
    (tmp_path / "samples").mkdir()
    for number, run in enumerate(runs):
        np.savez(tmp_path / "samples" / f"{number}.npz", **run)
    table = tmp_path / "cali.json"
    check(run_tool("run_calibration", model.with_suffix(".mlir"), "--dataset", tmp_path / "samples", "-o", table))
    bmodel = compile_model(model, "--chip", "x86", "--quantize", "INT8", "--calibration_table", table)
    compare(model, bmodel, runs, tolerance=0.1)


def test_calibration_between_branches(tmp_path: Path) -> None:
    """Several ops beside a loop are a subnet, from whose middle no trial can run: ranges are chosen without trials."""
    body = graph(
        [node("Tanh", "s", "s2"), node("Identity", "going", "on")],
        [value("on", [], BOOL), value("s2", [4, 8])],
        body_inputs(value("s", [4, 8])),
    )
    made = graph(
        [
            node("MatMul", "x w", "m"),
            node("Relu", "m", "r"),
            node("MatMul", "r w", "m2"),
            node("Loop", "n - m2", "l", body=body),
            node("MatMul", "l w", "k"),
            node("Add", "k m2", "y"),
        ],
        [value("y", [4, 8])],
        [value("n", [], INT64), value("x", [4, 8])],
        {"w": WEIGHTS},
    )
    model = save(tmp_path / "between.onnx", made)
    runs = [run_of(n, n=np.array(n)) for n in (1, 0, 3)]
    (tmp_path / "samples").mkdir()
    for number, run in enumerate(runs):
        np.savez(tmp_path / "samples" / f"{number}.npz", **run)
    table = tmp_path / "cali.json"
    compile_model(model)
    done = run_tool("run_calibration", model.with_suffix(".mlir"), "--dataset", tmp_path / "samples", "-o", table)
    assert "cannot be run from its middle" in check(done), done.stdout
    entries = {entry["name"]: entry for entry in json.loads(table.read_text())["tensors"]}
    highest = max(float(np.maximum(run["x"] @ WEIGHTS, 0).max()) for run in runs)
    assert entries["r"]["min"] == 0 and abs(entries["r"]["max"] - highest) < 1e-4, "another tensor shares its memory"
    bmodel = compile_model(model, "--chip", "x86", "--quantize", "INT8", "--calibration_table", table)
    compare(model, bmodel, runs, tolerance=0.1)
