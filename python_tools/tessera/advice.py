# SPDX-License-Identifier: Apache-2.0
"""What is odd about a compiled model, what it costs and what to try: findings with codes that stay, explained in
docs/advice.md."""
from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Iterable, Mapping, Sequence

TRAFFIC, HOST, INPUT, SMALL, WIDE, SAMPLES = "TA101", "TA102", "TA103", "TA104", "TA105", "TA106"
CODES = (TRAFFIC, HOST, INPUT, SMALL, WIDE, SAMPLES)
"""A code is never given another meaning."""
MOST_TIMES_LEAST = 3.0  # a layer's traffic
LEAST_SHARE = 0.02  # of the time of a run: what costs less is not told
MOST_INPUT_SHARE = 0.4  # of the traffic
MOST_LATENCY_SHARE = 0.3  # of the time
MOST_WIDE_SHARE = 0.3  # of the multiplications
FEWEST_SAMPLES = 16


@dataclass(frozen=True)
class Advice:
    """code: see docs/advice.md. layer: its name, "" for the whole model. microseconds: what it costs, at most; None
    where that is not known. command: what to try."""

    code: str
    layer: str
    text: str
    microseconds: float | None
    command: str

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)


def of_perf(told: Mapping[str, Any]) -> list[Advice]:
    """From a report of npu_perf, the dearest first."""
    if not told.get("cycles"):
        return []
    found = [*_traffic(told), *_host(told), *_input(told), *_small(told)]
    return sorted(found, key=lambda each: -(each.microseconds or 0))


def _micro(told: Mapping[str, Any]) -> float:
    """Microseconds a cycle."""
    return float(told["microseconds"] / told["cycles"])


def _moved(layer: Mapping[str, Any]) -> int:
    return sum(traffic["moved"] for traffic in layer["ddr_bytes"].values())


def _traffic(told: Mapping[str, Any]) -> Iterable[Advice]:
    for layer in told["layers"]:
        moved, least = _moved(layer), layer.get("ddr_least_bytes", 0)
        cycles = layer["time_cycles"].get("ddr", 0.0)
        if least and moved > MOST_TIMES_LEAST * least and cycles > LEAST_SHARE * told["cycles"]:
            yield Advice(
                TRAFFIC,
                layer["name"],
                f"moves {moved} bytes to and from DDR, {moved / least:.1f} times the least",
                cycles * (1 - least / moved) * _micro(told),
                "model_deploy --opt 3, or --plan with other slices of this layer",
            )


def _host(told: Mapping[str, Any]) -> Iterable[Advice]:
    host = told.get("host")
    if host:
        cost = host["microseconds"] + host["hand_over_microseconds"]
        yield Advice(
            HOST,
            "",
            f"the host runs {host['steps']} ops in {host['subnets']} subnets",
            cost,
            "tessera estimate model.onnx names each op and why; docs/partition.md",
        )


def _input(told: Mapping[str, Any]) -> Iterable[Advice]:
    moved, given = told["ddr_moved_bytes"], told["ddr_bytes"].get("input", {}).get("moved", 0)
    share = told["time_cycles"].get("ddr", 0.0) / told["cycles"]
    if moved and given > MOST_INPUT_SHARE * moved and share * given / moved > LEAST_SHARE:
        yield Advice(
            INPUT,
            "",
            f"{100 * given / moved:.0f} % of the DDR traffic is the model's input",
            share * given / moved * told["microseconds"],
            "model_deploy --quant_input, or pixels as u8 by --fuse_preprocess",
        )


def _small(told: Mapping[str, Any]) -> Iterable[Advice]:
    cycles = told["time_cycles"].get("latency", 0.0)
    if cycles > MOST_LATENCY_SHARE * told["cycles"]:
        yield Advice(
            SMALL,
            "",
            f"{100 * cycles / told['cycles']:.0f} % of the time commands wait for latencies: tiles are small",
            cycles * _micro(told),
            "a larger batch: model_transform --input_shapes",
        )


def of_quantization(told: Mapping[str, Any]) -> list[Advice]:
    """From what the compiler tells of precisions ('quantization' of model_deploy --json); {}: of a model without."""
    wide, products = told.get("wide_products", 0), told.get("products", 0)
    if not products or wide <= MOST_WIDE_SHARE * products:
        return []
    text = f"{100 * wide / products:.0f} % of the multiplications have int16 activations"
    return [Advice(WIDE, "", text, None, "run_calibration with more samples, or model_deploy --target")]


def of_table(samples: int) -> list[Advice]:
    """From how many samples a calibration table is of."""
    if samples >= FEWEST_SAMPLES:
        return []
    text = f"the calibration table is of {samples} samples, {FEWEST_SAMPLES} are the fewest to rely on"
    return [Advice(SAMPLES, "", text, None, "run_calibration --input_num 100")]


def lines(found: Sequence[Advice]) -> list[str]:
    """For people, a line each."""
    return [
        f"{each.code}: {each.layer + ': ' if each.layer else ''}{each.text}"
        + (f" (about {each.microseconds:.1f} us)" if each.microseconds is not None else "")
        + f"; try {each.command}"
        for each in found
    ]
