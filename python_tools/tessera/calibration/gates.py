# SPDX-License-Identifier: Apache-2.0
"""Where the error of a tensor is measured: not at the outputs, but at a tensor some way behind by which all of it has
to pass.

What reaches the outputs from there is measured for all tensors before such a gate together, once. So to measure a
tensor costs a few ops and not the rest of the network.
"""
from __future__ import annotations

from typing import Mapping, Sequence

from .choose import Choice
from .observed import Observed
from .worker import Stretch

AHEAD, LEAST = 24, 6
"""An error goes through at least this part of the network's tensors, and so many, before it is measured: what the next
op does not show, those behind it do."""
TOGETHER = 4
"""Gates whose errors run on to the last of them."""
WORTH = 2
"""So many times as far away have the outputs to be at least as the gate."""


def stretches(observed: Observed, defaults: Mapping[str, Choice]) -> tuple[Stretch, ...]:
    """The sources of `defaults` that have gates, by these."""
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
        Stretch(gate, tuple((s, defaults[s].candidate()) for s in some), beyond[gate]) for gate, some in found.items()
    )


def _beyond(gates: Sequence[str], chains: Mapping[str, Sequence[str]]) -> dict[str, str]:
    """For gates, in order, another one behind, by which what reaches the outputs is known of them: one in TOGETHER, and
    those without such a one, are measured there."""
    found: dict[str, str] = {}
    for i, gate in enumerate(gates):
        last = (i // TOGETHER + 1) * TOGETHER - 1
        behind = [g for g in gates[i + 1 : last + 1] if g in chains[gate]]
        found[gate] = behind[-1] if behind and i != last else ""
    return found


def _gate(chain: Sequence[str], current: str, places: Mapping[str, int], place: int, count: int) -> str:
    """The gate for a source at `place`: the one before it while it is far enough away, else the farthest one that is
    hardly farther than need be. Empty where the outputs are not much farther."""
    ahead = max(count / AHEAD, LEAST)
    near, far = place + ahead, place + 2 * ahead
    if current in chain and places[current] >= near:
        return current
    enough = [gate for gate in chain if places[gate] >= near]
    best = max((gate for gate in enough if places[gate] <= far), key=lambda g: places[g], default="")
    best = best or min(enough, key=lambda g: places[g], default="")
    return best if best and count - place >= WORTH * (places[best] - place) else ""


def _sources(observed: Observed) -> list[str]:
    """Of all tensors, in the order of the program."""
    return [str(tensor["source"]) for tensor in observed.info["tensors"]]


def _chains(observed: Observed) -> dict[str, list[str]]:
    """By sources their gates' sources, from the nearest on; of a source that several tensors share those that all of
    them have."""
    source_of = observed.source_of
    gate_of = {tensor["name"]: tensor.get("gate", "") for tensor in observed.info["tensors"]}
    found: dict[str, list[str]] = {}
    for name, source in source_of.items():
        chain, gate = [], gate_of[name]
        while gate:
            if (behind := source_of.get(gate)) and behind != source:
                chain.append(behind)
            gate = gate_of.get(gate, "")
        found[source] = [g for g in found[source] if g in chain] if source in found else list(dict.fromkeys(chain))
    return found
