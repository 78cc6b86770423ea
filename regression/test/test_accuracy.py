# SPDX-License-Identifier: Apache-2.0
"""tessera accuracy: scores, drops, own scorers, agreement, and what is refused."""
from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from case_file import all_cases
from conftest import Builder, check, run_tool
from PIL import Image

CASE = next(case for case in all_cases() if case.name == "resnet8_cifar10")
SCORER = (
    "def score(model, data):\n    import numpy as np\n    spec = model.inputs[0]\n    "
    "return {'largest': float(model.run({spec.name: np.full(spec.shape, 128, "
    "np.float32)})[model.outputs[0].name].max())}\n"
)


@pytest.fixture(scope="module")
def pictures(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Writes ten pictures of noise with a label each."""
    folder = tmp_path_factory.mktemp("pictures")
    generator = np.random.default_rng(1)
    lines = ["file,class_index"]
    for i in range(10):
        Image.fromarray(generator.integers(0, 256, (32, 32, 3), np.uint8)).save(folder / f"{i}.png")
        lines.append(f"{i}.png,{i % 10}")
    (folder / "labels.csv").write_text("\n".join(lines) + "\n")
    return folder


@pytest.fixture(scope="module")
def bmodel(builder: Builder) -> Path:
    return builder.bmodel(CASE, "x86-v2")


def accuracy(*arguments: object) -> tuple[dict, str]:
    result = run_tool("tessera", "accuracy", *arguments, "--json")
    return json.loads(result.stdout), result.stderr


def test_scores_stand_beside_their_drop(bmodel: Path, builder: Builder, pictures: Path) -> None:
    document, screen = accuracy(
        bmodel, builder.top(CASE), "--task", "classification", "--data", pictures, "--max_drop", 0
    )
    first, second = document["models"]
    assert document["exit_code"] == 0 and first["figures"]["n"] == 10 and first["figures"] == second["figures"]
    assert second["drop_points"] == 0 and "drop of top1" in screen


def test_agreement_of_equal_and_other_models(bmodel: Path, builder: Builder, pictures: Path) -> None:
    document, _ = accuracy(bmodel, builder.top(CASE), "--task", "agreement", "--data", pictures, "--input_num", 3)
    figures = document["models"][1]["figures"]
    assert figures["n"] == 3 and figures["cos"] > 0.99999 and figures["same_top"] == 1


def test_own_scorer_counts_and_a_drop_fails(bmodel: Path, tmp_path: Path) -> None:
    (tmp_path / "s.py").write_text(SCORER)
    document, _ = accuracy(bmodel, "--scorer", tmp_path / "s.py", "--data", "x")
    assert 0 < document["models"][0]["figures"]["largest"] <= 1
    (tmp_path / "worse.py").write_text(
        "calls = []\ndef score(model, data):\n    calls.append(0)\n    return -len(calls)\n"
    )
    document, screen = accuracy(bmodel, bmodel, "--scorer", tmp_path / "worse.py", "--data", "x", "--max_drop", 0.5)
    assert document["exit_code"] == 3 and "loses 1.000 points" in document["error"]["message"]
    assert "+1.000 points" in screen and "does not declare SCALE" in screen


def falling_scorer(folder: Path, first: float, later: float, declaration: str = "") -> Path:
    """Writes a scorer that gives the first model one score and all others another."""
    path = folder / "falls.py"
    path.write_text(
        f"{declaration}\ncalls = []\ndef score(model, data):\n    calls.append(0)\n"
        f"    return {first} if len(calls) == 1 else {later}\n"
    )
    return path


@pytest.mark.parametrize(
    "first, later, declaration",
    [(0.964, 0.307, ""), (0.964, 0.307, "SCALE = 1.0"), (96.4, 30.7, ""), (0.964, 0.307, "SCALE = 1")],
)
def test_a_drop_is_counted_in_hundredths_of_the_scale(
    bmodel: Path, tmp_path: Path, first: float, later: float, declaration: str
) -> None:
    scorer = falling_scorer(tmp_path, first, later, declaration)
    document, screen = accuracy(bmodel, bmodel, "--scorer", scorer, "--data", "x", "--max_drop", 5)
    assert document["exit_code"] == 3 and "loses 65.7" in document["error"]["message"]
    assert document["models"][1]["drop_points"] == pytest.approx(65.7)
    assert ("does not declare SCALE" in screen) == (not declaration)


def test_a_large_drop_is_never_silent(bmodel: Path, tmp_path: Path) -> None:
    scorer = falling_scorer(tmp_path, 0.9, 0.55, "SCALE = 1.0")
    for flags in ((), ("--max_drop", 50)):
        document, screen = accuracy(bmodel, bmodel, "--scorer", scorer, "--data", "x", *flags)
        assert document["exit_code"] == 0
        assert "loses more than a third" in screen and "0.9 -> 0.55, 35 points" in screen


@pytest.mark.parametrize(
    "code, text",
    [
        ("x = 1\n", "does not define a function score()"),
        ("def score(model, data):\n    return 1 / 0\n", "ZeroDivisionError"),
        ("def score(model, data):\n    return 'good'\n", "returned 'good'"),
        ("def score(model, data):\n    return {}\n", "returned {}"),
        ("SCALE = 0\ndef score(model, data):\n    return 1\n", "SCALE is 0; expected a positive number"),
    ],
)
def test_bad_scorer_is_told(bmodel: Path, tmp_path: Path, code: str, text: str) -> None:
    (tmp_path / "s.py").write_text(code)
    document, _ = accuracy(bmodel, "--scorer", tmp_path / "s.py", "--data", "x")
    assert document["exit_code"] == 1 and text in document["error"]["message"]


@pytest.mark.parametrize(
    "task, file, content, text",
    [
        ("classification", None, None, "labels.csv is missing"),
        ("classification", "labels.csv", "file,name\na.png,dog\n", "has the columns"),
        ("classification", "labels.csv", "file,index\na.png,dog\n", "labels.csv:2"),
        ("classification", "labels.csv", "file,index\n", "has no rows"),
        ("classification", "labels.csv", "file,index\na.png,1\n", "a.png"),
        ("detection", "annotations.json", "[1]", "not a COCO annotation file"),
        ("segmentation", "annotations.json", '{"images": [], "annotations": [], "categories": []}', "no photo"),
        ("super_resolution", None, None, "is not [1,1,h,w]"),
        ("language", None, None, "0 *.bin and 0 *.txt"),
        ("tracking", "pairs.csv", "template,search\n", "expected: template, search"),
        ("agreement", None, None, "it is empty"),
    ],
)
def test_bad_data_is_told(
    bmodel: Path, tmp_path: Path, task: str, file: str | None, content: str | None, text: str
) -> None:
    folder = tmp_path / "data"
    folder.mkdir()
    if file:
        (folder / file).write_text(content or "")
    document, _ = accuracy(bmodel, "--task", task, "--data", folder)
    assert document["exit_code"] == 1 and text in document["error"]["message"]


def test_wrong_flags(bmodel: Path, pictures: Path) -> None:
    for flags in (
        ["--task", "classification", "--data", pictures, "--max_drop", 1],
        ["--data", pictures],
        ["--task", "classification", "--data", pictures, "--threads", 0],
        ["--task", "no", "--data", pictures],
    ):
        assert run_tool("tessera", "accuracy", bmodel, *flags).returncode == 2


def test_an_onnx_takes_preprocessing_from_the_bmodel(bmodel: Path, pictures: Path) -> None:
    pytest.importorskip("onnxruntime")
    from case_file import data_path

    result = check(
        run_tool("tessera", "accuracy", data_path(CASE.model), bmodel, "--task", "classification", "--data", pictures)
    )
    assert "drop of top1" in result and "+0.000 points" in result
