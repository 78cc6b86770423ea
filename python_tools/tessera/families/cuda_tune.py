# SPDX-License-Identifier: Apache-2.0
"""model_deploy --tune: chooses the tiles of contractions by their time on the GPU, as a step of model_deploy.

The compiler identifies contractions by their content and lists the tiles that its cost model ranks fastest. As many
models as a contraction has candidate tiles are compiled, each with other tiles; the GPU's events time their launches,
and the model is compiled with the plan of the fastest tiles. The kernel cache stores the result for this GPU, driver
and compiler, so a contraction is measured only once.
"""
from __future__ import annotations

import json
from collections import defaultdict
from pathlib import Path
from typing import Any, Callable, Mapping, Sequence

import numpy as np

from .. import bmodel
from ..errors import TesseraError
from ..files import write_text
from ..progress import Report
from . import Deploy

RUNS = 5
"""Runs of each tile; the least time counts."""


def tuned_plan(
    deploy: Deploy,
    inputs: Callable[[bmodel.Net], Mapping[str, np.ndarray]],
    candidates: int,
    report: Report,
    folder: Path,
) -> dict[str, Any]:
    """Returns the plan; each measured contraction lists the microseconds of its tiles, the others come from the cache.
    Raises TesseraError if there is no GPU to measure on."""
    with report.step("measure tiles on the GPU") as step:
        model = folder / "tune.bmodel"
        plan: dict[str, Any] = deploy(model, ["--candidates", str(candidates)])["plan"]
        if not plan["device"]:
            raise no_device()
        unknown = [entry for entry in plan["products"] if "candidates" in entry]
        times: dict[str, dict[str, float]] = defaultdict(dict)
        for turn in range(max((len(entry["candidates"]) for entry in unknown), default=0)):
            for entry in plan["products"]:
                tiles = entry.get("candidates", [entry.get("measured", entry["tile"])])
                entry["tile"] = tiles[min(turn, len(tiles) - 1)]
            write_text(folder / "plan.json", json.dumps(plan))
            info = deploy(model, ["--plan", str(folder / "plan.json"), "--layers"])
            net = bmodel.open_net(model)
            measured = _by_product(info["estimate"]["layers"], net.profile(inputs(net), RUNS))
            for entry in unknown:
                times[entry["product"]].setdefault(entry["tile"], measured[entry["product"]])
        for entry in plan["products"]:
            tried = times.get(entry["product"], {})
            entry["tile"] = min(tried, key=lambda tile: tried[tile]) if tried else entry.get("measured", entry["tile"])
            if tried:
                entry["microseconds"] = {tile: round(time, 3) for tile, time in tried.items()}
            entry.pop("candidates", None)
        step.note = f"{len(unknown)} contractions, {len(plan['products']) - len(unknown)} more from the cache"
    return plan


def no_device() -> TesseraError:
    return TesseraError(
        "--tune measures on this machine's GPU, but NVIDIA's driver reports none that can run the model",
        hint="set BMRT_LIBCUDA=FILE for another driver than libcuda.so.1; without --tune a cost model chooses tiles",
    )


def _by_product(layers: Sequence[Mapping[str, Any]], steps: Sequence[Any]) -> dict[str, float]:
    """Returns the microseconds of all launches of each contraction. Layers are listed in launch order."""
    launches = [part for step in steps for part in step.parts]
    if len(launches) != len(layers):
        raise TesseraError(f"internal error: {len(launches)} launches were timed for {len(layers)} layers")
    sums: dict[str, float] = defaultdict(float)
    for layer, launch in zip(layers, launches):
        if "product" in layer:
            sums[layer["product"]] += launch.min_ns / 1e3
    return sums
