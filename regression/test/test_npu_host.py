# SPDX-License-Identifier: Apache-2.0
"""Tests models that an NPU runs in part: the host runs the rest with x86's bits, and every op there has a reason."""
from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from conftest import BUILD, calibrate, check, run_tool, samples
from onnx import TensorProto, helper, numpy_helper
from small_models import save, tensor
from test_npu import CHIPS, deploy


def weights(name: str, *shape: int) -> object:
    values = np.random.default_rng(len(name)).standard_normal(shape) / np.sqrt(np.prod(shape[1:]))
    return numpy_helper.from_array(values.astype(np.float32), name)


def mixed(path: Path) -> Path:
    """Writes conv -> permuted columns -> conv, the largest channel of the first result, and outputs that repeat other
    outputs or the input."""
    nodes = [
        helper.make_node("Conv", ["x", "w1"], ["c1"], name="first", pads=[1, 1, 1, 1]),
        helper.make_node("Relu", ["c1"], ["r1"], name="relu"),
        helper.make_node("GatherElements", ["r1", "order"], ["turned"], name="turned", axis=3),
        helper.make_node("Conv", ["turned", "w2"], ["y"], name="second", pads=[1, 1, 1, 1]),
        helper.make_node("ArgMax", ["r1"], ["largest"], name="largest", axis=1, keepdims=0),
        helper.make_node("Flatten", ["turned"], ["flat"], name="flat"),
        helper.make_node("Identity", ["y"], ["again"], name="again"),
        helper.make_node("Identity", ["x"], ["same"], name="same"),
        helper.make_node("Sigmoid", ["y"], ["s"], name="sigmoid"),
    ]
    outputs = [
        tensor("y", [1, 64, 32, 32]),
        tensor("largest", [1, 32, 32], TensorProto.INT64),
        tensor("flat", [1, 64 * 1024]),
        tensor("again", [1, 64, 32, 32]),
        tensor("same", [1, 8, 32, 32]),
        tensor("s", [1, 64, 32, 32]),
    ]
    order = np.argsort(np.random.default_rng(0).random((1, 64, 32, 32)), axis=3)
    return save(
        path,
        nodes,
        [tensor("x", [1, 8, 32, 32])],
        outputs,
        [weights("w1", 64, 8, 3, 3), weights("w2", 64, 64, 3, 3), numpy_helper.from_array(order, "order")],
        opset=14,
    )


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path, list[dict]]:
    """Returns the Top module, its table and its inputs."""
    folder = tmp_path_factory.mktemp("host")
    top = folder / "m_top.mlir"
    check(
        run_tool(
            "model_transform",
            "--model_name",
            "m",
            "--model_def",
            mixed(folder / "m.onnx"),
            "--mlir",
            top,
            "--not_inference",
        )
    )
    return top, *calibrate(top, folder)


def outputs(model: Path, given: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    import tessera.runtime as runtime

    return {name: array.copy() for name, array in runtime.load(str(model)).net()(given).items()}


@pytest.mark.parametrize(
    "flags", [(), ("--opt", "0"), ("--host-chip", "x86-v2")], ids=["groups", "op by op", "other host"]
)
def test_both_sides_give_the_bits_of_x86(
    small: tuple[Path, Path, list[dict]], tmp_path: Path, flags: tuple[str, ...]
) -> None:
    top, table, specs = small
    deploy(top, table, "x86", tmp_path / "x86.bmodel")
    for chip in CHIPS:
        info = deploy(top, table, chip, tmp_path / "m.bmodel", *flags)["partition"]
        assert [subnet["device"] for subnet in info["subnets"]] == ["npu", "host", "npu"]
        assert {op["name"] for op in info["host_ops"] if op["refused"]} == {"turned", "largest"}
        assert 0 < info["npu_products"] == info["products"] and info["transferred_bytes"] > 0
        for seed in range(2):
            given = samples(specs, seed)
            want, got = outputs(tmp_path / "x86.bmodel", given), outputs(tmp_path / "m.bmodel", given)
            assert want.keys() == got.keys() == {"y", "largest", "flat", "again", "same", "s"}
            for name, array in want.items():
                assert array.tobytes() == got[name].tobytes(), f"{chip}: '{name}' differs from x86"


def test_the_table_tells_why(small: tuple[Path, Path, list[dict]], tmp_path: Path) -> None:
    top, table, _ = small
    command = [
        "model_deploy",
        "--mlir",
        top,
        "--chip",
        "npu-base",
        "--quantize",
        "INT8",
        "--calibration_table",
        table,
        "--model",
        tmp_path / "m.bmodel",
    ]
    text = check(run_tool(*command, "--report", tmp_path / "r"))  # compared layer by layer with the reference as well
    assert "npu_0" in text and "host_1" in text and "'" not in text.split("on the host")[1].split("\n")[0]
    assert any(
        line.split()[:2] == ["largest", "device.arg_reduce"] and "is not supported on the NPU" in line
        for line in text.splitlines()
    ), text
    assert "by a rough model of a small host" in text and "the host runs" in text
    assert {"local.svg", "local-2.svg", "layers.csv"} <= {path.name for path in (tmp_path / "r").iterdir()}
    report = json.loads(check(run_tool(*command, "--json", "--skip_validation")))
    partition, perf = report["model"]["partition"], report["perf"]
    assert perf["total_microseconds"] == pytest.approx(partition["total_microseconds"], abs=0.01)
    assert (
        perf["microseconds"]
        == pytest.approx(partition["npu_microseconds"], abs=0.01)
        == pytest.approx(report["model"]["estimate"]["microseconds"], abs=0.01)
    )
    assert len([layer for layer in perf["layers"] if layer["compute"]["commands"]]) >= 2
    info = check(run_tool("model_tool", "info", tmp_path / "m.bmodel"))
    assert "subnet 'host_1' Host" in info and "'largest' is not supported on the NPU" in info
    listing = check(run_tool("model_tool", "disasm", tmp_path / "m.bmodel"))
    assert "conv id=" in listing and "gather" in listing
    rejected = run_tool(*command, "--strict")
    assert (
        rejected.returncode == 4 and "'largest'" in rejected.stderr and "'turned'" in rejected.stderr
    ), rejected.stderr


@pytest.mark.parametrize("chip", [*CHIPS, "x86"])
def test_strict(small: tuple[Path, Path, list[dict]], tmp_path: Path, chip: str) -> None:
    top, table, _ = small
    result = run_tool(
        "tessera-compile",
        "deploy",
        "--mlir",
        top,
        "--chip",
        chip,
        "--quantize",
        "INT8",
        "--calibration-table",
        table,
        "--output",
        tmp_path / "m.bmodel",
        "--strict",
    )
    message = json.loads(result.stdout.splitlines()[-1])["message"]
    assert result.returncode == (2 if chip == "x86" else 4) and not (tmp_path / "m.bmodel").exists()
    if chip != "x86":
        assert (
            message.startswith(f"--strict: chip '{chip}' cannot run the whole model")
            and "'turned': " in message
            and "'largest': " in message
        )
        assert "'second'" not in message


def test_a_layer_too_large_for_local_memory(tmp_path: Path) -> None:
    """The smallest tile of the layer does not fit. The layer runs on the host, with this reason, and --strict rejects
    it by name."""
    nodes = [
        helper.make_node("Conv", ["x", "w1"], ["c"], name="first", pads=[1, 1, 1, 1]),
        helper.make_node("Relu", ["c"], ["r"], name="relu"),
        helper.make_node("Flatten", ["r"], ["f"], name="flat"),
        helper.make_node("Gemm", ["f", "w2"], ["y"], name="wide"),
    ]
    model = save(
        tmp_path / "m.onnx",
        nodes,
        [tensor("x", [1, 8, 32, 32])],
        [tensor("y", [1, 4])],
        [weights("w1", 32, 8, 3, 3), weights("w2", 32 * 1024, 4)],
    )
    top = tmp_path / "m_top.mlir"
    check(run_tool("model_transform", "--model_name", "m", "--model_def", model, "--mlir", top, "--not_inference"))
    table, specs = calibrate(top, tmp_path)
    small = ("--chip-set", "local_memory.bytes_per_lane=4096", "--chip-set", "local_memory.banks=4")
    info = deploy(top, table, "npu-edge", tmp_path / "m.bmodel", *small)["partition"]
    rejected = [op for op in info["host_ops"] if op["refused"]]
    assert [op["name"].split("+")[0] for op in rejected] == [
        "wide"
    ] and "needs more than the 4096 bytes of a lane" in rejected[0]["reason"], info
    assert info["npu_products"] > 0
    deploy(top, table, "x86", tmp_path / "x86.bmodel")
    given = samples(specs, 3)
    want, got = outputs(tmp_path / "x86.bmodel", given), outputs(tmp_path / "m.bmodel", given)
    assert want["y"].tobytes() == got["y"].tobytes()
    result = run_tool(
        "tessera-compile",
        "deploy",
        "--mlir",
        top,
        "--chip",
        "npu-edge",
        "--quantize",
        "INT8",
        "--calibration-table",
        table,
        "--output",
        tmp_path / "s.bmodel",
        "--strict",
        *small,
    )
    assert (
        result.returncode == 4
        and "'wide" in result.stdout
        and "needs more than the 4096 bytes of a lane" in result.stdout
    )


def with_the_bits_of_x86(model: Path, folder: Path) -> dict:
    """Returns the partition of the model between npu-base and its host. Checks that the output y has the bits of
    x86."""
    top = folder / "m_top.mlir"
    check(run_tool("model_transform", "--model_name", "m", "--model_def", model, "--mlir", top, "--not_inference"))
    table, specs = calibrate(top, folder)
    deploy(top, table, "x86", folder / "x86.bmodel")
    info = deploy(top, table, "npu-base", folder / "m.bmodel")["partition"]
    given = samples(specs, 4)
    assert outputs(folder / "x86.bmodel", given)["y"].tobytes() == outputs(folder / "m.bmodel", given)["y"].tobytes()
    return info


def test_products_do_not_follow_their_epilogues(tmp_path: Path) -> None:
    """A sine after a convolution is fused with it. The chip does not support the sine, but still runs the
    convolution."""
    nodes = [
        helper.make_node("Conv", ["x", "w1"], ["c"], name="first", pads=[1, 1, 1, 1]),
        helper.make_node("Sin", ["c"], ["s"], name="wave"),
        helper.make_node("Conv", ["s", "w2"], ["y"], name="second", pads=[1, 1, 1, 1]),
    ]
    model = save(
        tmp_path / "m.onnx",
        nodes,
        [tensor("x", [1, 8, 32, 32])],
        [tensor("y", [1, 64, 32, 32])],
        [weights("w1", 64, 8, 3, 3), weights("w2", 64, 64, 3, 3)],
    )
    info = with_the_bits_of_x86(model, tmp_path)
    assert info["npu_products"] == info["products"] and [op["op"] for op in info["host_ops"]] == ["device.map"], info


def test_pools_do_not_follow_their_epilogues(tmp_path: Path) -> None:
    """The mean of a tensor minus this tensor is one op on x86; the chip computes it as two."""
    nodes = [
        helper.make_node("Conv", ["x", "w1"], ["c"], name="first", pads=[1, 1, 1, 1]),
        helper.make_node("AveragePool", ["c"], ["p"], name="mean", kernel_shape=[3, 3], pads=[1, 1, 1, 1]),
        helper.make_node("Sub", ["p", "c"], ["d"], name="less"),
        helper.make_node("Conv", ["d", "w2"], ["y"], name="second", pads=[1, 1, 1, 1]),
    ]
    model = save(
        tmp_path / "m.onnx",
        nodes,
        [tensor("x", [1, 8, 16, 16])],
        [tensor("y", [1, 64, 16, 16])],
        [weights("w1", 64, 8, 3, 3), weights("w2", 64, 64, 3, 3)],
    )
    info = with_the_bits_of_x86(model, tmp_path)
    assert [subnet["device"] for subnet in info["subnets"]] == ["npu"] and not info["host_ops"], info


ON_THE_SHARED_LIBRARY = """
import ctypes, sys
import numpy as np
runtime, model, folder = ctypes.CDLL(sys.argv[1]), ctypes.c_void_p(), sys.argv[3]
context, status = ctypes.c_void_p(), ctypes.create_string_buffer(4096)
u64 = ctypes.c_uint64
def call(name, *arguments):
    assert getattr(runtime, name)(*arguments, status) == 0, status.raw
call("bmrt_model_open", sys.argv[2].encode(), None, ctypes.byref(model))
call("bmrt_context_create", model, None, ctypes.byref(context))
def aligned(array):
    memory = np.zeros(array.nbytes + 64, np.uint8)
    made = memory[-memory.ctypes.data % 64:][:array.nbytes].view(array.dtype).reshape(array.shape)
    made[...] = array
    return made
x = aligned(np.load(folder + "/x.npy"))
call("bmrt_context_bind_input", context, 0, ctypes.c_void_p(x.ctypes.data), u64(x.nbytes))
want = [np.load(f"{folder}/{i}.npy") for i in range(int(sys.argv[4]))]
got = [aligned(np.zeros_like(array)) for array in want]
for i, array in enumerate(got):
    call("bmrt_context_bind_output", context, i, ctypes.c_void_p(array.ctypes.data), u64(array.nbytes))
for turn in range(2):
    call("bmrt_context_run", context)
    assert all(a.tobytes() == b.tobytes() for a, b in zip(want, got)), turn
    for array in got:
        array[...] = 1
print("alike")
"""


def test_the_shared_library_runs_both_sides(small: tuple[Path, Path, list[dict]], tmp_path: Path) -> None:
    """libbmrt.so has the host's kernels and loads libbmrt_npu.so; results are written directly into the caller's
    buffers."""
    top, table, specs = small
    deploy(top, table, "npu-base", tmp_path / "m.bmodel")
    given = samples(specs, 5)
    want = outputs(tmp_path / "m.bmodel", given)
    np.save(tmp_path / "x.npy", given["x"])
    for i, array in enumerate(want.values()):
        np.save(tmp_path / f"{i}.npy", array)
    result = subprocess.run(
        [
            sys.executable,
            "-c",
            ON_THE_SHARED_LIBRARY,
            str(BUILD / "lib" / "libbmrt.so"),
            str(tmp_path / "m.bmodel"),
            str(tmp_path),
            str(len(want)),
        ],
        capture_output=True,
        text=True,
    )
    assert result.stdout == "alike\n", result.stderr


def rejection(model: Path, folder: Path, given: dict[str, np.ndarray]) -> str:
    """Returns the error of model_runner for a file that it must refuse."""
    np.savez(folder / "in.npz", **given)
    result = run_tool("model_runner", "--model", model, "--input", folder / "in.npz", "--output", folder / "out.npz")
    assert result.returncode == 1 and not (folder / "out.npz").exists(), result.stderr
    return result.stderr


@pytest.mark.parametrize("place", [0.2, 0.5, 0.8])
def test_altered_files_are_rejected(small: tuple[Path, Path, list[dict]], tmp_path: Path, place: float) -> None:
    top, table, specs = small
    deploy(top, table, "npu-base", tmp_path / "m.bmodel")
    data = bytearray((tmp_path / "m.bmodel").read_bytes())
    data[int(len(data) * place)] ^= 0x10
    (tmp_path / "m.bmodel").write_bytes(bytes(data))
    rejection(tmp_path / "m.bmodel", tmp_path, samples(specs, 0))


def test_bytes_of_every_part_altered(tmp_path: Path) -> None:
    """Flips bits everywhere in a model with one host op: each file is rejected or gives the same output."""
    nodes = [
        helper.make_node("Conv", ["x", "w1"], ["c"], name="conv"),
        helper.make_node("ArgMax", ["c"], ["y"], name="largest", axis=1, keepdims=0),
    ]
    model = save(
        tmp_path / "m.onnx",
        nodes,
        [tensor("x", [1, 8, 32, 32])],
        [tensor("y", [1, 30, 30], TensorProto.INT64)],
        [weights("w1", 32, 8, 3, 3)],
    )
    top = tmp_path / "m_top.mlir"
    check(run_tool("model_transform", "--model_name", "m", "--model_def", model, "--mlir", top, "--not_inference"))
    table, _ = calibrate(top, tmp_path)
    info = deploy(top, table, "npu-pro", tmp_path / "m.bmodel")["partition"]
    assert [subnet["device"] for subnet in info["subnets"]] == ["npu", "host"]
    check(run_tool("bmrt_alter_check", tmp_path / "m.bmodel", "1009"))
    check(run_tool("bmrt_reseal", tmp_path / "m.bmodel", "--count", "300"))


def test_the_table_of_operators_tells_the_same(small: tuple[Path, Path, list[dict]], tmp_path: Path) -> None:
    """docs/generated/supported-ops.md contains these rows."""
    top, table, _ = small
    reasons = {
        op["name"]: op["reason"]
        for op in deploy(top, table, "npu-base", tmp_path / "m.bmodel")["partition"]["host_ops"]
    }
    rows = json.loads(check(run_tool("tessera-compile", "supported-ops", "--chip", "npu-base")).splitlines()[-1])[
        "chips"
    ]
    info = {row["operator"]: row["reasons"] for row in rows if row["precision"] == "INT8"}
    assert info["Conv"] == [] and info["GatherElements"] == [reasons["turned"]]
    assert info["ArgMax, ArgMin"] == [reasons["largest"]]
    assert len(info) > 80 and {row["precision"] for row in rows} == {"INT8", "INT16", "BF16", "F16", "F32"}
    result = run_tool("tessera-compile", "supported-ops", "--chip", "npu-huge")
    assert result.returncode == 2 and "unknown chip 'npu-huge'" in result.stdout


def test_outputs_that_nothing_computes_are_copied_whatever_their_type(tmp_path: Path) -> None:
    sizes = helper.make_tensor("sizes", TensorProto.INT64, [2], [8, -(1 << 40)])
    nodes = [
        helper.make_node("Relu", ["x"], ["y"]),
        helper.make_node("Identity", ["sizes"], ["constant"]),
        helper.make_node("Identity", ["ids"], ["same"]),
    ]
    model = save(
        tmp_path / "m.onnx",
        nodes,
        [tensor("x", [1, 8]), tensor("ids", [3], TensorProto.INT64)],
        [tensor("y", [1, 8]), tensor("constant", [2], TensorProto.INT64), tensor("same", [3], TensorProto.INT64)],
        [sizes],
    )
    check(run_tool("model_transform", "--model_def", model, "--mlir", tmp_path / "m_top.mlir", "--not_inference"))
    check(
        run_tool(
            "model_deploy",
            "--mlir",
            tmp_path / "m_top.mlir",
            "--chip",
            "npu-base",
            "--quantize",
            "F32",
            "--strict",
            "--model",
            tmp_path / "m.bmodel",
        )
    )
    got = outputs(tmp_path / "m.bmodel", {"x": np.ones((1, 8), np.float32), "ids": np.array([-1, 2, 1 << 50])})
    assert got["constant"].tolist() == [8, -(1 << 40)] and got["same"].tolist() == [-1, 2, 1 << 50]
