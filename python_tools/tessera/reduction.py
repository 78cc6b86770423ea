# SPDX-License-Identifier: Apache-2.0
"""Reduces an ONNX graph and its inputs to the smallest and simplest part that still shows a failure: cuts from the end
and from the beginning, then delta debugging (Zeller's ddmin). Nodes and tensors keep their names."""
from __future__ import annotations

import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Callable, Mapping, Sequence

import numpy as np

from .errors import TesseraError
from .onnx_pieces import names_read
from .onnx_runner import OnnxModel

if TYPE_CHECKING:
    import onnx

LONGEST_SHAPE = 64  # elements: integers with one dim are sizes and axes, which a compiler has to know
LARGEST_FILE = (1 << 31) - (1 << 20)  # bytes; protobuf's limit, with a margin for the nodes
ASKED_AGAIN = 3  # number of repeated checks of the result: a check may answer by chance
MOST_VALUE_CHECKS = 24  # per input

Shows = Callable[["Candidate"], bool]


@dataclass
class Candidate:
    """A model and values for its inputs."""

    model: "onnx.ModelProto"
    inputs: dict[str, np.ndarray]


@dataclass
class Network:
    """An ONNX model and the values of its tensors on one input. Nodes are identified by their position in the file,
    which is an order in which they can run."""

    model: "onnx.ModelProto"
    values: dict[str, np.ndarray]
    reads: list[set[str]] = field(default_factory=list)
    from_inputs: set[str] = field(default_factory=set)  # tensors that depend on an input

    @staticmethod
    def open(path: Path, inputs: Mapping[str, np.ndarray]) -> "Network":
        """Runs the file in onnxruntime. Raises TesseraError if that fails or a package is missing."""
        try:
            import onnx
        except ImportError as error:
            raise TesseraError("reducing a model requires the onnx package", hint="pip install onnx") from error
        model = onnx.load(str(path))
        if sum(each.ByteSize() for each in model.graph.initializer) > LARGEST_FILE:
            raise TesseraError(
                f"{path} has more than {LARGEST_FILE >> 20} MiB of constants: a part is written as one .onnx, which "
                "cannot hold more",
                hint="make the model smaller first, with fewer layers of the same kind",
            )
        values = OnnxModel(path, every_tensor=True, optimise=False).run(inputs)
        network = Network(model, {**inputs, **values}, [names_read(node) for node in model.graph.node])
        constants = {each.name for each in model.graph.initializer}
        network.from_inputs = {each.name for each in model.graph.input if each.name not in constants}
        for node, read in zip(model.graph.node, network.reads):
            if read & network.from_inputs:
                network.from_inputs.update(node.output)
        return network

    def part(self, nodes: Sequence[int], outputs: Sequence[str] | None = None) -> Candidate | None:
        """Returns the model of these nodes. Tensors computed by other nodes become inputs, or constants if they are
        known before a run. outputs: default: the results that no other of the nodes reads. None if the value of a
        tensor is not known."""
        import onnx
        from onnx import helper, numpy_helper

        whole, graph = self.model.graph, onnx.GraphProto(name=self.model.graph.name or "part")
        result = {name for node in nodes for name in whole.node[node].output if name}
        read = set().union(*(self.reads[node] for node in nodes))
        graph.node.extend(whole.node[node] for node in nodes)
        graph.initializer.extend(each for each in whole.initializer if each.name in read)
        graph.sparse_initializer.extend(each for each in whole.sparse_initializer if each.values.name in read)
        known = (
            result | {each.name for each in graph.initializer} | {each.values.name for each in graph.sparse_initializer}
        )
        inputs: dict[str, np.ndarray] = {}
        given = {each.name for each in whole.input}
        for name in sorted(read - known):
            if name not in self.values:
                return None
            value = self.values[name]
            is_size = value.dtype.kind in "iub" and value.ndim <= 1 and value.size <= LONGEST_SHAPE
            if name not in given and (name not in self.from_inputs or is_size):
                graph.initializer.append(numpy_helper.from_array(np.ascontiguousarray(value), name))
            else:
                inputs[name] = value
        results = [name for node in nodes for name in whole.node[node].output if name]
        ends = {each.name for each in whole.output}
        wanted = outputs or [name for name in results if (name not in read or name in ends) and name in self.values]
        if not wanted or not inputs:
            return None
        for name, into in [*((name, graph.input) for name in inputs), *((name, graph.output) for name in wanted)]:
            kind = numpy_helper.from_array(np.zeros(1, self.values[name].dtype)).data_type
            into.append(helper.make_tensor_value_info(name, kind, list(self.values[name].shape)))
        model = onnx.ModelProto(ir_version=self.model.ir_version, producer_name="tessera reduce", graph=graph)
        model.opset_import.extend(self.model.opset_import)
        model.functions.extend(self.model.functions)
        return Candidate(model, inputs)


class Reducer:
    """Calls `shows` for parts of a network."""

    def __init__(self, network: Network, shows: Shows, seconds: float) -> None:
        self._network, self._shows = network, shows
        self._end = time.monotonic() + seconds
        self._known: dict[tuple[int, ...], bool] = {}
        self.checks = 0
        self.is_stable = True  # the result shows the failure every time it is checked

    @property
    def out_of_time(self) -> bool:
        return time.monotonic() > self._end

    def run(self) -> Candidate | None:
        """Returns the smallest part that shows the failure; None if the whole does not. Out of time, returns the
        smallest so far."""
        nodes = list(range(len(self._network.model.graph.node)))
        if not self._is_shown_by(nodes):
            return None
        count = self._least(len(nodes), lambda count: nodes[:count])
        rest = self._least(count, lambda kept: nodes[count - kept : count])
        nodes = self._ddmin(nodes[count - rest : count])
        found = self._one_output(nodes)
        self._plainer(found)
        self.is_stable = all(self.out_of_time or self._ask(found) for _ in range(ASKED_AGAIN))
        return found

    def _ask(self, candidate: Candidate) -> bool:
        self.checks += 1
        return self._shows(candidate)

    def _is_shown_by(self, nodes: Sequence[int]) -> bool:
        key = tuple(nodes)
        if key not in self._known:
            candidate = self._network.part(nodes) if nodes else None
            self._known[key] = candidate is not None and not self.out_of_time and self._ask(candidate)
        return self._known[key]

    def _least(self, most: int, nodes_of: Callable[[int], Sequence[int]]) -> int:
        """Returns a count that shows the failure, by bisection: the least one if larger counts always show it too."""
        low, high = 0, most
        while low + 1 < high:
            middle = (low + high) // 2
            if self._is_shown_by(nodes_of(middle)):
                high = middle
            else:
                low = middle
        return high

    def _ddmin(self, nodes: list[int]) -> list[int]:
        """Removes nodes until none of the rest can be removed alone."""
        chunk = max(1, len(nodes) // 2)
        while len(nodes) > 1:
            begin = 0
            before = len(nodes)
            while begin < len(nodes):
                fewer = nodes[:begin] + nodes[begin + chunk :]
                if fewer and self._is_shown_by(fewer):
                    nodes = fewer
                else:
                    begin += chunk
            if chunk == 1 and len(nodes) == before:
                break
            chunk = max(1, chunk // 2)
        return nodes

    def _one_output(self, nodes: Sequence[int]) -> Candidate:
        """Keeps a single output if one alone shows the failure."""
        found = self._network.part(nodes)
        assert found is not None
        names = [each.name for each in found.model.graph.output]
        for name in names if len(names) > 1 else []:
            one = self._network.part(nodes, [name])
            if one is not None and not self.out_of_time and self._ask(one):
                return one
        return found

    def _plainer(self, candidate: Candidate) -> None:
        """Simplifies inputs to zeros, ones, or as few nonzero elements as a few checks find."""
        for name, value in list(candidate.inputs.items()):
            if not any(self._try(candidate, name, plain) for plain in (np.zeros_like(value), np.ones_like(value))):
                self._fewer_elements(candidate, name)

    def _try(self, candidate: Candidate, name: str, value: np.ndarray) -> bool:
        if self.out_of_time or not self._ask(Candidate(candidate.model, {**candidate.inputs, name: value})):
            return False
        candidate.inputs[name] = value
        return True

    def _fewer_elements(self, candidate: Candidate, name: str) -> None:
        left, chunk = MOST_VALUE_CHECKS, candidate.inputs[name].size // 2
        while chunk and left > 0:
            for begin in range(0, candidate.inputs[name].size, chunk):
                value = candidate.inputs[name].copy()
                part = value.reshape(-1)[begin : begin + chunk]
                if part.any() and left > 0:
                    part[:] = 0
                    left -= 1
                    self._try(candidate, name, value)
            chunk //= 2
