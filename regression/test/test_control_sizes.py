# SPDX-License-Identifier: Apache-2.0
"""Tests branches and loops whose values change their size, against onnxruntime."""
from __future__ import annotations

from pathlib import Path
from typing import Sequence

import numpy as np
import onnx
import pytest
from conftest import check, run_tool
from onnx import helper, numpy_helper
from test_control_flow import BOOL, FLOAT, INT64, Arrays, body_inputs, compare, compile_model, graph, node, save, value


def rows(count: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal((count, 4)).astype(np.float32)


def branches_of(then: Sequence[onnx.NodeProto], other: Sequence[onnx.NodeProto]) -> onnx.NodeProto:
    """An if that returns `t` or `e`, matrices of any height."""
    return node(
        "If",
        "c",
        "r",
        then_branch=graph(then, [value("t", ["T", 4])]),
        else_branch=graph(other, [value("e", ["E", 4])]),
    )


@pytest.mark.parametrize("chip", ["x86", "npu-base"])
def test_branches_of_constant_sizes(tmp_path: Path, chip: str) -> None:
    """Readers see the true size, without any flag: a sum, a shape, and an op on all rows."""
    made = graph(
        [
            branches_of([node("Concat", "x x x", "t", axis=0)], [node("Gather", "x two", "e")]),
            node("ReduceSum", "r zero", "total", keepdims=0),
            node("Shape", "r", "shape"),
            node("Tanh", "r", "y"),
        ],
        [value("total", [4]), value("shape", [2], INT64), value("y", ["R", 4])],
        [value("c", [], BOOL), value("x", [3, 4])],
        {"two": np.array([2, 0]), "zero": np.array([0])},
    )
    model = save(tmp_path / "branches.onnx", made)
    runs = [{"c": np.array(seed % 2 == 0), "x": rows(3, seed)} for seed in range(4)]
    compare(model, compile_model(model, "--chip", chip), runs)


def open_branches() -> onnx.GraphProto:
    """Branches of n and n + m rows; a value of open size is returned as it is, or computed."""
    return graph(
        [
            branches_of(
                [node("Identity", "x", "t")],
                [node("Relu", "z", "z1"), node("Concat", "x z1", "joined", axis=0), node("Sin", "joined", "e")],
            ),
            node("MatMul", "r w", "y"),
        ],
        [value("y", ["R", 4]), value("r", ["R", 4])],
        [value("c", [], BOOL), value("x", ["n", 4]), value("z", ["m", 4])],
        {"w": rows(4, 9)},
    )


def test_branches_of_open_sizes(tmp_path: Path) -> None:
    model = save(tmp_path / "open.onnx", open_branches())
    bmodel = compile_model(model, imports=("--dims", "n=0..9,m=1..7"))
    sizes = [(True, 2, 3), (False, 2, 3), (False, 9, 7), (True, 9, 1), (True, 0, 1), (False, 0, 1)]
    compare(model, bmodel, [{"c": np.array(c), "x": rows(n), "z": rows(m, 1)} for c, n, m in sizes])


def test_rows_found_in_a_branch(tmp_path: Path) -> None:
    """NonZero in a branch, in the branch of a branch, and before the if."""
    inner = node(
        "If",
        "d",
        "t",
        then_branch=graph(
            [
                node("Greater", "x one", "big"),
                node("NonZero", "big", "at"),
                node("GatherND", "m at2", "q"),
                node("Unsqueeze", "q one_axis", "q2"),
                node("Concat", "q2 q2 q2 q2", "t1", axis=1),
            ][:1]
            + [
                node("ReduceMax", "x", "most", axes=[1], keepdims=0),
                node("Greater", "most one", "flags"),
                node("Compress", "x flags", "t1", axis=0),
            ],
            [value("t1", ["A", 4])],
        ),
        else_branch=graph([node("Compress", "x before", "t2", axis=0)], [value("t2", ["B", 4])]),
    )
    made = graph(
        [
            node("ReduceMin", "x", "least", axes=[1], keepdims=0),
            node("Less", "least low", "before"),
            branches_of([inner], [node("Compress", "x before", "f", axis=0), node("Neg", "f", "e")]),
            node("ReduceSum", "r zero", "total", keepdims=0),
        ],
        [value("r", ["R", 4]), value("total", [4])],
        [value("c", [], BOOL), value("d", [], BOOL), value("x", [6, 4])],
        {"one": np.float32(1), "low": np.float32(-1), "zero": np.array([0])},
    )
    model = save(tmp_path / "found.onnx", made)
    runs = [{"c": np.array(s % 2 == 0), "d": np.array(s % 3 == 0), "x": rows(6, s) * (s % 4)} for s in range(12)]
    compare(model, compile_model(model, imports=("--dims", "auto")), runs)


def growing(trips: str) -> onnx.GraphProto:
    """A loop that appends a row, computed from all rows so far, in each pass."""
    body = graph(
        [
            node("ReduceSum", "s zero", "row", keepdims=1),
            node("Tanh", "row", "row1"),
            node("Concat", "s row1", "s2", axis=0),
            node("Shape", "s2", "k2"),
            node("Identity", "going", "on"),
        ],
        [value("on", [], BOOL), value("s2", ["L", 4]), value("k2", [2], INT64)],
        body_inputs(value("s", ["K", 4]), value("k", [2], INT64)),
    )
    return graph(
        [node("Loop", f"{trips} - x none", "y last", body=body), node("Neg", "y", "z")],
        [value("y", ["R", 4]), value("last", [2], INT64), value("z", ["R", 4])],
        [value("n", [], INT64), value("x", [2, 4])],
        {"zero": np.array([0]), "none": np.array([0, 0])},
    )


def passes(*counts: int) -> list[Arrays]:
    return [{"n": np.array(n), "x": rows(2, n + 3)} for n in counts]


@pytest.mark.parametrize("dims", ["n[0]=0..6", "y.0=2..8", "auto"])
def test_growing_values(tmp_path: Path, dims: str) -> None:
    model = save(tmp_path / "growing.onnx", growing("n"))
    compare(model, compile_model(model, imports=("--dims", dims)), passes(3, 0, 6, 1, -2))


def stacking() -> onnx.GraphProto:
    """The trip count or the condition ends the loop; the stacked values have open sizes themselves."""
    body = graph(
        [
            node("Add", "s x", "s2"),
            node("Identity", "s2", "s3"),
            node("ReduceSum", "s2", "total", keepdims=0),
            node("Less", "total limit", "on"),
            node("Mul", "i i", "square"),
        ],
        [value("on", [], BOOL), value("s2", ["n", 4]), value("s3", ["n", 4]), value("square", [], INT64)],
        body_inputs(value("s", ["n", 4])),
    )
    return graph(
        [node("Loop", "n go x", "y all squares", body=body), node("Neg", "all", "negative")],
        [value("y", ["n", 4]), value("all", ["P", "n", 4]), value("squares", ["P"], INT64), value("negative", None)],
        [value("n", [], INT64), value("go", [], BOOL), value("x", ["n", 4]), value("limit", [])],
    )


@pytest.mark.parametrize("made, names", [(growing("n"), "'s' y.0=0..MAX n[0]=0..MAX"), (stacking(), "all.0=0..MAX")])
def test_sizes_without_a_bound(made: onnx.GraphProto, names: str, tmp_path: Path) -> None:
    save(tmp_path / "m.onnx", made)
    flags = ("--model_name", "m", "--model_def", "m.onnx", "--mlir", "m.mlir", "--not_inference", "--dims", "n=1..5")
    failed = run_tool("model_transform", *(flags if "all" in names else flags[:-2]), cwd=tmp_path)
    assert failed.returncode == 4
    for name in names.split():
        assert name in failed.stdout + failed.stderr


def test_stack_of_a_value_that_grows(tmp_path: Path) -> None:
    """The stacked value has the size of the carried one, which another pass changes."""
    body = graph(
        [
            node("Add", "i one", "end"),
            node("Reshape", "end ones", "ends"),
            node("Slice", "table zeros ends", "part"),
            node("Add", "s part", "s2"),
            node("Identity", "s2", "s3"),
        ],
        [value("going", [], BOOL), value("s2", ["L"]), value("s3", ["L"])],
        body_inputs(value("s", ["K"])),
    )
    constants = {"one": np.array(1), "ones": np.array([1]), "zeros": np.array([0]), "table": rows(2)[:, 0]}
    inputs = [value("n", [], INT64), value("go", [], BOOL), value("x", [1])]
    made = graph(
        [node("Loop", "n go x", "y all", body=body)], [value("y", None), value("all", None)], inputs, constants
    )
    save(tmp_path / "m.onnx", made)
    flags = ("--model_name", "m", "--model_def", "m.onnx", "--mlir", "m.mlir", "--not_inference", "--dims", "auto")
    failed = run_tool("model_transform", *flags, cwd=tmp_path)
    assert failed.returncode == 4
    assert "it stacks 'all', whose size a pass computes" in failed.stdout + failed.stderr


def test_growth_beyond_its_bound(tmp_path: Path) -> None:
    """The error names the dim; the context stays usable."""
    import tessera.runtime as rt

    model = save(tmp_path / "growing.onnx", growing("n"))
    bmodel = compile_model(model, imports=("--dims", "y.0=2..8"))
    net = rt.load(str(bmodel)).net()
    with pytest.raises(Exception, match=r"y\.0.* becomes 9"):
        net(dict(passes(7)[0]))
    assert net(dict(passes(6)[0]))["y"].shape == (8, 4)


def test_stacks_of_an_open_number_of_passes(tmp_path: Path) -> None:
    model = save(tmp_path / "stack.onnx", stacking())
    runs = [
        {"n": np.array(n), "go": np.array(go), "x": np.abs(rows(k, n)), "limit": np.array(limit, np.float32)}
        for n, go, k, limit in [(3, True, 2, 1e9), (9, True, 5, 30), (8, True, 3, 1), (20, True, 1, 1e9)]
    ]
    bmodel = compile_model(model, imports=("--dims", "n=1..5,n[0]=0..20"))
    compare(model, bmodel, runs)
    import tessera.runtime as rt

    none = rt.load(str(bmodel)).net()({**runs[0], "go": np.array(False)})
    assert none["all"].shape == (0, 2, 4)


def squeezed(rest: Sequence[onnx.NodeProto]) -> onnx.GraphProto:
    """torch's squeeze(1): an if removes the dim where it has one element. `rest` computes y from s and t."""
    nodes = [
        node("Tanh", "x", "t"),
        node("Shape", "x", "size", start=1, end=2),
        node("Equal", "size one", "flag"),
        node("If", "flag", "s", then_branch=graph([node("Squeeze", "t one", "a")], [value("a", None)]),
             else_branch=graph([node("Identity", "t", "b")], [value("b", None)])),
        *rest,
    ]  # fmt: skip
    constants = {"one": np.array([1]), "w": rows(4, 7), "first": np.array(0)}
    return graph(nodes, [value("y", None)], [value("x", ["batch", "steps", 4])], constants)


RANK = (node("Shape", "s", "shape"), node("Size", "shape", "rank"), node("Cast", "rank", "number", to=FLOAT))


def test_ranks_decided_by_sizes(tmp_path: Path) -> None:
    """Branches of ranks 2 and 3: what follows is compiled for both."""
    rest = (*RANK, node("MatMul", "s w", "p"), node("ReduceSum", "p", "q", keepdims=0), node("Add", "q number", "y"))
    model = save(tmp_path / "ranks.onnx", squeezed(rest))
    bmodel = compile_model(model, imports=("--dims", "batch=1..4,steps=0..5"))
    draw = np.random.default_rng(1).standard_normal
    runs = [{"x": draw((2, steps, 4)).astype(np.float32)} for steps in (1, 5, 1, 0, 3)]
    compare(model, bmodel, runs)


def test_ranks_decided_by_data(tmp_path: Path) -> None:
    """The condition is an input, and the ranks differ in a branch of another if."""
    inner = [
        node("If", "flag", "s", then_branch=graph([node("Reshape", "x line", "a")], [value("a", None)]),
             else_branch=graph([node("Identity", "x", "b")], [value("b", None)])),
        *RANK,
        node("Mul", "s number", "v"),
        node("ReduceMean", "v", "m", keepdims=0),
    ]  # fmt: skip
    branches = {
        "then_branch": graph(inner, [value("m", None)]),
        "else_branch": graph([node("ReduceMax", "x", "n", keepdims=0)], [value("n", None)]),
    }
    flags = [value(name, [], BOOL) for name in ("outer", "flag")]
    nodes = [node("If", "outer", "u", **branches), node("Neg", "u", "y")]
    model = save(
        tmp_path / "data.onnx", graph(nodes, [value("y", None)], [value("x", [2, 4]), *flags], {"line": np.array([-1])})
    )
    runs = [
        {"x": rows(2, i), "outer": np.array(i < 3), "flag": np.array(i % 2 == 1)}
        for i in range(4)
    ]  # fmt: skip
    compare(model, compile_model(model), runs)


def test_rank_that_fits_one_branch(tmp_path: Path) -> None:
    """Only the rank of one branch fits what follows: other sizes end a run with an error that names the If."""
    import tessera.runtime as rt

    rest = (node("Gemm", "s w", "g"), node("Gather", "g first", "y"))
    model = save(tmp_path / "one.onnx", squeezed(rest))
    bmodel = compile_model(model, imports=("--dims", "batch=1..4,steps=1..5"))
    x = rows(2, 3)[:, None]
    compare(model, bmodel, [{"x": x}])
    net = rt.load(str(bmodel)).net()
    with pytest.raises(Exception, match="condition of s"):
        net({"x": np.repeat(x, 2, axis=1)})
    assert net({"x": x})["y"].shape == (4,)


def test_condition_decided_by_ranges(tmp_path: Path) -> None:
    """A condition that is the same at all sizes of the range: the other branch, which nothing could import, is left
    out."""
    branches = {
        "then_branch": graph([node("Neg", "x", "a")], [value("a", None)]),
        "else_branch": graph([node("Unheard", "x", "b")], [value("b", None)]),
    }
    for kind, limit in (("Less", 9), ("LessOrEqual", 8), ("Greater", 0), ("GreaterOrEqual", 1)):
        nodes = [node("Size", "x", "count"), node(kind, "count limit", "flag"), node("If", "flag", "y", **branches)]
        made = graph(nodes, [value("y", None)], [value("x", ["batch"])], {"limit": np.array(limit)})
        model = save(tmp_path / f"{kind}.onnx", made)
        mlir = model.with_suffix(".mlir")
        dims = ("--model_def", model, "--mlir", mlir, "--not_inference", "--dims")
        check(run_tool("model_transform", *dims, "batch=1..8"))
        assert "top.if" not in mlir.read_text()
        assert "Unheard" in run_tool("model_transform", *dims, "batch=0..9").stderr


def test_equal_sizes_within_nested_branches(tmp_path: Path) -> None:
    """Sizes that an inner branch needs to be equal are compared where it begins."""
    inner = {
        "then_branch": graph([node("Add", "t b", "c")], [value("c", None)]),
        "else_branch": graph([node("Neg", "t", "d")], [value("d", None)]),
    }
    outer = {
        "then_branch": graph([node("Tanh", "a", "t"), node("If", "inner", "e", **inner)], [value("e", None)]),
        "else_branch": graph([node("Identity", "b", "f")], [value("f", None)]),
    }
    sides = [value(name, [size, 4]) for name, size in (("a", "m"), ("b", "n"))]
    flags = [value(name, [], BOOL) for name in ("outer", "inner")]
    made = graph([node("If", "outer", "y", **outer)], [value("y", None)], [*sides, *flags])
    model = save(tmp_path / "nested.onnx", made)
    bmodel = compile_model(model, imports=("--dims", "m=1..4,n=1..4"))
    cases = ((3, 3, True, True), (2, 4, True, False), (1, 4, False, True))
    runs = [
        {"a": rows(m, m), "b": rows(n, n), "outer": np.array(outer), "inner": np.array(inner)}
        for m, n, outer, inner in cases
    ]  # fmt: skip
    compare(model, bmodel, runs)


def merged_decoder() -> onnx.GraphProto:
    """An if on use_cache_branch, as in decoder_model_merged.onnx: keys and values of earlier tokens are joined with new
    ones, or ignored."""

    def branch(name: str, joined: Sequence[onnx.NodeProto]) -> onnx.GraphProto:
        nodes = [
            node("MatMul", "x wk", f"{name}k"),
            node("MatMul", "x wv", f"{name}v"),
            *joined,
            node("Transpose", f"{name}keys", f"{name}kt", perm=[0, 2, 1]),
            node("MatMul", f"x {name}kt", f"{name}scores"),
            node("Unsqueeze", "attention_mask one_axis", f"{name}mask"),
            node("Cast", f"{name}mask", f"{name}flags", to=BOOL),
            node("Where", f"{name}flags {name}scores lowest", f"{name}masked"),
            node("Softmax", f"{name}masked", f"{name}p", axis=-1),
            node("MatMul", f"{name}p {name}values", f"{name}y"),
        ]
        outputs = [value(f"{name}{each}", ["B", each, 4]) for each in ("y", "keys", "values")]
        return graph(nodes, outputs)

    first = branch("f", [node("Identity", "fk", "fkeys"), node("Identity", "fv", "fvalues")])
    later = branch(
        "l", [node("Concat", "past_keys lk", "lkeys", axis=1), node("Concat", "past_values lv", "lvalues", axis=1)]
    )
    caches = [value(f"past_{each}", ["batch", "past", 4]) for each in ("keys", "values")]
    return graph(
        [node("If", "use_cache_branch", "y keys values", then_branch=later, else_branch=first)],
        [value(name, None) for name in ("y", "keys", "values")],
        [value("x", ["batch", "seq", 4]), value("attention_mask", ["batch", "total"], INT64), *caches]
        + [value("use_cache_branch", [1], BOOL)],
        {"wk": rows(4, 5), "wv": rows(4, 6), "one_axis": np.array([1]), "lowest": np.float32(-1e9)},
    )


def tokens(count: int, past: int, total: int, uses_cache: bool, seed: int) -> Arrays:
    rng = np.random.default_rng(seed)
    draw = lambda size: rng.standard_normal((2, size, 4)).astype(np.float32)  # noqa: E731
    return {
        "x": draw(count),
        "attention_mask": np.array([[1] * total, [0] + [1] * (total - 1)]),
        "past_keys": draw(past),
        "past_values": draw(past),
        "use_cache_branch": np.array([uses_cache]),
    }


def test_merged_decoder(tmp_path: Path) -> None:
    """One file reads a prompt, with an empty or an ignored cache, and decodes. The mask's length is seq in one branch
    and past + seq in the other; taking a branch with another length is an error."""
    import tessera.runtime as rt

    model = save(tmp_path / "merged.onnx", merged_decoder())
    bmodel = compile_model(model, imports=("--dims", "batch=1..4,seq=1..8,past=0..24,total=1..32"))
    sizes = [(5, 0, 5, False), (1, 5, 6, True), (8, 1, 8, False), (3, 24, 27, True), (1, 0, 1, True)]
    compare(model, bmodel, [tokens(*each, seed=i) for i, each in enumerate(sizes)])
    net = rt.load(str(bmodel)).net()
    for wrong in ((5, 2, 7, False), (5, 2, 5, True)):
        with pytest.raises(Exception, match="difference of .*total"):
            net(dict(tokens(*wrong, seed=1)))
        assert net(dict(tokens(*sizes[1], seed=1)))["keys"].shape == (2, 6, 4)


def merged_encoder_decoder() -> onnx.GraphProto:
    """An encoder-decoder's decoder as optimum merges it for T5 and Whisper: the later branch reads keys of the encoder
    from a cache, cuts the mask to their number, and returns an empty constant in their place."""

    def branch(name: str, keys: onnx.NodeProto, first: Sequence[onnx.NodeProto], encoded: str) -> onnx.GraphProto:
        nodes = [
            node("MatMul", "x wk", f"{name}new"),
            *first,
            keys,
            node("Transpose", f"{name}keys", f"{name}kt", perm=[0, 2, 1]),
            node("MatMul", f"x {name}kt", f"{name}scores"),
            node("Softmax", f"{name}scores", f"{name}p", axis=-1),
            node("MatMul", f"{name}p {name}keys", f"{name}own"),
            node("Transpose", encoded, f"{name}et", perm=[0, 2, 1]),
            node("MatMul", f"x {name}et", f"{name}products"),
            node("Shape", encoded, f"{name}length", start=1, end=2),
            node("Slice", f"mask zero {name}length two", f"{name}mask"),
            node("Add", f"{name}products {name}mask", f"{name}masked"),
            node("Softmax", f"{name}masked", f"{name}q", axis=-1),
            node("MatMul", f"{name}q {encoded}", f"{name}crossed"),
            node("Add", f"{name}own {name}crossed", f"{name}y"),
        ]
        return graph(nodes, [value(f"{name}{each}", None) for each in ("y", "keys", "encoded")])

    reads = node("MatMul", "encoder_hidden_states we", "fencoded")
    nothing = numpy_helper.from_array(np.zeros((0, 1, 4), np.float32))
    empty = helper.make_node("Constant", [], ["lencoded"], value=nothing)
    first = branch("f", node("Identity", "fnew", "fkeys"), [reads], "fencoded")
    later = branch("l", node("Concat", "past_keys lnew", "lkeys", axis=1), [empty], "past_encoded")
    nodes = [
        node("Cast", "encoder_attention_mask", "kept", to=FLOAT),
        node("Sub", "kept one", "dropped"),
        node("Mul", "dropped large", "line"),
        node("Unsqueeze", "line axis", "mask"),
        node("If", "use_cache_branch", "y keys encoded", then_branch=later, else_branch=first),
    ]
    inputs = [
        value("encoder_attention_mask", ["batch", "encoder_length"], INT64),
        value("x", ["batch", "seq", 4]),
        value("encoder_hidden_states", ["batch", "encoder_length", 4]),
        value("past_keys", ["batch", "past", 4]),
        value("past_encoded", ["batch", "encoder_length", 4]),
        value("use_cache_branch", [1], BOOL),
    ]
    constants = {"wk": rows(4, 5), "we": rows(4, 6), "one": np.float32(1), "large": np.float32(1e9)}
    positions = {"zero": np.array([0]), "axis": np.array([1]), "two": np.array([2])}
    outputs = [value(name, None) for name in ("y", "keys", "encoded")]
    return graph(nodes, outputs, inputs, {**constants, **positions})


def test_merged_encoder_decoder(tmp_path: Path) -> None:
    """Both caches are empty in the first run, although dims of the encoder's have the name of other inputs' dims."""
    import tessera.runtime as rt

    def run(seed: int, seq: int, past: int, encoded: int, uses_cache: bool) -> Arrays:
        rng = np.random.default_rng(seed)
        draw = lambda size: rng.standard_normal((2, size, 4)).astype(np.float32)  # noqa: E731
        mask = np.array([[1] * 6, [1] * 4 + [0] * 2])
        inputs = {"encoder_attention_mask": mask, "x": draw(seq), "encoder_hidden_states": draw(6)}
        caches = {"past_keys": draw(past), "past_encoded": draw(encoded)}
        return {**inputs, **caches, "use_cache_branch": np.array([uses_cache])}

    model = save(tmp_path / "merged.onnx", merged_encoder_decoder())
    bmodel = compile_model(model, imports=("--dims", "batch=1..4,seq=1..8,past=0..24,encoder_length=1..9"))
    sizes = [(5, 0, 0, False), (1, 5, 6, True), (3, 6, 4, True), (2, 0, 0, False)]  # the mask may be longer
    compare(model, bmodel, [run(seed, *each) for seed, each in enumerate(sizes)])
    net = rt.load(str(bmodel)).net()
    with pytest.raises(Exception, match="difference of .*past_encoded.1"):
        net(dict(run(1, 1, 5, 8, True)))
    assert net(dict(run(2, 1, 5, 6, True)))["encoded"].shape == (0, 1, 4)


def test_scan_of_an_open_length(tmp_path: Path) -> None:
    """Two inputs are scanned, one from its end and along its last dim; a run compares their lengths."""
    import tessera.runtime as rt

    body = graph(
        [node("Add", "s a", "u"), node("Mul", "u b", "v"), node("Tanh", "v", "r"), node("Sub", "r shift", "w")],
        [value("r", [4]), value("w", [4])],
        [value(name, [4]) for name in ("s", "a", "b")],
    )
    attributes = {"num_scan_inputs": 2, "scan_input_axes": [0, -1], "scan_input_directions": [0, 1], "body": body}
    inputs = [value("start", [4]), value("x", ["m", 4]), value("z", [4, "n"])]
    made = graph([node("Scan", "start x z", "end y", **attributes)], [value("end", None), value("y", None)], inputs)
    made.initializer.append(numpy_helper.from_array(rows(1, 9)[0], "shift"))
    model = save(tmp_path / "scan.onnx", made)
    bmodel = compile_model(model, imports=("--dims", "m=1..40,n=1..40"))

    def run(m: int, n: int) -> Arrays:
        return {"start": rows(1, m)[0], "x": rows(m, m), "z": np.ascontiguousarray(rows(n, n).T)}

    compare(model, bmodel, [run(size, size) for size in (1, 7, 40, 3)])
    net = rt.load(str(bmodel)).net()
    with pytest.raises(Exception, match="difference of scanned lengths"):
        net(dict(run(3, 4)))
