# SPDX-License-Identifier: Apache-2.0
"""Measures the error of a tensor not at the outputs, but at a gate: a tensor further on through which all of the error
has to pass.

How an error at a gate affects the outputs is measured once for all tensors before it. Measuring a tensor then runs a
few ops instead of the rest of the network.
"""
from __future__ import annotations

from typing import Mapping, Sequence

from .choose import Choice
from .observed import Observed
from .worker import Segment

AHEAD, LEAST = 24, 6
"""An error passes through at least this part of the network's tensors, and at least this number, before it is measured,
so that effects which the next op hides still show."""
TOGETHER = 4
"""Number of consecutive gates whose errors are propagated to the last of them."""
WORTH = 2
"""Use the gate only if the outputs are at least this many times as far away."""


def segments(observed: Observed, defaults: Mapping[str, Choice]) -> tuple[Segment, ...]:
    """Groups the sources of `defaults` that have gates by gate."""
    chains = _chains(observed)
    places = {source: place for place, source in reversed(list(enumerate(_sources(observed))))}
    count, found = len(observed.info["tensors"]), dict[str, list[str]]()
    current = ""
    for source in sorted((s for s in defaults if s in chains), key=lambda source: places[source]):
        chain = [gate for gate in chains[source] if places[gate] > places[source]]
        current = _gate(chain, current, places, places[source], count)
        if current:
            found.setdefault(current, []).append(source)
    beyond = _beyond(list(found), chains)
    return tuple(
        Segment(gate, tuple((s, defaults[s].candidate()) for s in some), beyond[gate]) for gate, some in found.items()
    )


def _beyond(gates: Sequence[str], chains: Mapping[str, Sequence[str]]) -> dict[str, str]:
    """Returns for each gate, in order, the later gate at which its effect on the outputs is measured: one in TOGETHER
    gates, and gates without such a successor, are measured at the outputs themselves ("")."""
    found: dict[str, str] = {}
    for i, gate in enumerate(gates):
        last = (i // TOGETHER + 1) * TOGETHER - 1
        behind = [g for g in gates[i + 1 : last + 1] if g in chains[gate]]
        found[gate] = behind[-1] if behind and i != last else ""
    return found


def _gate(chain: Sequence[str], current: str, places: Mapping[str, int], place: int, count: int) -> str:
    """Returns the gate for a source at `place`: the `current` one as long as it is far enough ahead, else the farthest
    one that is not much farther than necessary. Empty if the outputs are not much farther."""
    ahead = max(count / AHEAD, LEAST)
    near, far = place + ahead, place + 2 * ahead
    if current in chain and places[current] >= near:
        return current
    enough = [gate for gate in chain if places[gate] >= near]
    best = max((gate for gate in enough if places[gate] <= far), key=lambda g: places[g], default="")
    best = best or min(enough, key=lambda g: places[g], default="")
    return best if best and count - place >= WORTH * (places[best] - place) else ""


def _sources(observed: Observed) -> list[str]:
    """Returns the sources of all tensors, in program order."""
    return [str(tensor["source"]) for tensor in observed.info["tensors"]]


def _chains(observed: Observed) -> dict[str, list[str]]:
    """Returns the gates' sources for each source, from the nearest. A source shared by several tensors has the gates
    that all of them have."""
    source_of = observed.source_of
    gate_of = {tensor["name"]: tensor.get("gate", "") for tensor in observed.info["tensors"]}
    found: dict[str, list[str]] = {}
    for name, source in source_of.items():
        chain, gate = [], gate_of[name]
        while gate:
            if (behind := source_of.get(gate)) and behind != source and behind not in observed.repeated:
                chain.append(behind)
            gate = gate_of.get(gate, "")
        found[source] = [g for g in found[source] if g in chain] if source in found else list(dict.fromkeys(chain))
    return found
