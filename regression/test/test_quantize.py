# SPDX-License-Identifier: Apache-2.0
"""Tests model_deploy --quantize INT8 as a user runs it, on a small real model: numbers, tables, and refused
arguments."""
from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest
from case_file import REGRESSION, machine_isas
from conftest import check, run_tool
from onnx import TensorProto, helper, numpy_helper
from small_models import save, tensor
from test_bad_input import assert_rejected

from tessera import safetensors_io, top_model
from tessera.calibration.observed import Observed
from tessera.files import save_npz
from tessera.progress import Report

MODEL = REGRESSION / "models" / "resnet8_cifar10" / "resnet8_cifar10.onnx"
SAMPLES = 24
LONG = 2500
"""With this many channels, products of int16 sum up to almost 2^31."""


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Returns a folder with a Top model, samples that are smooth like pictures, and a table made from them."""
    folder = tmp_path_factory.mktemp("quantize")
    check(
        run_tool(
            "model_transform",
            "--model_def",
            MODEL,
            "--model_name",
            "r8",
            "--not_inference",
            "--mlir",
            "r8_top.mlir",
            cwd=folder,
        )
    )
    generator = np.random.default_rng(7)
    coarse = generator.uniform(0, 255, (SAMPLES, 3, 5, 5)).astype(np.float32)
    save_npz(folder / "samples.npz", {"input": np.repeat(np.repeat(coarse, 7, 2), 7, 3)[:, :, :32, :32]})
    check(
        run_tool(
            "run_calibration",
            "r8_top.mlir",
            "--dataset",
            "samples.npz",
            "--tune_num",
            "2",
            "--methods",
            "none",
            "-o",
            "r8_cali.json",
            cwd=folder,
        )
    )
    return folder


def deploy(
    folder: Path, output: Path, *flags: object, table: object = "r8_cali.json", quantize: str = "INT8"
) -> subprocess.CompletedProcess[str]:
    return run_tool(
        "model_deploy",
        "--mlir",
        "r8_top.mlir",
        "--quantize",
        quantize,
        "--calibration_table",
        table,
        "--model",
        output,
        *flags,
        cwd=folder,
    )


def quantization_report(folder: Path, output: Path, *flags: object, **choice: object) -> dict:
    report = check(deploy(folder, output, "--skip_validation", "--json", *flags, **choice))  # type: ignore[arg-type]
    return json.loads(report)["model"]["quantization"]


def similarity(a: np.ndarray, b: np.ndarray) -> float:
    return float((a * b).sum() / np.sqrt((a * a).sum() * (b * b).sum()))


def outputs_of(folder: Path, model: Path) -> np.ndarray:
    import tessera.runtime as runtime

    net = runtime.load(str(model), threads=1).net()
    return np.stack(
        [net({"input": sample[None]})["output"].ravel() for sample in np.load(folder / "samples.npz")["input"]]
    )


def test_runs_on_integers_and_answers_as_f32(folder: Path, tmp_path: Path) -> None:
    report = quantization_report(folder, tmp_path / "m.bmodel")
    assert report["integer_products"] == report["products"] > 10_000_000
    assert report["integer_ops"] >= 10
    assert all(op["reason"] and op["products"] == 0 for op in report["float_ops"])
    check(
        run_tool(
            "model_deploy", "--mlir", "r8_top.mlir", "--model", tmp_path / "f.bmodel", "--skip_validation", cwd=folder
        )
    )
    f32, int8 = outputs_of(folder, tmp_path / "f.bmodel"), outputs_of(folder, tmp_path / "m.bmodel")
    assert (f32.argmax(1) == int8.argmax(1)).mean() >= 0.8
    assert similarity(f32, int8) >= 0.98
    assert not np.array_equal(f32, int8)


def test_int16_activations_are_more_accurate(folder: Path, tmp_path: Path) -> None:
    report = quantization_report(folder, tmp_path / "w.bmodel", quantize="INT16")
    assert report["wide_products"] == report["integer_products"] == report["products"]
    assert {op["reason"] for op in report["wide_ops"]} == {"INT16 was requested"}
    quantization_report(folder, tmp_path / "m.bmodel")
    check(
        run_tool(
            "model_deploy", "--mlir", "r8_top.mlir", "--model", tmp_path / "f.bmodel", "--skip_validation", cwd=folder
        )
    )
    f32, int8, int16 = (outputs_of(folder, tmp_path / f"{name}.bmodel") for name in "fmw")
    assert 1 - similarity(f32, int16) < 0.7 * (1 - similarity(f32, int8))  # the rest is the error of the weights


def test_second_products_leave_hardly_an_error(folder: Path, tmp_path: Path) -> None:
    """With 16 bits hardly any error is left, with and without rectifiers. x86 and an NPU give the same bits."""
    table = json.loads((folder / "r8_cali.json").read_text())
    quiet = Report(1, quiet=True)
    observed = Observed.compile(top_model.open_top(folder / "r8_top.mlir", quiet), tmp_path / "observed", quiet, [])
    names = {product["name"] for product in observed.info["products"]}
    for line in table["tensors"]:
        line.update({"weight_terms": 2} if line["name"] in names else {})
    (tmp_path / "t.json").write_text(json.dumps(table))
    report = quantization_report(folder, tmp_path / "t.bmodel", quantize="INT16", table=tmp_path / "t.json")
    assert report["split_weights"] == len(names) > 5 and report["second_products"] * 2 == report["products"]
    quantization_report(folder, tmp_path / "w.bmodel", quantize="INT16")
    quantization_report(
        folder, tmp_path / "n.bmodel", "--chip", "npu-base", quantize="INT16", table=tmp_path / "t.json"
    )
    check(
        run_tool(
            "model_deploy", "--mlir", "r8_top.mlir", "--model", tmp_path / "f.bmodel", "--skip_validation", cwd=folder
        )
    )
    f32, one, two, npu = (outputs_of(folder, tmp_path / f"{name}.bmodel") for name in "fwtn")
    assert 1 - similarity(f32, two) < 0.01 * (1 - similarity(f32, one))
    assert np.array_equal(two, npu)
    text = check(deploy(folder, tmp_path / "t.bmodel", table=tmp_path / "t.json"))  # compared with the device reference
    assert f"50.0 % are for the residual weights of {len(names)} ops" in text


def test_sensitive_tensors_get_int16(folder: Path, tmp_path: Path) -> None:
    table = json.loads((folder / "r8_cali.json").read_text())
    for name, error in (("calm.json", 0.0001), ("t.json", 0.5)):
        for line in table["tensors"]:
            line["error"] = error if line["name"] == "input" else 0.0001
        (tmp_path / name).write_text(json.dumps(table))
    report = quantization_report(folder, tmp_path / "m.bmodel", table=tmp_path / "t.json")
    [first] = [op for op in report["wide_ops"] if op["op"] == "top.conv"]
    assert "'input' alone would change the outputs by 50% in int8; at most 20% is allowed" in first["reason"]
    assert (
        0 < report["wide_products"] == first["products"] < 0.1 * report["products"] == 0.1 * report["integer_products"]
    )
    text = check(deploy(folder, tmp_path / "m.bmodel", "--skip_validation", table=tmp_path / "t.json"))
    assert "int16 activations (" in text and "reads int16" in text
    # A line of the quantise table selects INT16 for a tensor, or INT8 if 8 bits are enough.
    for table_type, expected in (("INT16", 1), ("INT8", 0)):
        lines = [{"name": first["name"].split("+")[0], "type": table_type, "reason": "try"}]
        (tmp_path / "q.json").write_text(json.dumps({"format": "tessera-quantize-table", "version": 1, "ops": lines}))
        cali = tmp_path / ("calm.json" if expected else "t.json")
        asked = quantization_report(folder, tmp_path / "m.bmodel", "--quantize_table", tmp_path / "q.json", table=cali)
        assert [op["reason"] for op in asked["wide_ops"] if op["products"]] == [
            "the quantise table says INT16: try"
        ] * expected


@pytest.fixture(scope="module")
def logits(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Returns a folder with t_top.mlir, the model up to its logits, and t_cali.json, its table by the default
    methods."""
    result = tmp_path_factory.mktemp("logits")
    check(
        run_tool(
            "model_transform",
            "--model_def",
            MODEL,
            "--model_name",
            "logits",
            "--output_names",
            "t22",
            "--not_inference",
            "--mlir",
            "t_top.mlir",
            cwd=result,
        )
    )
    check(
        run_tool(
            "run_calibration",
            "t_top.mlir",
            "--dataset",
            folder / "samples.npz",
            "--tune_num",
            "1",
            "-o",
            "t_cali.json",
            cwd=result,
        )
    )
    return result


@pytest.mark.parametrize(
    "quantize, requantize", [("INT8", "float"), ("INT16", "float"), ("INT8", "fixed"), ("INT16", "tflite")]
)
def test_whole_model_gives_the_same_bits_everywhere(
    folder: Path, logits: Path, tmp_path: Path, quantize: str, requantize: str
) -> None:
    """Covers the device reference, every instruction set, 1 and 2 threads. The model ends at the logits, because the
    softmax after them is float."""
    import tessera.runtime as runtime

    shutil.copytree(logits, tmp_path, dirs_exist_ok=True)
    samples = np.load(folder / "samples.npz")["input"][:3]
    for index, sample in enumerate(samples):
        safetensors_io.save(tmp_path / "in.safetensors", {"input": sample[None]})
        check(
            run_tool(
                "tessera-compile",
                "reference",
                "--mlir",
                "t_top.mlir",
                "--calibration-table",
                "t_cali.json",
                "--device",
                "--input",
                "in.safetensors",
                "--output",
                "out.safetensors",
                "--requantize",
                requantize,
                *(["--int16"] if quantize == "INT16" else []),
                cwd=tmp_path,
            )
        )
        want = safetensors_io.load(tmp_path / "out.safetensors")["t22"]
        for isa in machine_isas():
            if index == 0:
                check(
                    run_tool(
                        "model_deploy",
                        "--mlir",
                        "t_top.mlir",
                        "--quantize",
                        quantize,
                        "--calibration_table",
                        "t_cali.json",
                        "--chip",
                        isa,
                        "--model",
                        f"{isa}.bmodel",
                        "--skip_validation",
                        "--requantize",
                        requantize,
                        cwd=tmp_path,
                    )
                )
            for threads in (1, 2):
                got = runtime.load(str(tmp_path / f"{isa}.bmodel"), threads=threads).net()({"input": sample[None]})[
                    "t22"
                ]
                assert got.tobytes() == want.tobytes(), (isa, threads, np.abs(got - want).max())


def long_convolution(folder: Path) -> np.ndarray:
    """Writes a convolution over many channels with weights 1 and -1, and its table for values up to 3, into `folder`.
    Returns an input that exceeds the calibrated range, and with which all products of channel 1 have the same sign.
    The bias of channel 2 is two hundredths of the largest 32-bit integer."""
    import onnx
    from onnx import TensorProto, helper

    signs = np.where(np.random.default_rng(3).random((4, LONG, 1, 1)) < 0.5, -1, 1).astype(np.float32)
    graph = helper.make_graph(
        [helper.make_node("Conv", ["x", "w", "b"], ["y"], name="long")],
        "long",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, LONG, 2, 2])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [1, 4, 2, 2])],
        [onnx.numpy_helper.from_array(signs, "w"), onnx.numpy_helper.from_array(np.float32([0, 0, 300, 0]), "b")],
    )
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)]), folder / "long.onnx")
    definition = ("--model_def", "long.onnx", "--model_name", "long", "--mlir", "long_top.mlir")
    check(run_tool("model_transform", *definition, "--not_inference", cwd=folder))
    x = np.broadcast_to(3 * signs[1:2], (1, LONG, 2, 2)).copy()
    x[..., 1] *= -1
    x[..., 1, :] *= 3  # the range has room for twice the calibrated values
    save_npz(folder / "x.npz", {"x": np.clip(x, -3, 3)})
    ranges = ("--dataset", "x.npz", "--cali_method", "max", "-o", "cali.json")
    check(run_tool("run_calibration", "long_top.mlir", *ranges, cwd=folder))
    return x


def test_no_sum_of_int16_overflows(tmp_path: Path) -> None:
    """The weights allow as many levels as possible: the largest possible sum is exact, and near 2^31."""
    import tessera.runtime as runtime

    x = long_convolution(tmp_path)
    safetensors_io.save(tmp_path / "in.safetensors", {"x": x})
    files = ("--mlir", "long_top.mlir", "--input", "in.safetensors", "--output", "out.safetensors")
    table = ("--calibration-table", "cali.json")
    check(run_tool("tessera-compile", "reference", *files, *table, "--device", "--int16", cwd=tmp_path))
    want = safetensors_io.load(tmp_path / "out.safetensors")["y"]
    assert np.abs(want[:, 1] / np.array([[3, -3], [6, -6]]) / LONG - 1).max() < 1e-3
    quantised = ("--quantize", "INT16", "--calibration_table", "cali.json", "--device_mlir", "device.mlir")
    for isa in machine_isas():
        flags = ("--mlir", "long_top.mlir", "--chip", isa, "--model", f"{isa}.bmodel", "--skip_validation")
        check(run_tool("model_deploy", *flags, *quantised, cwd=tmp_path))
        assert np.array_equal(runtime.load(str(tmp_path / f"{isa}.bmodel")).net()({"x": x})["y"], want), isa
    bound = int(re.search(r"sumBound = (\d+)", (tmp_path / "device.mlir").read_text()).group(1))  # type: ignore
    assert 0.98 * 2**31 < bound < 2**31


def test_is_compared_with_the_float_reference(folder: Path, tmp_path: Path) -> None:
    save_npz(tmp_path / "in.npz", {"input": np.load(folder / "samples.npz")["input"][:1]})
    text = check(deploy(folder, tmp_path / "m.bmodel", "--test_input", tmp_path / "in.npz"))
    assert (
        "ops are quantised" in text
        and "100.0 % of the multiplications have int8 weights" in text
        and "'output'" not in text
    )
    rows = json.loads(check(deploy(folder, tmp_path / "m.bmodel", "--test_input", tmp_path / "in.npz", "--json")))[
        "comparison"
    ]["tensors"]
    assert len(rows) >= 10 and all(
        row["cosine"] > 0.95 and not row["note"] for row in rows
    )  # integers are compared as the values that they represent
    strict = deploy(
        folder, tmp_path / "n.bmodel", "--test_input", tmp_path / "in.npz", "--tolerance", "0.9999999,0.9999"
    )
    assert_rejected(strict, 3, "outside the tolerance")


def test_own_errors_stand_beside_the_inherited_ones(folder: Path, tmp_path: Path) -> None:
    document = json.loads(check(deploy(folder, tmp_path / "m.bmodel", "--json")))
    rows = {row["name"]: row for row in document["comparison"]["tensors"]}
    own = {name: row["own_rel_l2"] for name, row in rows.items() if row["own_rel_l2"] is not None}
    assert len(own) >= len(rows) - 1 and all(0 < error < 0.1 for name, error in own.items() if name != "output")
    assert own["output"] == 0  # the softmax is float
    # Most of the last layer's error comes from the layers before it; each layer's own errors add up as squares.
    assert own["t22"] ** 2 < 0.5 * rows["t22"]["rel_l2"] ** 2
    assert "own error" in check(deploy(folder, tmp_path / "m.bmodel"))


def test_checks_without_an_input_take_a_calibration_sample(folder: Path, tmp_path: Path) -> None:
    """Random values in [-1, 1) are not a picture of 0 to 255: a check with them shows errors that do not occur with
    pictures."""
    for name in ("r8_cali.json", "r8_cali_sample.npz"):
        (tmp_path / name).write_bytes((folder / name).read_bytes())
    kept = np.load(tmp_path / "r8_cali_sample.npz")["input"]
    assert np.array_equal(kept, np.load(folder / "samples.npz")["input"][:1])

    def note_of_check() -> tuple[str, int]:
        document = json.loads(check(deploy(folder, tmp_path / "m.bmodel", "--json", table=tmp_path / "r8_cali.json")))
        return (
            next(step["note"] for step in document["steps"] if step["name"] == "Top reference"),
            document["comparison"]["failed"],
        )

    note, failed = note_of_check()
    assert note == "r8_cali_sample.npz, a calibration sample" and failed == 0
    save_npz(tmp_path / "r8_cali_sample.npz", {"input": kept + 1})  # the sample of another table, or an edited one
    assert note_of_check()[0] == "random input in the ranges of the calibration table"
    (tmp_path / "r8_cali_sample.npz").unlink()
    note, failed = note_of_check()
    assert note == "random input in the ranges of the calibration table" and failed <= 2


def test_deploys_time_lies_in_the_range_of_the_estimate(folder: Path, tmp_path: Path) -> None:
    """Covers a model after default calibration, which gives sensitive tensors int16. If nearly all tensors are
    sensitive, the time is below the end of the range."""
    document = json.loads(
        check(run_tool("tessera", "estimate", "r8_top.mlir", "--chip", "npu-base", "--json", cwd=folder))
    )
    times = document["estimates"][0]["report"]["range"]
    assert times["low"] < times["likely_high"] < times["high"]
    text = check(run_tool("tessera", "estimate", "r8_top.mlir", "--chip", "npu-base", cwd=folder))
    assert f"{times['low']:.1f} .. {times['likely_high']:.1f}" in text and "a likely mix" in text

    def deployed(quantize: str) -> float:
        result = json.loads(
            check(
                deploy(
                    folder,
                    tmp_path / "m.bmodel",
                    "--chip",
                    "npu-base",
                    "--skip_validation",
                    "--json",
                    quantize=quantize,
                )
            )
        )
        return result["model"]["partition"]["total_microseconds"]

    assert 0.99 * times["low"] <= deployed("INT8") <= 1.01 * times["likely_high"]
    assert deployed("INT16") <= 1.01 * times["high"]


def narrowed(folder: Path, tmp_path: Path, by: float) -> Path:
    """Returns the table with ranges that clip."""
    table = json.loads((folder / "r8_cali.json").read_text())
    for entry in table["tensors"]:
        entry.update({name: entry[name] / by for name in ("threshold", "min", "max")})
        del entry["scale"], entry["zero_point"]
    (tmp_path / "narrow.json").write_text(json.dumps(table))
    save_npz(tmp_path / "in.npz", {"input": np.load(folder / "samples.npz")["input"][:1]})
    return tmp_path / "narrow.json"


def test_layers_below_the_guide_inform_and_do_not_fail(folder: Path, tmp_path: Path) -> None:
    table = narrowed(folder, tmp_path, 1.45)
    text = check(deploy(folder, tmp_path / "m.bmodel", "--test_input", tmp_path / "in.npz", table=table))
    assert " below " in text and "FAIL" not in text and "tessera accuracy" in text


def test_a_broken_quantised_model_is_an_error_unless_accepted(folder: Path, tmp_path: Path) -> None:
    table = narrowed(folder, tmp_path, 30)
    given = ("--test_input", tmp_path / "in.npz")
    result = deploy(folder, tmp_path / "m.bmodel", *given, "--json", table=table)
    document = json.loads(result.stdout)
    assert (
        result.returncode == 3
        and "is not usable" in document["error"]["message"]
        and "--accept_loss" in document["error"]["hint"]
    )
    assert (
        document["comparison"]["failed"] > len(document["comparison"]["tensors"]) / 2
        and (tmp_path / "m.bmodel").is_file()
    )
    assert "are outside" in check(deploy(folder, tmp_path / "m.bmodel", *given, "--accept_loss", table=table))
    check(deploy(folder, tmp_path / "m.bmodel", *given, "--tolerance", "-1", table=table))
    result = deploy(folder, tmp_path / "m.bmodel", "--accept_loss", quantize="F32", table=table)
    assert result.returncode == 2


def test_same_bytes_twice(folder: Path, tmp_path: Path) -> None:
    for name in ("a.bmodel", "b.bmodel"):
        quantization_report(folder, tmp_path / name)
    assert (tmp_path / "a.bmodel").read_bytes() == (tmp_path / "b.bmodel").read_bytes()


@pytest.mark.parametrize(
    "precision, name, cosine, size",
    [("BF16", "BF16", 0.999, 0.7), ("F16", "F16", 0.9999, 0.7), ("W8", "W8F32", 0.99, 0.5), ("W4", "w4f32", 0.6, 0.4)],
)
def test_smaller_floats_and_weights_alone_need_no_table(
    folder: Path, tmp_path: Path, precision: str, name: str, cosine: float, size: float
) -> None:
    """By either name and on every instruction set, the result is near f32 and the file is smaller. The check against
    the float reference runs, too."""

    def made(output: Path, *flags: object) -> Path:
        check(run_tool("model_deploy", "--mlir", "r8_top.mlir", "--model", output, *flags, cwd=folder))
        return output

    f32 = made(tmp_path / "f.bmodel", "--skip_validation")
    wanted = outputs_of(folder, f32)
    for isa in machine_isas():
        # Four bits per channel are too coarse for such a small network: most inner tensors are outside their tolerance.
        small = made(
            tmp_path / f"{isa}.bmodel",
            "--quantize",
            precision,
            "--chip",
            isa,
            *(["--accept_loss"] if precision == "W4" else []),
        )
        got = outputs_of(folder, small)
        assert (wanted * got).sum() / np.sqrt((wanted * wanted).sum() * (got * got).sum()) >= cosine
        assert not np.array_equal(wanted, got)
    assert (
        small.stat().st_size < size * f32.stat().st_size
    )  # code that widens without such instructions is longer than this model
    again = made(tmp_path / "again.bmodel", "--quantize", name, "--chip", machine_isas()[-1], "--skip_validation")
    assert again.read_bytes() == small.read_bytes()


def test_quantize_table_keeps_ops(folder: Path, tmp_path: Path) -> None:
    report = quantization_report(folder, tmp_path / "m.bmodel")
    tensors = json.loads((folder / "r8_cali.json").read_text())["tensors"]
    info = json.loads(
        check(run_tool("tessera-compile", "info", "--mlir", folder / "r8_top.mlir", "--tensors")).splitlines()[-1]
    )
    assert {line["name"] for line in tensors} <= set(info["tensors"])
    table = tmp_path / "q.json"
    line = {"name": "output", "type": "F32", "reason": "the head"}
    table.write_text(json.dumps({"format": "tessera-quantize-table", "version": 1, "ops": [line]}))
    kept = quantization_report(folder, tmp_path / "n.bmodel", "--quantize_table", table)
    assert any("the quantise table says F32: the head" == op["reason"] for op in kept["float_ops"])
    assert kept["integer_ops"] <= report["integer_ops"]


def test_ops_without_a_line_stay_float(folder: Path, tmp_path: Path) -> None:
    table = json.loads((folder / "r8_cali.json").read_text())
    table["tensors"] = [line for line in table["tensors"] if line["name"] != "input"]
    (tmp_path / "t.json").write_text(json.dumps(table))
    result = json.loads(
        check(deploy(folder, tmp_path / "m.bmodel", "--skip_validation", "--json", table=tmp_path / "t.json"))
    )
    kept = result["model"]["quantization"]["float_ops"]
    assert [op["reason"] for op in kept if op["products"]] == ["tensor 'input' has no line in the calibration table"]


def edited(folder: Path, tmp_path: Path, **changes: object) -> Path:
    table = {**json.loads((folder / "r8_cali.json").read_text()), **changes}
    (tmp_path / "edited.json").write_text(json.dumps(table))
    return tmp_path / "edited.json"


def test_table_of_another_model_is_rejected(folder: Path, tmp_path: Path) -> None:
    table = edited(folder, tmp_path, model_hash="0" * 32, network="", model="other")
    assert_rejected(deploy(folder, tmp_path / "m.bmodel", table=table), 1, "edited.json", "of another model", "0" * 32)
    compiled = run_tool(
        "tessera-compile",
        "deploy",
        "--mlir",
        "r8_top.mlir",
        "--quantize",
        "INT8",
        "--calibration-table",
        table,
        "--output",
        tmp_path / "m.bmodel",
        cwd=folder,
    )
    assert compiled.returncode == 1 and "is of another model" in compiled.stdout
    assert not (tmp_path / "m.bmodel").exists()


@pytest.mark.parametrize(
    "content, words",
    [
        ("{", ["q.json", "not valid JSON"]),
        (
            '{"format": "tessera-quantize-table", "version": 1, "ops": [{"name": "outptu", "type": "F32"}]}',
            ["'outptu'", "'output'"],
        ),
        (
            '{"format": "tessera-quantize-table", "version": 1, "ops": [{"name": "output", "type": "INT2"}]}',
            ["'output'", "INT2", "F32, INT8, INT16"],
        ),
    ],
)
def test_bad_quantize_table(folder: Path, tmp_path: Path, content: str, words: list[str]) -> None:
    (tmp_path / "q.json").write_text(content)
    assert_rejected(deploy(folder, tmp_path / "m.bmodel", "--quantize_table", tmp_path / "q.json"), 1, *words)
    assert not (tmp_path / "m.bmodel").exists()


def test_missing_tables(folder: Path, tmp_path: Path) -> None:
    assert_rejected(deploy(folder, tmp_path / "m.bmodel", table="absent.json"), 1, "absent.json")
    assert_rejected(deploy(folder, tmp_path / "m.bmodel", "--quantize_table", "absent.json"), 1, "absent.json")


def test_what_bf16_loses_without_a_table_is_told(tmp_path: Path) -> None:
    """bf16 keeps only 8 bits of large numbers, so their small differences are inaccurate. With a table they stay
    f32."""
    identity, offset = np.eye(16, dtype=np.float32), np.float32(60)
    nodes = [
        helper.make_node("Add", ["x", "offset"], ["large"]),
        helper.make_node("MatMul", ["large", "w"], ["moved"]),
        helper.make_node("Sub", ["moved", "offset"], ["y"]),
    ]
    constants = [numpy_helper.from_array(identity, "w"), numpy_helper.from_array(offset, "offset")]
    save(tmp_path / "m.onnx", nodes, [tensor("x", [4, 16])], [tensor("y", [4, 16])], constants)
    flags = ("--model_name", "m", "--model_def", "m.onnx", "--mlir", "m_top.mlir", "--not_inference")
    check(run_tool("model_transform", *flags, cwd=tmp_path))
    save_npz(tmp_path / "samples.npz", {"x": np.random.default_rng(1).normal(size=(16, 4, 16)).astype(np.float32)})
    check(run_tool("run_calibration", "m_top.mlir", "--dataset", "samples.npz", "-o", "t.json", cwd=tmp_path))
    quantization_report = {}
    for name, table in (("without", ()), ("with", ("--calibration_table", "t.json"))):
        flags = ("--mlir", "m_top.mlir", "--chip", "x86", "--quantize", "BF16", "--model", "m.bmodel", "--json", *table)
        quantization_report[name] = json.loads(check(run_tool("model_deploy", *flags, cwd=tmp_path)))
    (warning,) = [
        text
        for text in quantization_report["without"]["warnings"]
        if "BF16 changes the outputs: relative error" in text
    ]
    assert "run_calibration" in warning and quantization_report["without"]["output_error"]["error"] > 0.03
    assert quantization_report["with"]["output_error"]["error"] < 0.003


@pytest.mark.parametrize("quantize", ("BF16", "INT8"))
def test_the_error_of_integers_is_the_share_that_differs(quantize: str, tmp_path: Path) -> None:
    nodes = [helper.make_node("MatMul", ["x", "w"], ["m"]), helper.make_node("ArgMax", ["m"], ["y"], axis=1)]
    constants = [numpy_helper.from_array(np.eye(16, dtype=np.float32), "w")]
    save(tmp_path / "m.onnx", nodes, [tensor("x", [4, 16])], [tensor("y", [4, 1], TensorProto.INT64)], constants)
    flags: tuple[object, ...] = (
        "--model_name",
        "m",
        "--model_def",
        "m.onnx",
        "--mlir",
        "m_top.mlir",
        "--not_inference",
    )
    check(run_tool("model_transform", *flags, cwd=tmp_path))
    flags = ("--mlir", "m_top.mlir", "--chip", "x86", "--quantize", quantize, "--model", "m.bmodel", "--json")
    if quantize == "INT8":
        save_npz(tmp_path / "samples.npz", {"x": np.random.default_rng(1).normal(size=(16, 4, 16)).astype(np.float32)})
        check(run_tool("run_calibration", "m_top.mlir", "--dataset", "samples.npz", "-o", "t.json", cwd=tmp_path))
        flags += ("--calibration_table", "t.json")
    quantization_report = json.loads(check(run_tool("model_deploy", *flags, cwd=tmp_path)))
    assert (
        quantization_report["output_error"]["name"] == "share of different integers"
        and quantization_report["output_error"]["error"] < 0.1
    )
