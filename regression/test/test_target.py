# SPDX-License-Identifier: Apache-2.0
"""Tests model_deploy --target as a user runs it, on a small real model: results, reports, resumption and rejected
flags."""
from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from pathlib import Path

import numpy as np
import pytest
from case_file import REGRESSION
from conftest import BUILD, check, run_tool
from test_bad_input import assert_rejected

from tessera.files import save_npz

MODEL = REGRESSION / "models" / "resnet8_cifar10" / "resnet8_cifar10.onnx"
# The mean distance of the outputs from stored ones, in points. Unlike a share of samples, this score changes
# continuously.
SCORER = """
import numpy as np
def score(model, data):
    arrays = np.load(data)
    pairs = zip(arrays["input"], arrays["golden"])
    errors = [np.abs(model.run({"input": x[None]})["output"] - y).sum() for x, y in pairs]
    return {"near": -100 * float(np.mean(errors)), "n": len(errors)}
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Returns a folder with a Top model, its table, samples for scores that were not used for calibration, and their
    f32 outputs."""
    import tessera.runtime as runtime

    folder = tmp_path_factory.mktemp("target")
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
    generator = np.random.default_rng(11)
    for name, count in (("calib", 16), ("scored", 12)):
        coarse = generator.uniform(0, 255, (count, 3, 5, 5)).astype(np.float32)
        save_npz(folder / f"{name}.npz", {"input": np.repeat(np.repeat(coarse, 7, 2), 7, 3)[:, :, :32, :32]})
    check(
        run_tool(
            "run_calibration",
            "r8_top.mlir",
            "--dataset",
            "calib.npz",
            "--cali_method",
            "max",
            "-o",
            "r8_cali.json",
            cwd=folder,
        )
    )
    check(run_tool("model_deploy", "--mlir", "r8_top.mlir", "--model", "f.bmodel", "--skip_validation", cwd=folder))
    net = runtime.load(str(folder / "f.bmodel"), threads=1).net()
    inputs = np.load(folder / "scored.npz")["input"]
    save_npz(
        folder / "labelled.npz",
        {"input": inputs, "golden": np.stack([net({"input": x[None]})["output"] for x in inputs])},
    )
    (folder / "near.py").write_text(SCORER)
    return folder


def arguments(output: Path, *flags: object) -> list[object]:
    return [
        "--mlir",
        "r8_top.mlir",
        "--quantize",
        "INT8",
        "--calibration_table",
        "r8_cali.json",
        "--model",
        output,
        "--skip_validation",
        *flags,
    ]


def search(folder: Path, output: Path, *flags: object) -> subprocess.CompletedProcess[str]:
    return run_tool("model_deploy", *arguments(output, *flags), cwd=folder)


def found(result: subprocess.CompletedProcess[str]) -> dict:
    return json.loads(check(result))["search"]


def test_cosine_is_reached_and_the_table_is_good_to_use_again(folder: Path, tmp_path: Path) -> None:
    easy = found(search(folder, tmp_path / "e.bmodel", "--target", "cos>=0.9", "--data", "scored.npz", "--json"))
    assert easy["met"] and easy["ops"] == [] and easy["scores"] == 1
    limit = 1 - (1 - easy["value"]) / 4
    result = found(search(folder, tmp_path / "m.bmodel", "--target", f"cos>={limit}", "--data", "scored.npz", "--json"))
    assert result["met"] and result["value"] >= limit > easy["value"]
    assert 0 < result["not_int8_products"] < 1 and 1 < result["time_of_int8"] and result["time_of_f32"] < 1
    table = json.loads((tmp_path / "r8_qtable.json").read_text())
    assert table["ops"] == result["ops"] and all(
        "%" in line["reason"] and line["type"] in ("INT16", "F32") for line in table["ops"]
    )
    assert not list(tmp_path.glob("*.partial"))
    again = search(folder, tmp_path / "again.bmodel", "--quantize_table", tmp_path / "r8_qtable.json")
    check(again)
    assert (tmp_path / "again.bmodel").read_bytes() == (tmp_path / "m.bmodel").read_bytes()


def test_an_npu_is_searched_for_by_its_own_rates(folder: Path, tmp_path: Path) -> None:
    flags = ("--chip", "npu-base", "--chip_set", "lanes=8", "--data", "scored.npz", "--json")
    result = found(search(folder, tmp_path / "m.bmodel", "--target", "cos>=0.9", *flags))
    assert result["met"] and result["time_of_int8"] == 1 and result["time_of_f32"] < 1


def test_drop_by_a_scorer_of_ones_own(folder: Path, tmp_path: Path) -> None:
    flags = ("--scorer", "near.py", "--data", "labelled.npz")
    int8 = found(search(folder, tmp_path / "a.bmodel", "--target", "drop<=1000", *flags, "--json"))["value"]
    assert int8 > 0
    result = search(folder, tmp_path / "m.bmodel", "--target", f"drop<={int8 / 3}", *flags)
    text = check(result)
    assert (
        "all-INT8: near" in text
        and " points; chosen: near" in text
        and "evaluations of" in text
        and "estimated time" in text
    )
    scored = run_tool(
        "tessera",
        "accuracy",
        "f.bmodel",
        tmp_path / "m.bmodel",
        "--scorer",
        "near.py",
        "--data",
        "labelled.npz",
        "--max_drop",
        int8 / 3,
        cwd=folder,
    )
    check(scored)


FALLS = """
calls = []
def score(model, data):
    model.run({"input": __import__("numpy").zeros((1, 3, 32, 32), "float32")})
    calls.append(0)
    return 0.964 if len(calls) == 1 else 0.307
"""


def test_a_share_that_falls_is_not_met_by_a_drop_of_one_point(folder: Path, tmp_path: Path) -> None:
    (folder / "falls.py").write_text(FALLS)
    flags = ("--scorer", "falls.py", "--data", "labelled.npz")
    result = search(folder, tmp_path / "a.bmodel", "--target", "drop<=1", *flags)
    assert result.returncode == 3 and "0.964 -> 0.307, 65.7 points" in result.stdout + result.stderr
    allowed = search(folder, tmp_path / "b.bmodel", "--target", "drop<=70", *flags)
    assert "loses more than a third" in check(allowed) and "does not declare SCALE" in allowed.stdout


def test_what_the_user_fixed_stays(folder: Path, tmp_path: Path) -> None:
    base = found(search(folder, tmp_path / "a.bmodel", "--target", "cos>=0.9", "--data", "scored.npz", "--json"))
    limit = 1 - (1 - base["value"]) / 4
    free = found(search(folder, tmp_path / "b.bmodel", "--target", f"cos>={limit}", "--data", "scored.npz", "--json"))
    pinned = {"name": free["ops"][-1]["name"], "type": "INT8", "reason": "mine"}
    (tmp_path / "q.json").write_text(json.dumps({"format": "tessera-quantize-table", "version": 1, "ops": [pinned]}))
    fixed = search(
        folder,
        tmp_path / "c.bmodel",
        "--target",
        f"cos>={limit}",
        "--data",
        "scored.npz",
        "--quantize_table",
        tmp_path / "q.json",
        "--search_table",
        tmp_path / "out.json",
    )
    assert fixed.returncode in (0, 3), fixed.stderr
    lines = json.loads((tmp_path / "out.json").read_text())["ops"]
    assert lines[0] == pinned and [line["name"] for line in lines].count(pinned["name"]) == 1


def test_unreachable_target_gives_the_best_and_exit_3(folder: Path, tmp_path: Path) -> None:
    result = search(
        folder, tmp_path / "m.bmodel", "--target", "drop<=-1", "--scorer", "near.py", "--data", "labelled.npz"
    )
    assert_rejected(result, 3, "--target drop<=-1 was not reached", "r8_qtable.json")
    assert (tmp_path / "m.bmodel").exists() and json.loads((tmp_path / "r8_qtable.json").read_text())["ops"]


def test_calibration_samples_as_scored_ones_are_told(folder: Path, tmp_path: Path) -> None:
    warned = "of the 16 scored samples were used for calibration"
    same = search(folder, tmp_path / "m.bmodel", "--target", "cos>=0.5", "--data", "calib.npz")
    assert f"16 {warned}" in check(same)
    assert "were used for calibration" not in check(
        search(folder, tmp_path / "n.bmodel", "--target", "cos>=0.5", "--data", "scored.npz")
    )


# This scorer waits for an interrupt after a few measurements are stored, unless the file `go` exists.
STOPPING = """
from pathlib import Path
import time
FOLDER = Path({folder!r})
def stop():
    partial = FOLDER / "r8_qtable.json.partial"
    if partial.exists() and len(partial.read_text().splitlines()) > 4 and not (FOLDER / "go").exists():
        (FOLDER / "reached").touch()
        time.sleep(600)
"""


def test_an_interrupt_loses_nothing(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "slow.py").write_text(
        STOPPING.format(folder=str(tmp_path)) + SCORER.replace("    arrays =", "    stop()\n    arrays =")
    )
    flags = ("--target", "drop<=0", "--scorer", tmp_path / "slow.py", "--data", "labelled.npz")
    process = subprocess.Popen(
        [str(BUILD / "bin" / "model_deploy"), *map(str, arguments(tmp_path / "m.bmodel", *flags))],
        cwd=folder,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )
    partial = tmp_path / "r8_qtable.json.partial"
    while not (tmp_path / "reached").exists():
        assert process.poll() is None, "the search ended before the scorer waited"
        time.sleep(0.1)
    os.kill(process.pid, signal.SIGINT)
    assert process.wait(300) == 130 and process.stderr and "interrupted" in process.stderr.read()
    kept = len(partial.read_text().splitlines()) - 1
    (tmp_path / "go").touch()
    result = search(folder, tmp_path / "m.bmodel", *flags, "--json")
    assert json.loads(result.stdout)["search"]["resumed"] >= kept >= 4 and not partial.exists()


BAD_SCORERS = [
    ("def score(model, data):\n    return 1 / 0\n", "ZeroDivisionError"),
    ("def score(model, data):\n    return {}\n", "non-empty"),
    ("def score(model, data):\n    return float('nan')\n", "nothing can be compared with it"),
    ("def score(model, data):\n    return 1.0\n", "did not run the model"),
    ("x = (\n", "SyntaxError"),
    ("x = 1\n", "does not define a function"),
]


@pytest.mark.parametrize("text, words", BAD_SCORERS)
def test_bad_scorers(folder: Path, tmp_path: Path, text: str, words: str) -> None:
    (tmp_path / "s.py").write_text(text)
    result = search(folder, tmp_path / "m.bmodel", "--target", "drop<=1", "--scorer", tmp_path / "s.py", "--data", "x")
    assert_rejected(result, 1, words)
    assert not list(tmp_path.glob("*.bmodel")) and not list(tmp_path.glob("*qtable*"))


@pytest.mark.parametrize(
    "flags, code, words",
    [
        (["--target", "cosine>0.9", "--data", "scored.npz"], 2, ["unknown metric 'cosine'", "'cos'"]),
        (["--target", "drop<=0.5", "--data", "scored.npz"], 2, ["--task", "--scorer"]),
        (["--target", "cos>=0.9"], 2, ["--data"]),
        (["--target", "cos>=0.9", "--task", "classification", "--data", "scored.npz"], 2, ["compares outputs"]),
        (["--data", "scored.npz"], 2, ["--data requires --target"]),
        (["--target", "cos>=0.9", "--data", "missing.npz"], 1, ["missing.npz", "no such file"]),
        (["--target", "drop<=1", "--task", "detection", "--data", "scored.npz"], 1, ["annotations.json"]),
        (
            ["--target", "cos>=0.9", "--data", "scored.npz", "--quantize_table", "near.py"],
            1,
            ["near.py", "it is not JSON"],
        ),
    ],
)
def test_bad_flags(folder: Path, tmp_path: Path, flags: list[str], code: int, words: list[str]) -> None:
    assert_rejected(search(folder, tmp_path / "m.bmodel", *flags), code, *words)


def test_an_unknown_op_in_the_users_table(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "q.json").write_text(
        json.dumps({"format": "tessera-quantize-table", "version": 1, "ops": [{"name": "nobody", "type": "F32"}]})
    )
    result = search(
        folder,
        tmp_path / "m.bmodel",
        "--target",
        "cos>=0.9",
        "--data",
        "scored.npz",
        "--quantize_table",
        tmp_path / "q.json",
    )
    assert_rejected(result, 1, "no op or tensor 'nobody'")
