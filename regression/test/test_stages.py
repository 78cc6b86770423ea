# SPDX-License-Identifier: Apache-2.0
"""Tests several shapes of one network in one file: each stage gives the bits of its own file, weights are stored once,
and files that do not belong together are rejected."""
from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import onnx
import pytest
from case_file import Case, all_cases, data_path
from conftest import calibrate, check, run_tool
from onnx import helper
from small_models import conv_relu, save, tensor
from test_cases import skip_if_missing
from test_npu_host import mixed

from tessera.files import load_npz, save_npz

CASES = {case.name: case for case in all_cases()}


def transform(source: Path, shapes: str, mlir: Path, name: str = "net") -> Path:
    check(
        run_tool(
            "model_transform",
            "--model_name",
            name,
            "--model_def",
            source,
            "--input_shapes",
            shapes,
            "--mlir",
            mlir,
            "--not_inference",
        )
    )
    return mlir


def deploy(mlir: Path, chip: str, output: Path, *flags: object) -> Path:
    check(run_tool("model_deploy", "--mlir", mlir, "--chip", chip, "--model", output, "--skip_validation", *flags))
    return output


def combine(output: Path, *files: Path) -> dict:
    return json.loads(check(run_tool("model_tool", "combine", *files, "-o", output, "--json")))["model"]


def net(bmodel: Path):
    import tessera.runtime as runtime

    return runtime.load(str(bmodel)).net()


def samples(of, seed: int = 3) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(seed)
    return {
        info.name: rng.standard_normal(info.shape).astype(info.dtype)
        if info.dtype.kind == "f"
        else rng.integers(0, 9, info.shape).astype(info.dtype)
        for info in of.inputs
    }


def check_equals_single_files(combined: Path, singles: list[Path]) -> None:
    """Compares every element, whatever ran before."""
    united = net(combined)
    for single in [*singles, *reversed(singles)]:
        alone = net(single)
        given = samples(alone)
        want, got = alone(given), united(given)
        assert want.keys() == got.keys() and [i.shape for i in united.inputs] == [i.shape for i in alone.inputs]
        for name in want:
            assert np.array_equal(want[name], got[name]), f"{single.name}: '{name}' differs"


@pytest.mark.parametrize("chip", ["x86", "npu-base"])
def test_deploy_takes_several_shapes_and_one_table(chip: str, tmp_path: Path) -> None:
    """The table was measured at one shape. Stages equal what each model gives by itself, and x86 equals the NPU."""
    case = CASES["resnet20_cifar10"]
    skip_if_missing(case)
    tops = [transform(data_path(case.model), f"input={n}x3x32x32", tmp_path / f"n{n}_top.mlir") for n in (1, 3)]
    rng = np.random.default_rng(0)
    (tmp_path / "data").mkdir()
    for i in range(2):
        save_npz(tmp_path / "data" / f"{i}.npz", {"input": rng.standard_normal((1, 3, 32, 32)).astype(np.float32)})
    table = tmp_path / "cali.json"
    check(
        run_tool(
            "run_calibration",
            tops[0],
            "--dataset",
            tmp_path / "data",
            "--cali_method",
            "max",
            "--methods",
            "none",
            "-o",
            table,
        )
    )
    flags = ("--quantize", "INT8", "--calibration_table", table, "--accept_loss")  # noise
    both = tmp_path / "both.bmodel"
    result = json.loads(
        check(run_tool("model_deploy", "--mlir", *tops, "--chip", chip, "--model", both, "--json", *flags))
    )
    info = result["model"]
    assert [stage["mlir"] for stage in info["stages"]] == list(map(str, tops)) and info["bytes"] == both.stat().st_size
    assert all(stage["quantization"]["integer_ops"] > 0 and stage["comparison"] for stage in info["stages"])
    assert info["stored_bytes"] < 0.53 * info["constant_bytes"]
    check_equals_single_files(both, [deploy(top, chip, tmp_path / f"{i}.bmodel", *flags) for i, top in enumerate(tops)])
    check_equals_single_files(
        both, [deploy(top, "x86-v2", tmp_path / f"v{i}.bmodel", *flags) for i, top in enumerate(tops)]
    )
    document = json.loads(table.read_text())
    table.write_text(json.dumps({**document, "network": "0" * 32}))
    result = run_tool("model_deploy", "--mlir", *tops, "--chip", chip, "--model", both, *flags)
    assert result.returncode == 1 and "is of another model" in result.stderr


def test_weights_beside_the_file_are_of_the_network(tmp_path: Path) -> None:
    """One table also serves all shapes of the network, and no network of the same file with other weights."""
    source = tmp_path / "n.onnx"
    onnx.save_model(
        onnx.load(conv_relu(source, "N")), str(source), save_as_external_data=True, location="w.bin", size_threshold=0
    )
    tops = [transform(source, f"x={n}x3x8x8", tmp_path / f"n{n}_top.mlir") for n in (1, 2)]
    save_npz(tmp_path / "in.npz", {"x": np.linspace(-1, 1, 192, dtype=np.float32).reshape(1, 3, 8, 8)})
    check(
        run_tool(
            "run_calibration",
            tops[0],
            "--dataset",
            tmp_path / "in.npz",
            "--cali_method",
            "max",
            "-o",
            tmp_path / "c.json",
        )
    )
    flags = ("--quantize", "INT8", "--calibration_table", tmp_path / "c.json", "--skip_validation")
    check(run_tool("model_deploy", "--mlir", *tops, "--chip", "x86", "--model", tmp_path / "n.bmodel", *flags))
    weights = np.fromfile(tmp_path / "w.bin", np.float32)
    weights[-1] += 1
    weights.tofile(tmp_path / "w.bin")
    other = transform(source, "x=2x3x8x8", tmp_path / "other_top.mlir")
    result = run_tool("model_deploy", "--mlir", other, "--chip", "x86", "--model", tmp_path / "o.bmodel", *flags)
    assert result.returncode == 1 and "is of another model" in result.stderr


def test_transform_takes_several_shapes(tmp_path: Path) -> None:
    source = conv_relu(tmp_path / "n.onnx", "N")
    flags = ("--model_def", source, "--mlir", tmp_path / "n_top.mlir")
    info = json.loads(
        check(run_tool("model_transform", *flags, "--input_shapes", "x=1x3x8x8", "[[2,3,8,8]]", "--json"))
    )
    tops = [Path(entry["mlir"]) for entry in info["models"]]
    assert [top.name for top in tops] == ["n_1x3x8x8_top.mlir", "n_2x3x8x8_top.mlir"]
    assert all(entry["comparison"] and Path(entry["weights"]).exists() for entry in info["models"])
    text = check(run_tool("model_deploy", "--mlir", *tops, "--chip", "x86", "--model", tmp_path / "n.bmodel"))
    assert "combine" in text and [stage.inputs[0].shape[0] for stage in net(tmp_path / "n.bmodel").stages] == [1, 2]
    for more, words in (
        (("--input_shapes", "x=1x3x8x8", "[[1,3,8,8]]"), "the same shapes twice"),
        (
            ("--input_shapes", "x=1x3x8x8", "x=2x3x8x8", "--test_result", tmp_path / "r.npz"),
            "--test_result is for a single model",
        ),
        (("--input_shapes", "x=1x3x8x8", "x=2x3x8x8", "--test_input", tmp_path / "in.npz"), "has one shape"),
    ):
        result = run_tool("model_transform", *flags, *more)
        assert result.returncode == 2 and words in result.stderr


def test_several_models_outside_their_tolerance_leave_the_file(tmp_path: Path) -> None:
    """The exit code is 3, as for one model. The file is kept for analysis, with all of its stages."""
    source = conv_relu(tmp_path / "n.onnx", "N")
    tops = [transform(source, f"x={n}x3x8x8", tmp_path / f"n{n}_top.mlir") for n in (1, 2)]
    result = run_tool(
        "model_deploy", "--mlir", *tops, "--quantize", "BF16", "--tolerance", "1,1", "--model", tmp_path / "n.bmodel"
    )
    assert result.returncode == 3 and "outside" in result.stderr, result.stderr
    assert [stage.inputs[0].shape[0] for stage in net(tmp_path / "n.bmodel").stages] == [1, 2]


def test_several_models_take_no_flags_of_one(tmp_path: Path) -> None:
    for flag in ("--test_input", "--plan_out", "--device_mlir"):
        result = run_tool(
            "model_deploy",
            "--mlir",
            "a_top.mlir",
            "b_top.mlir",
            "--chip",
            "npu-base",
            "--model",
            tmp_path / "m.bmodel",
            flag,
            "x",
        )
        assert result.returncode == 2 and f"{flag} is for a single model; --mlir names 2" in result.stderr


@pytest.fixture(scope="module")
def two_stages(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Returns a .bmodel with stages for one and for two pictures. Its report is beside it."""
    folder = tmp_path_factory.mktemp("two_stages")
    source = conv_relu(folder / "n.onnx", "N")
    tops = [transform(source, f"x={n}x3x8x8", folder / f"n{n}_top.mlir") for n in (1, 2)]
    both = folder / "both.bmodel"
    flags = ("--chip", "npu-base", "--quantize", "BF16", "--model", both, "--report", folder / "report")
    check(run_tool("model_deploy", "--mlir", *tops, *flags))
    return both


def test_the_tools_tell_of_every_stage(two_stages: Path) -> None:
    report = two_stages.parent / "report"
    assert (report / "stage-0/layers.csv").exists() and (report / "stage-1/layers.csv").exists()
    perf = json.loads(check(run_tool("model_tool", "perf", two_stages, "--json")))["stages"]
    assert [entry["stage"] for entry in perf] == [0, 1] and perf[0]["report"]["cycles"] < perf[1]["report"]["cycles"]
    text = check(run_tool("model_tool", "info", two_stages))
    assert (
        "stage 0 '1x3x8x8' for npu-base" in text
        and "stage 1 '2x3x8x8' for npu-base" in text
        and "of them shared with stages above" in text
    )
    text = check(run_tool("model_tool", "disasm", two_stages))
    assert "stage 0, 1x3x8x8 on npu-base\n" in text and "stage 1, 2x3x8x8 on npu-base\n" in text
    bench = json.loads(check(run_tool("bmrt_bench", two_stages, "--shape", "x=2x3x8x8", "--iters", "1", "--json")))
    assert bench["stage"] == 1
    for wrong, words in (("x=3x3x8x8", "there are"), ("x=2x", "takes NAME="), ("z=2", "has no input")):
        result = run_tool("bmrt_bench", two_stages, "--shape", wrong, "--iters", "1")
        assert result.returncode == 1 and words in result.stderr


def test_the_runner_takes_the_stage_of_the_inputs(two_stages: Path, tmp_path: Path) -> None:
    files = ("--model", two_stages, "--output", tmp_path / "out.npz")
    for n in (1, 2):
        save_npz(tmp_path / "in.npz", {"x": np.ones((n, 3, 8, 8), np.float32)})
        text = check(run_tool("model_runner", *files, "--input", tmp_path / "in.npz"))
        assert f"stage {n - 1} of 2, npu-base" in text and load_npz(tmp_path / "out.npz")["y"].shape == (n, 4, 8, 8)
    check(run_tool("model_runner", *files, "--input", "random", "--input_shapes", "x=2x3x8x8"))
    assert load_npz(tmp_path / "out.npz")["y"].shape == (2, 4, 8, 8)
    result = run_tool("model_runner", *files, "--input", "random", "--input_shapes", "x=3x3x8x8")
    assert result.returncode == 1 and "there are 1x3x8x8 (npu-base); 2x3x8x8 (npu-base)" in result.stderr
    result = run_tool("model_runner", *files, "--input", "random", "--chip", "x86")
    assert result.returncode == 1 and "no such stage for chip 'x86'" in result.stderr


@pytest.mark.parametrize("chip", ["x86", "npu-base"])
@pytest.mark.parametrize(
    "name, shapes", [("resnet20_cifar10", ("1x3x32x32", "4x3x32x32")), ("ppocrv3_det", ("1x3x320x320", "1x3x160x224"))]
)
def test_two_shapes_share_their_weights(name: str, shapes: tuple[str, str], chip: str, tmp_path: Path) -> None:
    case: Case = CASES[name]
    skip_if_missing(case)
    tops = [
        transform(data_path(case.model), f"{case.input_shapes.split('=')[0]}={text}", tmp_path / f"m{text}_top.mlir")
        for text in shapes
    ]
    singles = [deploy(top, chip, tmp_path / f"{i}.bmodel") for i, top in enumerate(tops)]
    info = combine(tmp_path / "both.bmodel", *singles)
    shared = info["constant_bytes"] - info["stored_bytes"]
    # On x86 the algorithm of a convolution, and with it the layout of its weights, may depend on the size of its image.
    depends = chip == "x86" and name == "ppocrv3_det"
    assert shared > (0.7 if depends else 0.99) * min(entry["constant_bytes"] for entry in info["files"])
    dump = json.loads(check(run_tool("bmodel-dump", tmp_path / "both.bmodel")))
    code = sum(segment["bytes"] for segment in dump["segments"] if segment["kind"] == "Code")
    assert depends or info["bytes"] < 1.02 * max(path.stat().st_size for path in singles) + code
    assert [stage["name"] for stage in dump["nets"][0]["stages"]] == list(shapes)
    check(run_tool("model_tool", "check", tmp_path / "both.bmodel"))
    check_equals_single_files(tmp_path / "both.bmodel", singles)


def test_models_on_both_sides(tmp_path: Path) -> None:
    """Streams and kernels have separate constants, and both are shared. Whichever byte is altered, no answer
    changes."""
    model = onnx.load(mixed(tmp_path / "m.onnx"))
    for value in (*model.graph.input, *model.graph.output):
        value.type.tensor_type.shape.dim[0].dim_param = "N"
    onnx.save(model, tmp_path / "m.onnx")
    tops = [transform(tmp_path / "m.onnx", f"x={n}x8x32x32", tmp_path / f"n{n}_top.mlir") for n in (1, 2)]
    table, _ = calibrate(tops[0], tmp_path)
    flags = ("--quantize", "INT8", "--calibration_table", table, "--accept_loss")  # noise
    singles = [deploy(top, "npu-base", tmp_path / f"{i}.bmodel", *flags) for i, top in enumerate(tops)]
    both = tmp_path / "both.bmodel"
    info = combine(both, *singles)
    assert info["stored_bytes"] < 0.55 * info["constant_bytes"]
    kinds = [
        [subnet["kind"] for subnet in stage["subnets"]]
        for stage in json.loads(check(run_tool("bmodel-dump", both)))["nets"][0]["stages"]
    ]
    assert all({"Npu", "Host", "Control"} == set(each) for each in kinds)
    check_equals_single_files(both, singles)
    check(run_tool("bmrt_alter_check", both, both.stat().st_size // 200))


def test_several_chips_in_one_file(tmp_path: Path) -> None:
    """The runtime selects the first stage with the input's shapes that it can run."""
    source = conv_relu(tmp_path / "n.onnx", "N")
    tops = [transform(source, f"x={n}x3x8x8", tmp_path / f"n{n}_top.mlir") for n in (1, 2)]
    x86 = [deploy(top, "x86", tmp_path / f"x{i}.bmodel") for i, top in enumerate(tops)]
    npu = deploy(tops[0], "npu-edge", tmp_path / "e.bmodel", "--quantize", "W8")
    info = combine(tmp_path / "all.bmodel", npu, *x86)
    assert [entry["new_bytes"] > 0 for entry in info["files"]] == [True, True, False]
    united = net(tmp_path / "all.bmodel")
    assert united.chip == "npu-edge"
    united(samples(net(x86[1])))
    assert united.chip.startswith("x86")
    united(samples(net(npu)))
    assert united.chip == "npu-edge"


def test_the_runtime_tells_what_shapes_there_are(tmp_path: Path) -> None:
    import tessera.runtime as runtime

    source = conv_relu(tmp_path / "n.onnx", "N")
    tops = {n: transform(source, f"x={n}x3x8x8", tmp_path / f"n{n}_top.mlir") for n in (1, 2)}
    singles = [deploy(tops[n], "npu-base", tmp_path / f"{n}.bmodel", "--quantize", "BF16") for n in (1, 2)]
    combine(tmp_path / "both.bmodel", *singles, deploy(tops[1], "x86-v2", tmp_path / "x86.bmodel"))
    model = runtime.load(str(tmp_path / "both.bmodel"))
    united = model.net()
    assert [(stage.name, stage.chip) for stage in united.stages] == [
        ("1x3x8x8", "npu-base"),
        ("2x3x8x8", "npu-base"),
        ("1x3x8x8", "x86-v2"),
    ]
    with pytest.raises(
        runtime.Error,
        match=r"no stage of the net takes inputs of 3x3x8x8: dimension 0 of input 'x' is 3, at most 2 is possible; "
        r"there are 1x3x8x8 \(npu-base\); 2x3x8x8 \(npu-base\); 1x3x8x8 \(x86-v2\)",
    ):
        united({"x": np.zeros((3, 3, 8, 8), np.float32)})
    assert (
        united.stage == 0
        and united({"x": np.ones((2, 3, 8, 8), np.float32)})["y"].shape == (2, 4, 8, 8)
        and united.stage == 1
    )
    united.use({"x": (1, 3, 8, 8)})
    assert united.inputs[0].shape == (1, 3, 8, 8)
    for chip in ("x86", "x86-v2"):
        host = model.net(chip=chip)
        assert host.chip == "x86-v2"
        with pytest.raises(runtime.Error, match="the model takes 1x3x8x8|is 1, not 2"):
            host({"x": np.zeros((2, 3, 8, 8), np.float32)})
    with pytest.raises(runtime.Error, match="no such stage for chip 'npu-pro'"):
        model.net(chip="npu-pro")


def test_constants_are_in_memory_once(tmp_path: Path) -> None:
    """After both stages have run, memory holds no more pages of the file than it has: both stages share them."""
    case = CASES["resnet20_cifar10"]
    skip_if_missing(case)
    singles = [
        deploy(
            transform(data_path(case.model), f"input={n}x3x32x32", tmp_path / f"n{n}_top.mlir"),
            "npu-base",
            tmp_path / f"{n}.bmodel",
        )
        for n in (1, 4)
    ]
    both = tmp_path / "both.bmodel"
    combine(both, *singles)
    united = net(both)
    for single in singles:
        united(samples(net(single)))
    maps = Path("/proc/self/smaps").read_text().split("\n")
    resident = [
        int(maps[i + 4].split()[1])
        for i, line in enumerate(maps)
        if line.endswith(str(both)) and maps[i + 4].startswith("Rss:")
    ]
    assert resident and 0 < sum(resident) * 1024 <= both.stat().st_size


def rejected(output: Path, *files: object) -> tuple[int, str]:
    result = run_tool("model_tool", "combine", *files, "-o", output)
    assert not output.exists() and "Traceback" not in result.stderr
    return result.returncode, result.stderr


def test_what_does_not_go_together_is_told(tmp_path: Path) -> None:
    source = conv_relu(tmp_path / "n.onnx", "N")
    out = tmp_path / "out.bmodel"
    top = transform(source, "x=1x3x8x8", tmp_path / "n1_top.mlir")
    one = deploy(top, "npu-base", tmp_path / "one.bmodel")
    assert (
        rejected(out, one, one)[0] == 1
        and "has a stage for npu-base and inputs of 1x3x8x8" in rejected(out, one, one)[1]
    )
    other = transform(source, "x=2x3x8x8", tmp_path / "o_top.mlir", name="other")
    code, text = rejected(out, one, deploy(other, "npu-base", tmp_path / "other.bmodel"))
    assert code == 1 and "holds network 'other'" in text and "only files of one network" in text
    renamed = save(
        tmp_path / "r.onnx",
        [helper.make_node("Relu", ["z"], ["y"])],
        [tensor("z", [1, 3, 8, 9])],
        [tensor("y", [1, 3, 8, 9])],
    )
    code, text = rejected(
        out,
        one,
        deploy(transform(renamed, "z=1x3x8x9", tmp_path / "r_top.mlir"), "npu-base", tmp_path / "renamed.bmodel"),
    )
    assert code == 1 and "has the inputs z (f32, 4 dims)" in text and "x (f32, 4 dims)" in text
    two = transform(source, "x=2x3x8x8", tmp_path / "n2_top.mlir")
    narrow = deploy(two, "npu-base", tmp_path / "narrow.bmodel", "--chip_set", "lanes=16")
    code, text = rejected(out, one, narrow)
    assert code == 1 and "chip 'npu-base' has the fingerprint" in text
    whole = bytearray(deploy(two, "npu-base", tmp_path / "two.bmodel").read_bytes())
    whole[-5000] ^= 1
    (tmp_path / "altered.bmodel").write_bytes(whole)
    code, text = rejected(out, one, tmp_path / "altered.bmodel")
    assert code == 1 and "altered" in text
    assert rejected(out, one)[0] == 2 and rejected(tmp_path / "out.bin", one, one)[0] == 2
    assert rejected(out, one, tmp_path / "missing.bmodel")[0] == 1
