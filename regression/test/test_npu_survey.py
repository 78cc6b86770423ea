# SPDX-License-Identifier: Apache-2.0
"""Tests that every model that x86 runs also runs on every chip, whatever part the host runs: in INT8 with x86's
bits, in BF16 close to them. No layer moves more than four times the DDR bytes that it cannot do without, but for a
reason that the chip gives.

A few models by default; all with TESSERA_NPU_SURVEY=all (about ten minutes). What runs where is written to
build/test-results/npu-survey.csv, layers that move much more than they need to npu-traffic.csv beside it.
"""
from __future__ import annotations

import csv
import json
import os
from collections import Counter
from pathlib import Path
from typing import Iterator

import numpy as np
import pytest
from case_file import Case, all_cases
from conftest import BUILD, Builder, check, inputs_of, run_tool, samples
from test_cases import skip_if_missing
from test_npu import CHIPS, deploy

from tessera.families import npu

SMALL = (
    "dtln_model_1",
    "dtln_model_2",
    "mnist",
    "ppocrv3_text",
    "resnet8_cifar10",
    "stories260k_kv",
    "toycar_autoencoder",
)
# Kinds of ops that no NPU runs. Any other op on the host of a built-in chip is a regression.
ON_HOSTS = {
    "device.arg_reduce",
    "device.copy",
    "device.cumsum",
    "device.gather",
    "device.map",
    "device.recurrent",
    "device.resize",
    "device.scatter",
    "device.topk",
}
COLUMNS = (
    "model",
    "chip",
    "npu_subnets",
    "host_subnets",
    "npu_ops",
    "host_ops",
    "refused",
    "share_of_products",
    "transferred_bytes",
    "npu_us",
    "host_us",
    "hand_over_us",
    "on_the_host",
)
MOST_TRAFFIC = 4  # a layer's bytes, as a multiple of the least
MOST_SHARE = 0.1  # share of a model's time in layers whose short runs each cost a burst
TRAFFIC_COLUMNS = ("model", "chip", "layer", "moved_bytes", "asked_bytes", "least_bytes", "share", "bound", "reason")


@pytest.fixture(scope="module")
def table() -> Iterator[list[dict]]:
    """Collects rows of the survey and writes them when all models are done."""
    rows: list[dict] = []
    yield rows
    write_table("npu-survey.csv", COLUMNS, rows)


@pytest.fixture(scope="module")
def traffic() -> Iterator[list[dict]]:
    """Collects layers far above their least traffic and writes them when all models are done."""
    rows: list[dict] = []
    yield rows
    write_table("npu-traffic.csv", TRAFFIC_COLUMNS, rows)


def write_table(name: str, columns: tuple[str, ...], rows: list[dict]) -> None:
    path = BUILD / "test-results" / name
    path.parent.mkdir(exist_ok=True)
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, columns)
        writer.writeheader()
        writer.writerows(rows)


def far_above_the_least(model: str, chip: str, report: dict) -> list[dict]:
    """Returns the layers that transfer more than MOST_TRAFFIC times the least, each with the chip's reason, if any."""
    rows = []
    parts = Counter(layer["name"] for layer in report["layers"])
    for layer in report["layers"]:
        moved, asked = (sum(part[of] for part in layer["ddr_bytes"].values()) for of in ("moved", "asked"))
        least = layer["ddr_least_bytes"]
        if moved <= MOST_TRAFFIC * least:
            continue
        reason = ""
        if asked <= MOST_TRAFFIC * least:
            reason = "runs shorter than a burst of DDR, which moves whole bursts"
        elif layer["bound"] != "ddr":
            reason = f"hidden: the layer waits for {layer['bound']}, and what it reads again saves that time"
        elif layer["name"] and parts[layer["name"]] > 1:
            reason = "passes values through DDR to another part of the op: what a transposed convolution spreads"
        share = layer["cycles"] / report["cycles"]
        values = (model, chip, layer["name"], moved, asked, least, round(share, 4), layer["bound"], reason)
        rows.append(dict(zip(TRAFFIC_COLUMNS, values)))
    return rows


def check_traffic(model: str, chip: str, file: Path, table: list[dict]) -> None:
    rows = far_above_the_least(model, chip, npu.FAMILY.measure(file))
    table += rows
    assert not [row for row in rows if not row["reason"]], f"{chip}: layers move more than {MOST_TRAFFIC} x the least"
    assert sum(row["share"] for row in rows if row["bound"] == "ddr") <= MOST_SHARE, f"{chip}: {rows}"


def test_traffic_without_a_reason_is_told() -> None:
    def layer(moved: int, asked: int, bound: str, name: str = "") -> dict:
        ddr = {"input": {"asked": asked, "moved": moved}, "output": {"asked": 0, "moved": 0}}
        return {"name": name, "cycles": 5, "bound": bound, "ddr_least_bytes": 100, "ddr_bytes": ddr}

    layers = [
        layer(400, 400, "ddr"),
        layer(401, 400, "ddr"),
        layer(500, 500, "ddr", "one"),
        layer(500, 500, "multiply"),
    ]
    layers += [layer(500, 500, "ddr", "up"), layer(100, 100, "ddr", "up")]
    rows = far_above_the_least("m", "npu-edge", {"cycles": 100, "layers": layers})
    assert [row["reason"].partition(":")[0].partition(" ")[0] for row in rows] == ["runs", "", "hidden", "passes"]


def row(model: str, chip: str, info: dict) -> dict:
    subnets = {side: [subnet for subnet in info["subnets"] if subnet["device"] == side] for side in ("npu", "host")}
    reasons = {f"{op['op']}: {op['reason']}" for op in info["host_ops"] if op["refused"]}
    return {
        "model": model,
        "chip": chip,
        "npu_subnets": len(subnets["npu"]),
        "host_subnets": len(subnets["host"]),
        "npu_ops": sum(subnet["ops"] for subnet in subnets["npu"]),
        "host_ops": len(info["host_ops"]),
        "refused": sum(op["refused"] for op in info["host_ops"]),
        "share_of_products": round(info["npu_products"] / info["products"], 4) if info["products"] else 1,
        "transferred_bytes": info["transferred_bytes"],
        "npu_us": info["npu_microseconds"],
        "host_us": info["host_microseconds"],
        "hand_over_us": info["hand_over_microseconds"],
        "on_the_host": "; ".join(sorted(reasons)),
    }


def skip_if_large(case: Case) -> None:
    skip_if_missing(case)
    if case.name not in SMALL and os.environ.get("TESSERA_NPU_SURVEY") != "all":
        pytest.skip("not one of the small ones; set TESSERA_NPU_SURVEY=all")


@pytest.mark.parametrize("case", list(all_cases()), ids=lambda case: case.name)
def test_every_chip_runs_it(
    case: Case, builder: Builder, table: list[dict], traffic: list[dict], tmp_path: Path
) -> None:
    import tessera.runtime as runtime

    skip_if_large(case)
    top = builder.top(case)
    ranges, specs = builder.table(case, tmp_path)
    deploy(top, ranges, "x86", tmp_path / "x86.bmodel")
    given = samples(specs, 11)
    want = {name: array.copy() for name, array in runtime.load(str(tmp_path / "x86.bmodel")).net()(given).items()}
    for chip in CHIPS:
        info = deploy(top, ranges, chip, tmp_path / "npu.bmodel")["partition"]
        table.append(row(case.name, chip, info))
        check_traffic(case.name, chip, tmp_path / "npu.bmodel", traffic)
        got = runtime.load(str(tmp_path / "npu.bmodel")).net()(given)
        for name, array in want.items():
            assert array.tobytes() == got[name].tobytes(), f"{chip}: '{name}' differs from x86"
        rejected = sum(op["products"] for op in info["host_ops"] if op["refused"])
        assert (
            info["npu_products"] >= 0.9 * (info["products"] - rejected) or rejected > 0.5 * info["products"]
        ), f"{chip}: {info['host_ops']}"
        assert {op["op"] for op in info["host_ops"] if op["refused"]} <= ON_HOSTS, info["host_ops"]
        assert all(op["name"] and op["reason"] for op in info["host_ops"]), info["host_ops"]


@pytest.mark.parametrize("case", list(all_cases()), ids=lambda case: case.name)
def test_in_bf16(case: Case, builder: Builder, table: list[dict], tmp_path: Path) -> None:
    """Sums of floats in another order differ as little as those of two x86 variants."""
    import tessera.runtime as runtime

    skip_if_large(case)
    top = builder.top(case)
    specs = inputs_of(top)
    given = samples(specs, 11)
    for chip in ("x86", "npu-base", "npu-pro"):
        text = check(
            run_tool(
                "tessera-compile",
                "deploy",
                "--mlir",
                top,
                "--chip",
                chip,
                "--quantize",
                "BF16",
                "--output",
                tmp_path / "m.bmodel",
            )
        )
        got = {
            name: array.astype(np.float64).ravel()
            for name, array in runtime.load(str(tmp_path / "m.bmodel")).net()(given).items()
        }
        if chip == "x86":
            want = got
            continue
        table.append(row(case.name, f"{chip}, BF16", json.loads(text.splitlines()[-1])["partition"]))
        for name, array in want.items():
            cosine = array @ got[name] / max(1e-30, np.linalg.norm(array) * np.linalg.norm(got[name]))
            assert cosine > 0.999 or np.array_equal(array, got[name]), f"{chip}: '{name}' has a cosine of {cosine}"
