# SPDX-License-Identifier: Apache-2.0
"""Tests models on NVIDIA GPUs: f32 outputs agree with x86, integer outputs are bit-equal to x86, and every failure of
the driver is reported.

Where there is no GPU the PTX machine (bmruntime/ptx_machine) executes the models' kernels, with all of its checks on.
TESSERA_CUDA=all: every model, and more random networks.
"""
from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Callable, Iterator

import numpy as np
import pytest
from case_file import Case, all_cases
from conftest import Builder, check, inputs_of, run_tool, samples
from onnx import TensorProto, helper, numpy_helper
from small_models import save, tensor
from test_cases import skip_if_missing

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "conformance"))
import random_narrow  # noqa: E402
import random_ops  # noqa: E402
import random_quantized  # noqa: E402

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "cuda"))
import prove  # noqa: E402

MACHINE = Path(os.environ["TESSERA_BUILD_DIR"]) / "ptx_machine/libcuda.so.1"
IS_WHOLE = os.environ.get("TESSERA_CUDA") == "all"
QUICK = ("resnet8_cifar10", "mobilenetv1_0.25_128", "toycar_autoencoder", "stories260k", "dtln_model_2")
CASES = [case for case in all_cases() if IS_WHOLE or case.name in QUICK]
# When quantised, these keep recurrent cells in f32, and a GPU adds their sums in another order.
FLOAT_PARTS = ("dtln_model_1",)
TOLERANCE = 2e-5  # of the largest value, in f32
# Exponentials of box sizes amplify roundings that depend on the order of sums: x86 itself differs from onnxruntime by
# 1.3e-4 there.
LOOSE = {"yolox_nano_416": 1e-4}


def has_machine() -> bool:
    flags = next((line for line in Path("/proc/cpuinfo").read_text().splitlines() if line.startswith("flags")), "")
    return MACHINE.exists() and {"avx2", "fma", "f16c"} <= set(flags.split())


@pytest.fixture(autouse=True, scope="module")
def driver() -> Iterator[None]:
    """Returns the real driver if one is named, else the PTX machine."""
    if not os.environ.get("BMRT_LIBCUDA"):
        if not has_machine():
            pytest.skip("no GPU, and the PTX machine is not built or this processor lacks AVX2, FMA or F16C")
        os.environ["BMRT_LIBCUDA"] = str(MACHINE)
        yield
        del os.environ["BMRT_LIBCUDA"]
    else:
        yield


def deploy(top: Path, chip: str, output: Path, *flags: str | Path) -> dict:
    text = check(run_tool("tessera-compile", "deploy", "--mlir", top, "--chip", chip, *flags, "--output", output))
    return json.loads(text.splitlines()[-1])


def run(model: Path, inputs: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    import tessera.runtime as runtime

    return runtime.load(str(model)).net()(inputs)


def answers(top: Path, tmp_path: Path, *flags: str | Path) -> tuple[dict, dict]:
    """Returns the outputs of x86 and of the GPU for the same random inputs. Checks that the GPU runs all ops."""
    inputs = samples(inputs_of(top), 5)
    results = []
    for chip in ("x86", "cuda"):
        info = deploy(top, chip, tmp_path / f"{chip}.bmodel", *flags)
        assert chip == "x86" or not info["partition"]["host_ops"], info["partition"]["host_ops"]
        results.append(run(tmp_path / f"{chip}.bmodel", inputs))
    return results[0], results[1]


@pytest.mark.parametrize("case", CASES, ids=[case.name for case in CASES])
def test_f32_is_x86s(case: Case, builder: Builder, tmp_path: Path) -> None:
    skip_if_missing(case)
    want, got = answers(builder.top(case), tmp_path)
    for name, expected in want.items():
        scale = max(1e-6, float(np.abs(expected.astype(np.float64)).max(initial=0)))
        worst = float(np.abs(got[name].astype(np.float64) - expected).max(initial=0)) / scale
        allowed = LOOSE.get(case.name, TOLERANCE)
        assert worst <= allowed, f"{case.name}: '{name}' is off by {worst:.1e} of its largest value"


@pytest.mark.parametrize("case", CASES, ids=[case.name for case in CASES])
def test_int8_has_x86s_bits(case: Case, builder: Builder, tmp_path: Path) -> None:
    skip_if_missing(case)
    if case.name in FLOAT_PARTS:
        pytest.skip(f"{case.name} keeps recurrent cells in f32")
    table, _ = builder.table(case, tmp_path)
    want, got = answers(builder.top(case), tmp_path, "--quantize", "INT8", "--calibration-table", table)
    for name, expected in want.items():
        wrong = int((got[name] != expected).sum())
        assert not wrong, f"{case.name}: '{name}' differs in {wrong} of {expected.size} elements"


def test_the_table_of_the_docs_is_of_todays_models() -> None:
    """regression/cuda/prove.py makes the table; tests above check the same verdicts for some of its models."""
    lines = prove.PAGE.read_text(encoding="utf-8").splitlines()
    heading = next(line for line in lines if line.startswith("| model |"))
    assert heading.split(" | ")[1:-2] == list(prove.PRECISIONS)
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines if line.startswith("| ")][1:]
    assert [row[0] for row in rows] == [case.name for case in all_cases()]
    for name, *cells in rows:
        for precision, cell in zip(prove.PRECISIONS, cells):
            number = cell.rstrip("*")
            most = 0.3 if precision == "BF16" else 0.1  # one element, of noise: bf16 itself differs that much from f32
            assert number in ("-", "equal") or float(number) < most, f"{name} {precision}: {cell}"
            assert precision != "INT8" or cell in ("-", "equal") or cell.endswith("*"), f"{name}: {cell}"


def test_a_wrong_answer_is_no_row_of_the_table() -> None:
    want = {"y": np.linspace(-1, 1, 64, dtype=np.float32)}
    exact, float32 = prove.tolerance_of(CASES[0], "INT8", []), prove.tolerance_of(CASES[0], "F32", [])
    assert exact is None and prove.judge(want, want, exact) == (prove.EQUAL, 0)
    near, far = {"y": want["y"] + np.float32(1e-5)}, {"y": want["y"] + np.float32(0.1)}
    assert prove.judge(near, want, float32)[0] == prove.WITHIN and prove.judge(near, want, exact)[0] == prove.OUTSIDE
    spoilt = {"y": np.where(want["y"] > 0.9, np.float32(np.nan), want["y"])}
    for wrong in (far, spoilt, {}, {"y": want["y"].astype(np.float64)}, {"y": want["y"][1:]}):
        verdict, worst = prove.judge(wrong, want, float32)
        assert verdict not in prove.RIGHT, verdict
    row = {"verdict": verdict, "worst": worst}
    with pytest.raises(prove.Failed, match="no page"):
        prove.write_page({CASES[0].name: {"F32": row}})


# Tolerances of narrow types: GPUs round them at other places and add their sums in another order.
NARROW = {"W8": TOLERANCE, "W4": TOLERANCE, "DYNAMIC_INT8": TOLERANCE, "F16": 5e-3, "BF16": 4e-2}


@pytest.mark.parametrize("precision", NARROW)
def test_other_precisions_are_x86s(precision: str, builder: Builder, tmp_path: Path) -> None:
    for name in ("toycar_autoencoder", "vittrack"):
        case = next(case for case in all_cases() if case.name == name)
        skip_if_missing(case)
        if name == "vittrack" and precision == "DYNAMIC_INT8":
            continue  # a single value that is rounded the other way changes some integers
        want, got = answers(builder.top(case), tmp_path, "--quantize", precision)
        for output, expected in want.items():
            worst = float(np.abs(got[output] - expected).max()) / float(np.abs(expected).max())
            assert worst <= NARROW[precision], f"{name}: '{output}' is off by {worst:.1e} of its largest value"


Model = tuple[list, dict[str, np.ndarray], dict[str, np.ndarray]]  # nodes, inputs, constants; the output is named y


def ties(rng: np.random.Generator, *shape: int) -> np.ndarray:
    """Returns values with many ties, zeros of both signs and some NaNs, also at the begin of rows."""
    x = rng.integers(-9, 9, shape).astype(np.float32) * np.float32(0.5)
    x[rng.random(shape) < 0.02] = np.nan
    x[..., :1][rng.random((*shape[:-1], 1)) < 0.2] = np.nan
    return np.where(rng.random(shape) < 0.02, np.float32(-0.0), x)


def largest(rng: np.random.Generator) -> Model:
    kind = ("ArgMax", "ArgMin")[rng.integers(2)]
    shape, axis = [((7, 333), 1), ((3, 40, 5), 1), ((2, 3, 64), 2), ((5000,), 0)][rng.integers(4)]
    last = {"axis": axis, "select_last_index": int(rng.integers(2))}
    x = ties(rng, *shape) if rng.integers(2) else rng.integers(-5, 5, shape).astype(np.int32)
    return [helper.make_node(kind, ["x"], ["y"], **last)], {"x": x}, {}


def best_few(rng: np.random.Generator) -> Model:
    shape, axis = [((4, 301), 1), ((2, 33, 6), 1), ((1500,), 0)][rng.integers(3)]
    constants = {"k": np.int64([rng.integers(1, shape[axis] + 1)])}
    attributes = {"axis": axis, "largest": int(rng.integers(2))}
    nodes = [helper.make_node("TopK", ["x", "k"], ["v", "i"], **attributes)]
    nodes.append(helper.make_node("Cast", ["i"], ["y"], to=TensorProto.INT32))
    return nodes, {"x": ties(rng, *shape)}, constants


def running_sums(rng: np.random.Generator) -> Model:
    shape, axis = [((3, 100), 1), ((2, 77, 4), 1), ((4096,), 0)][rng.integers(3)]
    kind = (np.int64, np.int32)[rng.integers(2)]
    attributes = {"exclusive": int(rng.integers(2)), "reverse": int(rng.integers(2))}
    x = (rng.integers(-9, 9, shape) * (1 << 33 if kind is np.int64 else 1)).astype(kind)
    return [helper.make_node("CumSum", ["x", "axis"], ["y"], **attributes)], {"x": x}, {"axis": np.int64(axis)}


def running_sums_of_floats(rng: np.random.Generator) -> Model:
    nodes, inputs, constants = running_sums(rng)
    return nodes, {"x": rng.random(inputs["x"].shape).astype(np.float32)}, constants


def suppression(rng: np.random.Generator) -> Model:
    batch, classes, count = int(rng.integers(1, 3)), int(rng.integers(1, 3)), int(rng.integers(1, 400))
    boxes = rng.random((batch, count, 4)).astype(np.float32)
    scores = np.round(rng.random((batch, classes, count)), 1).astype(np.float32)  # many scores are equal
    limits = {"most": np.int64([rng.integers(1, 300)]), "iou": np.float32([rng.choice([0.0, 0.3, 0.6])])}
    limits["least"] = np.float32([rng.choice([0.0, 0.2, 0.7])])
    node = helper.make_node("NonMaxSuppression", ["boxes", "scores", *limits], ["y"])
    return [node], {"boxes": boxes, "scores": scores}, limits


def recurrent(rng: np.random.Generator) -> Model:
    kind, gates = [("LSTM", 4), ("GRU", 3), ("RNN", 1)][rng.integers(3)]
    direction = ("forward", "reverse", "bidirectional")[rng.integers(3)]
    ways = 2 if direction == "bidirectional" else 1
    steps, batch, inputs, hidden = (int(rng.choice(sizes)) for sizes in ((1, 5), (1, 3), (7, 16, 65), (5, 32, 130)))
    attributes = {"linear_before_reset": int(rng.integers(2))} if kind == "GRU" else {}
    constants = {
        "w": rng.standard_normal((ways, gates * hidden, inputs)).astype(np.float32) * np.float32(0.3),
        "r": rng.standard_normal((ways, gates * hidden, hidden)).astype(np.float32) * np.float32(0.2),
        "b": rng.standard_normal((ways, 2 * gates * hidden)).astype(np.float32) * np.float32(0.1),
    }
    node = helper.make_node(kind, ["x", "w", "r", "b"], ["y"], hidden_size=hidden, direction=direction, **attributes)
    return [node], {"x": rng.standard_normal((steps, batch, inputs)).astype(np.float32)}, constants


def attention(rng: np.random.Generator) -> Model:
    heads, queries, keys = int(rng.integers(1, 9)), int(rng.choice([1, 17, 300])), int(rng.choice([1, 16, 100]))
    depth, features = int(rng.choice([5, 32, 64])), int(rng.choice([3, 32, 64, 200]))
    inputs = {
        "q": rng.standard_normal((1, heads, queries, depth)).astype(np.float32),
        "k": rng.standard_normal((1, heads, depth, keys)).astype(np.float32),
        "v": rng.standard_normal((1, heads, keys, features)).astype(np.float32),
        "mask": np.where(rng.random((1, 1, queries, keys)) < 0.3, np.float32(-1e9), np.float32(0)),
    }
    nodes = [
        helper.make_node("MatMul", ["q", "k"], ["products"]),
        helper.make_node("Mul", ["products", "scale"], ["scaled"]),
        helper.make_node("Add", ["scaled", "mask"], ["scores"]),
        helper.make_node("Softmax", ["scores"], ["weights"], axis=-1),
        helper.make_node("MatMul", ["weights", "v"], ["y"]),
    ]
    return nodes, inputs, {"scale": np.float32(0.2)}


def scattered(rng: np.random.Generator) -> Model:
    """Builds updates of the same elements, whose result depends on their order."""
    reduction = ("none", "add", "mul", "max", "min")[rng.integers(5)]
    x, count = rng.standard_normal((5, 6, 7)).astype(np.float32), int(rng.integers(1, 40))
    if rng.integers(2):
        shape, axis = (4, count, 5), 1
        indices = rng.integers(-6, 6, shape)
        node = helper.make_node("ScatterElements", ["x", "i", "u"], ["y"], axis=axis, reduction=reduction)
    else:
        tuple_size = int(rng.integers(1, 4))
        indices = np.stack([rng.integers(0, size, count) for size in x.shape[:tuple_size]], 1)
        shape = (count, *x.shape[tuple_size:])
        node = helper.make_node("ScatterND", ["x", "i", "u"], ["y"], reduction=reduction)
    return [node], {"x": x, "i": indices, "u": rng.standard_normal(shape).astype(np.float32)}, {}


EXACT = (largest, best_few, running_sums, suppression, scattered)


@pytest.mark.parametrize("seed", range(40 if IS_WHOLE else 4))
@pytest.mark.parametrize("make", [*EXACT, running_sums_of_floats, recurrent, attention])
def test_ops_shared_by_threads_are_x86s(make: Callable, seed: int, tmp_path: Path) -> None:
    nodes, inputs, constants = make(np.random.default_rng([seed, len(make.__name__)]))
    values = [tensor(name, x.shape, numpy_helper.from_array(x).data_type) for name, x in inputs.items()]
    results = [helper.make_empty_tensor_value_info("y")]
    initializers = [numpy_helper.from_array(np.asarray(x), name) for name, x in constants.items()]
    save(tmp_path / "m.onnx", nodes, values, results, initializers, opset=18)
    flags = ("--model_name", "m", "--model_def", "m.onnx", "--mlir", "m_top.mlir", "--not_inference")
    check(run_tool("model_transform", *flags, cwd=tmp_path))
    answered = []
    for chip in ("x86", "cuda"):
        info = deploy(tmp_path / "m_top.mlir", chip, tmp_path / f"{chip}.bmodel")
        assert chip == "x86" or not info["partition"]["host_ops"], info["partition"]["host_ops"]
        (answer,) = run(tmp_path / f"{chip}.bmodel", inputs).values()
        answered.append(answer)
    if make in EXACT:
        np.testing.assert_array_equal(answered[1], answered[0])
    else:
        np.testing.assert_allclose(answered[1], answered[0], rtol=1e-5, atol=1e-5)


def test_random_quantised_networks() -> None:
    seeds = range(1000, 3000) if IS_WHOLE else range(1000, 1024)
    results = list(random_quantized.run_seeds(seeds, os.cpu_count() or 1, variants=("cuda",)))
    assert not [fault for fault, _, _ in results if fault], "\n".join(fault for fault, _, _ in results)
    assert sum(compared for _, compared, _ in results) > 50_000


def test_random_networks_of_narrow_types() -> None:
    seeds = range(400 if IS_WHOLE else 24)
    faults = [fault for fault in random_narrow.run_seeds(seeds, os.cpu_count() or 1, "cuda") if fault]
    assert not faults, "\n".join(faults)


def test_random_ops() -> None:
    path = Path(random_ops.__file__)
    cases = "2000" if IS_WHOLE else "60"
    info = subprocess.run(
        [sys.executable, path, "--cases", cases, "--isa", "cuda"], capture_output=True, text=True, check=False
    )
    assert info.returncode == 0 and ", 0 faults" in info.stdout, info.stdout + info.stderr


@pytest.fixture(scope="module")
def small_model(tmp_path_factory: pytest.TempPathFactory, builder: Builder) -> tuple[Path, Path]:
    """Returns the smallest of the models, and inputs for it."""
    case = next(case for case in all_cases() if case.name == "resnet8_cifar10")
    skip_if_missing(case)
    folder = tmp_path_factory.mktemp("small")
    top = builder.top(case)
    deploy(top, "cuda-sm80", folder / "m.bmodel")
    np.savez(folder / "in.npz", **samples(inputs_of(top), 5))
    return folder / "m.bmodel", folder / "in.npz"


FAULTS = {
    "no_driver": ({"BMRT_LIBCUDA": "/no/such/libcuda.so.1"}, "NVIDIA's driver was not found"),
    "no_cuda": ({"BMRT_LIBCUDA": "libc.so.6"}, "not a driver of NVIDIA"),
    "old_driver": ({"PTX_MACHINE_DRIVER_VERSION": "11040"}, "supports CUDA 11.4, but 12.0 or newer is required"),
    "no_device": ({"PTX_MACHINE_NO_DEVICE": "1"}, "no NVIDIA GPU"),
    "old_device": ({"PTX_MACHINE_COMPUTE_CAPABILITY": "7.5"}, "compute capability 7.5"),
    "which_device": ({"BMRT_CUDA_DEVICE": "3"}, "needs GPU 3, counted from 0; this machine has 1"),
    "memory": ({"PTX_MACHINE_FAIL_ALLOC": "1"}, "has no memory for"),
    "launch": ({"PTX_MACHINE_FAIL_LAUNCH": "2"}, "failed on"),
    # The first launch clears the counters of blocks that share tiles.
    "blocking_launch": ({"PTX_MACHINE_FAIL_LAUNCH": "3", "BMRT_CUDA_BLOCKING": "1"}, "layer Conv_2 Relu_3 failed"),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_failures_are_told(fault: str, small_model: tuple[Path, Path], tmp_path: Path) -> None:
    if os.environ["BMRT_LIBCUDA"] != str(MACHINE):
        pytest.skip("a real driver does not fail on demand")
    variables, message = FAULTS[fault]
    model, inputs = small_model
    info = subprocess.run(
        ["model_runner", "--model", model, "--input", inputs, "--output", tmp_path / "out.npz"],
        env=os.environ | variables,
        capture_output=True,
        text=True,
        check=False,
    )
    assert info.returncode == (71 if fault == "memory" else 1) and message in info.stderr, info.stderr
    assert "Traceback" not in info.stderr


def test_the_second_compilation_makes_no_ptx(builder: Builder, tmp_path: Path) -> None:
    """Every kernel comes from the cache. Damaged files count as absent, and kernels of other chips are separate
    entries."""
    case = next(case for case in all_cases() if case.name == "resnet8_cifar10")
    cache = tmp_path / "cache"

    def hits(chip: str = "cuda") -> tuple[int, int]:
        info = deploy(builder.top(case), chip, tmp_path / f"{len(result)}.bmodel", "--cache-dir", cache)
        result.append((tmp_path / f"{len(result)}.bmodel").read_bytes())
        return info["cache_hits"], info["kernels"]

    result: list[bytes] = []
    assert hits()[0] == 0
    found, kernels = hits()
    assert found == kernels > 5
    assert hits("cuda-sm90")[0] == 0
    for kept in [path for path in cache.rglob("*") if path.is_file()]:
        content = bytearray(kept.read_bytes())
        content[len(content) // 2] ^= 1
        kept.write_bytes(content)
    assert hits()[0] == 0, "damaged"
    assert hits()[0] == kernels, "mended"
    assert result[0] == result[1] == result[3] == result[4]
