# SPDX-License-Identifier: Apache-2.0
"""Advice about a compiled model: what is unusual, what it costs, and what to try.

Every finding has a stable code; docs/advice/ explains each code on a page.
"""
from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Iterable, Mapping, Sequence

TRAFFIC, HOST, INPUT, SMALL, WIDE, SAMPLES = "TA101", "TA102", "TA103", "TA104", "TA105", "TA106"
FLOAT, WEIGHTS, LANES, SPILLED = "TA107", "TA108", "TA109", "TA110"
CODES = (TRAFFIC, HOST, INPUT, SMALL, WIDE, SAMPLES, FLOAT, WEIGHTS, LANES, SPILLED)
"""Codes are never reused with another meaning."""
MOST_TIMES_LEAST = 3.0  # a layer's traffic over its minimum
LEAST_SHARE = 0.02  # of a run's time; cheaper findings are not reported
MOST_INPUT_SHARE = 0.4  # of the DDR traffic
MOST_LATENCY_SHARE = 0.3  # of a run's time
MOST_WIDE_SHARE = 0.3  # of the multiplications
FEWEST_SAMPLES = 16
MOST_FLOAT_SHARE = 0.05  # of the multiplications of a quantised model
MOST_WEIGHTS_TIME = 0.2  # of a run's time, waiting for weights
MOST_SPILLED_TIME = 0.1  # of a run's time, waiting for intermediate results
MOST_TIMES_PEAK = 3.0  # a layer's time in the matrix unit over its time with all lanes busy
MOST_IDLE_SHARE = 0.1  # of a run's time, lost in one layer


@dataclass(frozen=True)
class Advice:
    """A finding. code: explained in docs/advice/CODE.md. layer: the layer's name, "" for the whole model. microseconds:
    the most it can cost, None if unknown. command: what to try."""

    code: str
    layer: str
    text: str
    microseconds: float | None
    command: str

    @property
    def page(self) -> str:
        return f"docs/advice/{self.code}.md"

    def as_dict(self) -> dict[str, Any]:
        return {**asdict(self), "page": self.page}


def of_perf(info: Mapping[str, Any]) -> list[Advice]:
    """Returns the findings of an estimate, the most expensive first."""
    looks = (_traffic, _input, _small, _weights, _lanes, _spilled) if info.get("cycles") else ()
    found = [*_host(info), *(each for look in looks for each in look(info))]
    return sorted(found, key=lambda each: -(each.microseconds or 0))


def _micro(info: Mapping[str, Any]) -> float:
    """Returns the microseconds per cycle."""
    return float(info["microseconds"] / info["cycles"])


def moved(layer: Mapping[str, Any]) -> int:
    """Returns the bytes that a layer moves to and from DDR."""
    return sum(traffic["moved"] for traffic in layer["ddr_bytes"].values())


def _ops(info: Mapping[str, Any]) -> Iterable[tuple[str, list[Mapping[str, Any]]]]:
    """Returns the name and the layers of each op; layers with the same name are parts of one op."""
    ops: dict[object, list[Mapping[str, Any]]] = {}
    for number, layer in enumerate(info["layers"]):
        ops.setdefault(layer["name"] or number, []).append(layer)
    return ((parts[0]["name"], parts) for parts in ops.values())


def _traffic(info: Mapping[str, Any]) -> Iterable[Advice]:
    for name, parts in _ops(info):
        total, least = sum(map(moved, parts)), sum(layer.get("ddr_least_bytes", 0) for layer in parts)
        cycles = sum(layer["time_cycles"].get("ddr", 0.0) for layer in parts)
        if least and total > MOST_TIMES_LEAST * least and cycles > LEAST_SHARE * info["cycles"]:
            yield Advice(
                TRAFFIC,
                name,
                f"moves {total} bytes to and from DDR, {total / least:.1f} times the least",
                cycles * (1 - least / total) * _micro(info),
                "model_deploy --opt 3, or --plan with other slices of this layer",
            )


def _host(info: Mapping[str, Any]) -> Iterable[Advice]:
    host = info.get("host")
    if host:
        cost = host["microseconds"] + host["hand_over_microseconds"]
        yield Advice(
            HOST,
            "",
            f"the host runs {host['steps']} ops in {host['subnets']} subnets",
            cost,
            "model_deploy --strict, which names each op and why; model_transform --output_names cuts the network there",
        )


def _waits(info: Mapping[str, Any], purpose: str) -> float:
    """Returns the share of the run's time spent waiting for DDR that is due to bytes of `purpose`, in proportion to
    their share of the traffic."""
    moved, of_it = info["ddr_moved_bytes"], info["ddr_bytes"].get(purpose, {}).get("moved", 0)
    return float(info["time_cycles"].get("ddr", 0.0) / info["cycles"] * of_it / moved) if moved else 0.0


def _input(info: Mapping[str, Any]) -> Iterable[Advice]:
    moved, given = info["ddr_moved_bytes"], info["ddr_bytes"].get("input", {}).get("moved", 0)
    share = _waits(info, "input")
    if given > MOST_INPUT_SHARE * moved and share > LEAST_SHARE:
        yield Advice(
            INPUT,
            "",
            f"{100 * given / moved:.0f} % of the DDR traffic is the model's input",
            share * info["microseconds"],
            "model_deploy --quant_input, or pixels as u8 by --fuse_preprocess",
        )


def _small(info: Mapping[str, Any]) -> Iterable[Advice]:
    cycles = info["time_cycles"].get("latency", 0.0)
    if cycles > MOST_LATENCY_SHARE * info["cycles"]:
        yield Advice(
            SMALL,
            "",
            f"{100 * cycles / info['cycles']:.0f} % of the time is latency of commands: the tiles are small",
            cycles * _micro(info),
            "a larger batch: model_transform --input_shapes",
        )


def _weights(info: Mapping[str, Any]) -> Iterable[Advice]:
    if (share := _waits(info, "weights")) > MOST_WEIGHTS_TIME:
        yield Advice(
            WEIGHTS,
            "",
            f"{100 * share:.0f} % of the time is spent waiting for weights, "
            f"{info['ddr_bytes']['weights']['moved'] / 1e6:.1f} MB per run",
            share * info["microseconds"],
            "weights of fewer bits (INT8 or W8 instead of 16 or 32, W4 instead of 8), or a larger batch, which reads "
            "them once",
        )


def _spilled(info: Mapping[str, Any]) -> Iterable[Advice]:
    if (share := _waits(info, "intermediate")) > MOST_SPILLED_TIME:
        moved = info["ddr_bytes"]["intermediate"]["moved"]
        yield Advice(
            SPILLED,
            "",
            f"{100 * share:.0f} % of the time is spent waiting for intermediate results in DDR, {moved / 1e6:.1f} "
            "MB per run",
            share * info["microseconds"],
            "a smaller batch or picture, results of fewer bits, or a chip with more local memory",
        )


def _lanes(info: Mapping[str, Any]) -> Iterable[Advice]:
    for name, parts in _ops(info):
        spent = sum(layer["time_cycles"].get("multiply", 0.0) for layer in parts)
        least = sum(layer.get("matrix_least_cycles", 0.0) for layer in parts)
        if least and spent > MOST_TIMES_PEAK * least and spent - least > MOST_IDLE_SHARE * info["cycles"]:
            yield Advice(
                LANES,
                name,
                f"its multiplications take {spent / least:.1f} times as long as with all lanes busy",
                (spent - least) * _micro(info),
                f"channels in multiples of the lanes of {info.get('chip', 'the chip')}, or tessera estimate for a "
                "smaller chip",
            )


def of_quantization(info: Mapping[str, Any], perf: Mapping[str, Any] | None = None) -> list[Advice]:
    """Returns the findings about precision, given the key 'quantization' of model_deploy --json ({} for a model without
    it). perf: an estimate, from which the costs are taken."""
    products = info.get("products", 0)
    return [*_wide(info, products, perf or {}), *_float(info, products, perf or {})] if products else []


def _wide(info: Mapping[str, Any], products: int, perf: Mapping[str, Any]) -> Iterable[Advice]:
    wide = info.get("wide_products", 0)
    if wide > MOST_WIDE_SHARE * products:
        spent = [layer["time_cycles"].get("multiply", 0.0) for layer in _layers(info.get("wide_ops", []), perf)]
        yield Advice(
            WIDE,
            "",
            f"{100 * wide / products:.0f} % of the multiplications have int16 activations",
            sum(spent) / 2 * _micro(perf) if spent else None,  # int8 has twice the rate
            "run_calibration with more samples, or model_deploy --target",
        )


def _float(info: Mapping[str, Any], products: int, perf: Mapping[str, Any]) -> Iterable[Advice]:
    """Reports contractions left in float in a model that also has integer ones."""
    kept = [op for op in info.get("float_ops", []) if op["products"]]
    share = sum(op["products"] for op in kept) / products
    if info.get("integer_products", 0) and share > MOST_FLOAT_SHARE:
        first = max(kept, key=lambda op: op["products"])
        spent = [layer["cycles"] for layer in _layers(kept, perf)]
        yield Advice(
            FLOAT,
            "",
            f"{100 * share:.0f} % of the multiplications stay in float: {len(kept)} ops, the largest is "
            f"'{first['name'] or first['op']}': {first['reason']}",
            sum(spent) * _micro(perf) if spent else None,
            "calibrate tensors without a range, remove ops from --quantize_table, or use model_deploy --target",
        )


def _layers(ops: Iterable[Mapping[str, Any]], perf: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Returns the layers that contain any of the ops."""
    names = {node for op in ops for node in op["name"].split("+") if node}
    return [layer for layer in perf.get("layers", []) if names & set(layer["name"].split("+"))]


def of_table(samples: int) -> list[Advice]:
    """Returns the findings about the number of samples that a calibration table was made from."""
    if samples >= FEWEST_SAMPLES:
        return []
    text = f"the calibration table was made from {samples} samples; at least {FEWEST_SAMPLES} are needed to rely on it"
    return [Advice(SAMPLES, "", text, None, "run_calibration --input_num 100")]


def lines(found: Sequence[Advice]) -> list[str]:
    """Formats the findings for people, one line per code: the most expensive finding, and the number and cost of the
    other layers with the same code."""
    by_code: dict[str, list[Advice]] = {}
    for each in found:
        by_code.setdefault(each.code, []).append(each)
    return [_line(same[0], same[1:]) for same in by_code.values()]


def _line(first: Advice, more: Sequence[Advice]) -> str:
    text = f"{first.code}: {first.layer + ': ' if first.layer else ''}{first.text}"
    if first.microseconds is not None:
        text += f" (about {first.microseconds:.1f} us"
        rest = sum(each.microseconds or 0.0 for each in more)
        text += f"; {rest:.1f} us more in {len(more)} other layers)" if more else ")"
    return f"{text}; try {first.command} ({first.page})"
