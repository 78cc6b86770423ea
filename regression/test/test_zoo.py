# SPDX-License-Identifier: Apache-2.0
"""Tests the zoo without torch: its judge on small models, its verdicts, and the page that ./dev zoo writes."""
from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import asdict
from pathlib import Path

import numpy as np
import pytest
import small_models
from conftest import BUILD

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "regression" / "zoo"))

import open_sizes  # noqa: E402
import outcome  # noqa: E402
import registry  # noqa: E402
import table  # noqa: E402
import zoo  # noqa: E402
from judge import CALIBRATED, TRIED, VERDICTS, Result, Step, Tools, judge, said_unequal, verdict_of  # noqa: E402

PAGE = ROOT / "docs" / "generated" / "zoo.md"
INPUT = {"x": {"shape": [1, 3, 8, 8], "kind": "normal"}}


def judged(model: Path, folder: Path, **more: object) -> Result:
    scratch = folder / "scratch"
    scratch.mkdir()
    return judge(Result("small", "torchscript", "cnn"), model, INPUT, scratch, Tools(BUILD, 120), **more)


def test_a_small_network_is_right_and_equal(tmp_path: Path) -> None:
    result = judged(small_models.conv_relu(tmp_path / "m.onnx"), tmp_path)
    assert (result.verdict, result.equal, result.host_subnets) == ("right", "equal", 0), result
    assert result.cosine_f32 > 0.9999 and result.cosine_int8 > 0.99 and result.peak_mb > 10
    assert set(result.steps) == {"transform", "f32", "calibrate", "int8", "npu", "outcome"} and not any(
        s["exit"] for s in result.steps.values()
    )


def test_what_is_rejected_says_why(tmp_path: Path) -> None:
    result = judged(small_models.unknown_ops(tmp_path / "m.onnx"), tmp_path)
    assert result.verdict == "refused" and "FancyNorm" in result.reason and set(result.steps) == {"transform"}


def test_a_wrong_answer_is_seen(tmp_path: Path) -> None:
    """The compiled models of one network are compared with the ONNX file of another, as if the compiler had made an
    error."""
    result = judged(small_models.conv_relu(tmp_path / "m.onnx"), tmp_path)
    assert result.verdict == "right"
    import onnx

    other = onnx.load(str(tmp_path / "m.onnx"))
    weight = onnx.numpy_helper.to_array(other.graph.initializer[0])
    other.graph.initializer[0].CopyFrom(onnx.numpy_helper.from_array(-weight[::-1].copy(), "w"))
    onnx.save(other, str(tmp_path / "other.onnx"))
    scratch = tmp_path / "scratch"
    info = (
        Tools(BUILD, 60)
        .run(
            scratch,
            "tessera-python",
            ROOT / "regression/zoo/outcome.py",
            f"onnx={tmp_path / 'other.onnx'}",
            "f32=f32.bmodel",
            "int8=int8.bmodel",
            "npu=f32.bmodel",
            "4.npz",
        )
        .document
    )
    assert info["reference_f32"] < 0.99 and info["f32_int8"] > 0.99 and info["different"] > 0.5 * info["elements"]


def test_one_file_is_right_at_all_sizes(tmp_path: Path) -> None:
    opened = open_sizes.OpenInputs({"x": registry.normal(1, 3, 8, 8)}, "batch")
    sizes = {"dims": "batch=1..4", "shapes": opened.tried()}
    result = judged(small_models.conv_relu(tmp_path / "m.onnx", "batch"), tmp_path, columns=["f32"], open_dims=sizes)
    assert result.verdict == "right" and set(result.steps) == {"transform", "f32", "outcome"}, result
    samples = sorted((tmp_path / "scratch").glob("*.npz"))
    assert [np.load(path)["x"].shape[0] for path in samples] == [1, 2, 4, 3]


def test_a_size_outside_its_range_is_a_fault(tmp_path: Path) -> None:
    sizes = {"dims": "batch=1..2", "shapes": [{"x": (3, 3, 8, 8)}, {"x": (1, 3, 8, 8)}]}
    result = judged(small_models.conv_relu(tmp_path / "m.onnx", "batch"), tmp_path, columns=["f32"], open_dims=sizes)
    assert result.verdict == "exit 70" and "up to 2, 3, 8, 8" in result.reason, result


def test_open_sizes() -> None:
    picture, text = registry.normal(1, 3, 64, 56), registry.ids(9, 1, 16)
    most, fewer, least = open_sizes.levels({"picture": picture, "ids": text, "mask": registry.ones(1, 16)})
    assert most.axes["picture"] == {0: "batch", 2: "h64", 3: "w56"} and most.axes["ids"] == most.axes["mask"]
    assert fewer.axes["picture"] == {0: "batch"} and fewer.axes["ids"] == {0: "batch", 1: "length16"}
    assert least.axes["ids"] == {0: "batch"}
    for shapes in most.tried():
        for label, axis in (("h64", 2), ("w56", 3)):
            symbol, size = most.symbols[label], shapes["picture"][axis]
            assert symbol.least <= size <= symbol.most and size % symbol.divisor == 0
    names = {"picture": ["batch", "", "h", ""], "ids": ["batch", "s7"]}
    assert open_sizes.named_ranges(most, names) == "batch=1..4,h=64..128:32,picture.3=56..168:56,s7=1..32"


def step(code: int, message: str = "", **document: object) -> Step:
    return Step(code, 1.0, 10.0, message, document)


@pytest.mark.parametrize(
    "steps, cosine, wanted",
    [
        ({"transform": step(0), "f32": step(0)}, 1.0, "right"),
        ({"transform": step(0), "f32": step(0)}, 0.9, "silent"),
        ({"transform": step(0), "f32": step(3, "2 tensors")}, 0.9, "wrong, reported"),
        ({"transform": step(0), "f32": step(0), "int8": step(3, "is not usable")}, 1.0, "right"),
        ({"transform": step(4, "NonZero")}, None, "refused"),
        ({"transform": step(1, "no such file")}, None, "refused"),
        ({"transform": step(1, "Traceback (most recent call last): ...")}, None, "exit 70"),
        ({"transform": step(124)}, None, "too long"),
        ({"transform": step(3, "flips"), "npu": step(70, "a fault")}, 1.0, "exit 70"),
        ({"transform": step(-11)}, None, "exit 70"),
        ({"transform": step(0), "f32": step(0), "outcome": step(-6)}, None, "exit 70"),
        ({"transform": step(0), "f32": step(0), "outcome": step(1, "failed to run the model")}, None, "exit 70"),
    ],
)
def test_verdicts(steps: dict[str, Step], cosine: float | None, wanted: str) -> None:
    assert verdict_of(Result("n", "e", "f", cosine_f32=cosine), steps, False)[0] == wanted


def test_int8_that_nobody_complains_of() -> None:
    result = Result("n", "e", "f", cosine_f32=1.0, cosine_int8=0.1)
    assert verdict_of(result, {"f32": step(0), "int8": step(0, warnings=[])}, False)[0] == "silent"
    assert (
        verdict_of(result, {"f32": step(0), "int8": step(0, warnings=["3 tensors are outside"])}, False)[0] == "right"
    )


def test_a_difference_that_is_named_is_said() -> None:
    """The judgement reads the output of model_deploy --json, not the words of a warning; test_bit_equal.py checks the
    key."""
    assert said_unequal({"model": {"bit_equal_except": ["conv"]}}) and not said_unequal(
        {"model": {"bit_equal_except": []}}
    )
    assert not said_unequal({"model": {"bit_equal_except": None}}) and not said_unequal({})


def test_comparisons_can_fail() -> None:
    a = np.array([1.0, np.nan, -0.0], np.float32)
    assert outcome.different({"y": a}, {"y": a.copy()}) == (0, 3)
    assert outcome.different({"y": a}, {"y": np.array([1.0, np.nan, 0.0], np.float32)}) == (1, 3)
    assert outcome.different({"y": a}, {"y": a[:2]}) == (3, 3) and outcome.different({"y": a}, {}) == (3, 3)
    assert (
        outcome.agreement(a, a) == 1
        and outcome.agreement(a, np.ones(3, np.float32)) == -1
        and outcome.agreement(a[:1], a) == -1
    )
    assert outcome.agreement(np.array([1, 2, 3]), np.array([1, 2, 4])) == pytest.approx(2 / 3)
    assert (
        outcome.agreement(np.float32([1, -1]), np.float32([-1, 1])) == pytest.approx(-1)
        and outcome.worst({}, {"y": a}) == -1
    )


def test_entries_behind_the_real_ones_are_left_out() -> None:
    wanted = {"y": np.ones((2, 4), np.float32)}
    assert (
        outcome.worst(
            outcome.leading({"y": np.vstack([np.ones((2, 4), np.float32), -np.ones((3, 4), np.float32)])}, wanted),
            wanted,
        )
        == 1
    )
    assert outcome.worst(outcome.leading({"y": np.ones((1, 4), np.float32)}, wanted), wanted) == -1
    assert outcome.worst(outcome.leading({"y": -np.ones((5, 4), np.float32)}, wanted), wanted) < 0


def test_descriptions() -> None:
    networks = registry.all_networks()
    assert len({network.name for network in networks}) == len(networks) >= 120
    for network in networks:
        assert network.inputs and set(network.exporters) <= set(registry.EXPORTERS), network.name
        for result in network.inputs.values():
            assert result.sample(np.random.default_rng(0)).shape == result.shape


def test_the_page_is_what_the_script_writes() -> None:
    text = PAGE.read_text(encoding="utf-8")
    rows, missing, older = table.parse(text)
    assert table.render(rows, missing, older, TRIED, CALIBRATED) == text
    known = {network.name: network for network in registry.all_networks()}
    for row in rows:
        name, family, exporter, *_ = row.cells
        assert (
            len(row.cells) == len(table.HEADER) and row.verdict in VERDICTS and row.cells[5] in table.EQUAL.values()
        ), row
        assert known[name].family == family and exporter in known[name].exporters, row
    assert len({row.cells[0] for row in rows}) >= 120 and len({(row.cells[0], row.cells[2]) for row in rows}) == len(
        rows
    )


def test_lines_without_a_result_stay(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A page written from the results of some networks keeps the lines of the others."""
    old, missing, _ = table.parse(PAGE.read_text())
    monkeypatch.setattr(zoo, "BUILD", tmp_path)
    monkeypatch.setattr(zoo, "PAGE", tmp_path / "zoo.md")
    monkeypatch.setattr(zoo, "fingerprint", lambda: "print")
    zoo.PAGE.write_text(PAGE.read_text())
    name, family, exporter = old[-1].cells[:3]
    results = zoo.result_file(next(n for n in registry.all_networks() if n.name == name), exporter)
    results.parent.mkdir(parents=True)
    results.write_text(json.dumps(asdict(Result(name, exporter, family, key="print", verdict="too long"))))
    zoo.write_page()
    rows, still_missing, older = table.parse(zoo.PAGE.read_text())
    assert (rows[:-1], still_missing, older) == (old[:-1], missing, len(old) - 1)
    assert rows[-1].verdict == "too long"


def test_without_torch_it_is_skipped_by_name() -> None:
    done = subprocess.run(
        [
            sys.executable,
            "-c",
            "import sys; sys.modules['torch'] = None; sys.path.insert(0, 'regression/zoo'); sys.argv = ['zoo.py']; "
            "import importlib.util as u; old = u.find_spec; u.find_spec = lambda name: None if name == 'torch' else "
            "old(name); "
            "import zoo; sys.exit(zoo.main())",
        ],
        cwd=ROOT,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0 and "zoo: skipped: not installed: torch" in done.stdout, done.stderr
