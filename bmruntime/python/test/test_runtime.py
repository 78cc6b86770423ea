# SPDX-License-Identifier: Apache-2.0
"""Tests the Python module on small hand-made models (bmrt_make_test_models)."""
import json
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest

import tessera.runtime as rt


@pytest.fixture(scope="session")
def models(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("models")
    tool = Path(os.environ["TESSERA_BUILD_DIR"]) / "bin" / "bmrt_make_test_models"
    subprocess.run([tool, folder], check=True)
    return folder


def weights(count: int) -> np.ndarray:
    return np.arange(count, dtype=np.float32) - 3


@pytest.fixture
def x() -> np.ndarray:
    return np.random.default_rng(1).standard_normal((1, 1024), dtype=np.float32) * 600


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("trust", [False, True])
def test_run(models, x, threads, trust):
    net = rt.load(models / "add_relu.bmodel", threads=threads, trust=trust).net()
    out = net({"x": x})
    assert list(out) == ["y"]
    assert out["y"].dtype == np.float32 and out["y"].shape == (1, 1024)
    np.testing.assert_array_equal(out["y"], np.maximum(x + weights(1024), 0))


def test_infos(models):
    net = rt.load(str(models / "add_relu.bmodel")).net("main")
    assert [(i.name, i.shape, i.dtype, i.scale, i.zero_point) for i in net.inputs] == [
        ("x", (1, 1024), np.dtype("float32"), None, None)
    ]
    assert [o.name for o in net.outputs] == ["y"]
    assert net.chip == "x86"
    assert net.memory["workspace_bytes"] == 4096


@pytest.mark.parametrize("name", ["abacus", "abacus_host"])
def test_chips_with_memory_of_their_own(models, x, name, tmp_path):
    net = rt.load(models / f"{name}.bmodel").net()
    expected = np.maximum(x + weights(1024), 0)
    np.testing.assert_array_equal(net({"x": x})["y"], expected)
    outputs, tensors = net.run_with_dump({"x": x})
    np.testing.assert_array_equal(outputs["y"], expected)
    np.testing.assert_array_equal(tensors["sum"], x + weights(1024))
    net.profile({"x": x}, runs=2)
    net.write_trace(tmp_path / "trace.json")
    trace = json.loads((tmp_path / "trace.json").read_text())["traceEvents"]
    rows = {event["args"]["name"] for event in trace if event["name"] == "thread_name"}
    assert rows == ({"host", "abacus"} if name == "abacus_host" else {"host"})


def test_results_do_not_share_memory(models, x):
    net = rt.load(models / "add_relu.bmodel").net()
    first = net({"x": x})["y"]
    kept = first.copy()
    second = net({"x": x + 1})["y"]
    np.testing.assert_array_equal(first, kept)
    assert not np.shares_memory(first, second)


def test_strided_and_scalar_inputs(models, x):
    net = rt.load(models / "add_relu.bmodel").net()
    wide = np.repeat(x, 2, axis=1)
    np.testing.assert_array_equal(net({"x": wide[:, ::2]})["y"], net({"x": x})["y"])


def test_inputs_that_need_no_conversion_take_the_short_way(models, x):
    """The short way takes them and nothing else, and gives what the long way gives."""
    net = rt.load(models / "add_relu.bmodel").net()
    expected = np.maximum(x + weights(1024), 0)
    taken = net._context.run_arrays({"x": x})["y"]
    np.testing.assert_array_equal(taken, expected)
    assert taken.ctypes.data % rt._ALIGNMENT == 0 and taken.flags.writeable

    class OtherArray(np.ndarray):
        pass

    class OtherDict(dict):
        pass

    x.flags.writeable = False
    np.testing.assert_array_equal(net._context.run_arrays({"x": x})["y"], expected)
    wide = np.repeat(x, 2, axis=1)[:, ::2]
    for given in ({"x": x.view(OtherArray)}, OtherDict(x=x), {"x": wide}, {"x": x.astype(">f4")}, {"z": x}, {}, None,
                  {"x": x, "z": x}, {"x": x.view(np.int32)}, {"x": x.reshape(1024, 1)}, {"x": x.tolist()}):  # fmt: skip
        assert net._context.run_arrays(given) is None
    wrong = x.reshape(1024)
    references = sys.getrefcount(wrong)
    net._context.run_arrays({"x": wrong})
    assert sys.getrefcount(wrong) == references


def test_dlpack(models, x):
    class Foreign:
        def __dlpack__(self, **kwargs):
            return x.__dlpack__(**kwargs)

        def __dlpack_device__(self):
            return x.__dlpack_device__()

    net = rt.load(models / "add_relu.bmodel").net()
    np.testing.assert_array_equal(net({"x": Foreign()})["y"], net({"x": x})["y"])


def test_dump(models):
    net = rt.load(models / "blocked.bmodel").net()
    x = np.zeros((1, 1, 2, 2, 16), np.float32)
    outputs, tensors = net.run_with_dump({"x": x})
    taken: list[tuple[str, np.ndarray]] = []
    again, kept = net.run_with_dump({"x": x}, lambda name, array: taken.append((name, array)))
    assert not kept and dict(taken).keys() == tensors.keys() and len(taken) == len(tensors)
    assert all(np.array_equal(array, tensors[name]) for name, array in taken) and again.keys() == outputs.keys()
    with pytest.raises(ZeroDivisionError):
        net.run_with_dump({"x": x}, lambda name, array: 1 // 0)
    assert sorted(tensors) == ["sum", "y"]
    stored = weights(64).reshape(4, 16)  # [position, channel]
    np.testing.assert_array_equal(tensors["sum"], stored[:, :5].T.reshape(1, 5, 2, 2))
    np.testing.assert_array_equal(tensors["y"], outputs["y"])


def test_symbolic_shapes(models):
    net = rt.load(models / "dynamic.bmodel").net()
    assert net.inputs[0].shape == (None,) and net.inputs[0].max_shape == (64,)
    for size in (1, 64, 7):
        x = np.arange(size, dtype=np.float32)
        np.testing.assert_array_equal(net({"x": x})["y"], x + size)
    with pytest.raises(rt.Error, match="input 'x' has shape 65, the model takes ?"):
        net({"x": np.zeros(65, np.float32)})
    with pytest.raises(rt.Error, match="'N'.* is 0, allowed"):
        net({"x": np.zeros(0, np.float32)})


def test_sizes_known_at_run_time(models):
    """The shapes of the outputs, and that of input t, follow from the shape of x."""
    net = rt.load(models / "sized.bmodel").net(threads=2)
    for rows, width in ((17, 33), (1, 3), (0, 9), (7, 0), (5, 9), (17, 33)):
        x = np.arange(rows * width, dtype=np.float32).reshape(rows, width)
        t = np.ones(rows + width // 3, np.float32)
        pairs = np.zeros((rows, (width + 1) // 2 * 2), np.float32)
        pairs[:, :width] = x + np.tile(np.array([10, 20, 30], np.float32), width // 3)
        expected = pairs.reshape(rows, (width + 1) // 2, 2).sum(2) + 2
        seen = {}
        run = net.launch({"x": x, "t": t})
        for outputs in (run.wait(), net({"x": x, "t": t})):
            assert outputs["y"].shape == (rows, (width + 1) // 2)
            np.testing.assert_array_equal(outputs["y"], expected)
            np.testing.assert_array_equal(outputs["z"], expected)
        net.run_with_dump({"x": x, "t": t}, seen.__setitem__)
        assert seen["s"].shape == (rows, width)
    with pytest.raises(rt.Error, match="input 't' is 9, the shapes of the other inputs require 8"):
        net({"x": np.zeros((5, 9), np.float32), "t": np.zeros(9, np.float32)})


def test_profile_and_trace(models, x, tmp_path):
    net = rt.load(models / "add_relu.bmodel").net()
    steps = net.profile({"x": x}, runs=3)
    assert [(s.kind, s.symbol, s.onnx_nodes, s.runs) for s in steps] == [
        ("launch", "add", ["Add_0"], 3),
        ("launch", "relu", ["Relu_0"], 3),
    ]
    assert all(0 < s.min_ns <= s.last_ns <= s.total_ns for s in steps)
    net.write_trace(tmp_path / "trace.json")
    events = json.loads((tmp_path / "trace.json").read_text())["traceEvents"]
    assert [event["name"] for event in events if event["ph"] == "X"] == ["Add_0", "Relu_0"]


def test_trace_needs_a_profile(models):
    with pytest.raises(rt.Error, match="switch profiling on"):
        rt.load(models / "add_relu.bmodel").net().write_trace("/tmp/never.json")


@pytest.mark.parametrize(
    "inputs, message",
    [
        ({}, r"input 'x' \(float32 1x1024\) is missing"),
        ({"x": np.zeros((1, 1024), np.float32), "z": 1}, "the model has no input 'z'; it has 'x'"),
        ({"x": np.zeros((1, 1023), np.float32)}, "input 'x' has shape 1x1023, the model takes 1x1024"),
        ({"x": np.zeros((1024,), np.float32)}, "input 'x' has shape 1024, the model takes 1x1024"),
        ({"x": np.zeros((1, 1024))}, "input 'x' is float64, the model takes float32"),
        ({"x": [1, 2]}, "input 'x' must be a numpy array or offer __dlpack__, not list"),
        (np.zeros((1, 1024), np.float32), "inputs must be a dict of arrays by name .'x'., not ndarray"),
    ],
)
def test_wrong_inputs(models, inputs, message):
    net = rt.load(models / "add_relu.bmodel").net()
    with pytest.raises(rt.Error, match=message):
        net(inputs)
    with pytest.raises(ValueError):
        net(inputs)


def test_wrong_files(models, tmp_path):
    with pytest.raises(rt.Error, match="no_such.bmodel.*No such file") as info:
        rt.load(tmp_path / "no_such.bmodel")
    assert info.value.code == "I/O error"
    content = bytearray((models / "add_relu.bmodel").read_bytes())
    content[-4000] ^= 1
    (tmp_path / "altered.bmodel").write_bytes(content)
    with pytest.raises(rt.Error, match="altered") as info:
        rt.load(tmp_path / "altered.bmodel")
    assert info.value.code == "corrupt model"
    (tmp_path / "text.bmodel").write_text("hello" * 100)
    with pytest.raises(rt.Error, match="not a bmodel file"):
        rt.load(tmp_path / "text.bmodel")
    with pytest.raises(rt.Error, match="no net 'other'; it has 'main'"):
        rt.load(models / "add_relu.bmodel").net("other")
    with pytest.raises(rt.Error, match="threads"):
        rt.load(models / "add_relu.bmodel", threads=0)


def test_no_more_threads_than_processors(models, x):
    """More threads would only take turns: 64 on 2 cores were four times slower."""
    before = len(os.listdir("/proc/self/task"))
    net = rt.load(models / "add_relu.bmodel", threads=64).net()
    np.testing.assert_array_equal(net({"x": x})["y"], np.maximum(x + weights(1024), 0))
    assert len(os.listdir("/proc/self/task")) - before < len(os.sched_getaffinity(0))


def test_one_net_on_many_threads(models, x):
    net = rt.load(models / "add_relu.bmodel", threads=2).net()
    failures = []

    def work(offset: float) -> None:
        for _ in range(50):
            got = net({"x": x + np.float32(offset)})["y"]
            if not np.array_equal(got, np.maximum(x + np.float32(offset) + weights(1024), 0)):
                failures.append(offset)

    threads = [threading.Thread(target=work, args=(float(i),)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures


def test_probe_looks_at_changes_and_reruns(models, x):
    net = rt.load(models / "add_relu.bmodel").net()
    golden = net({"x": x})["y"]
    probe = net.probe()
    probe.run({"x": x})
    np.testing.assert_array_equal(probe.outputs()["y"], golden)
    assert [t.step for t in probe.tensors] == sorted(t.step for t in probe.tensors)
    first = probe.tensors[0]
    np.testing.assert_array_equal(probe.row_major(first).ravel(), first.data)
    probe.input("x")[:] = 7
    probe.run_steps(0)
    np.testing.assert_array_equal(probe.outputs()["y"], np.maximum(7 + weights(1024), 0)[None])
    last = probe.tensors[-1]
    last.data[:] = 5
    probe.run_steps(probe.steps)
    np.testing.assert_array_equal(probe.outputs()["y"], np.full((1, 1024), 5))


def test_probe_rejects_steps_that_are_not_there(models, x):
    probe = rt.load(models / "add_relu.bmodel").net().probe()
    with pytest.raises(rt.Error, match="has not run"):
        probe.run_steps(0)
    probe.run({"x": x})
    for begin, end in ((0, probe.steps + 1), (1, 0)):
        with pytest.raises(rt.Error, match="are not part of the net"):
            probe.run_steps(begin, end)


def test_shapes_choose_the_stage(models):
    net = rt.load(models / "stages.bmodel", threads=2).net()
    assert [stage.inputs[0].shape for stage in net.stages] == [(1, 1024), (2, 256)] and net.stage == 0
    x = np.arange(1024, dtype=np.float32).reshape(1, 1024)
    for _ in range(2):
        assert np.array_equal(net({"x": x})["y"], np.maximum(x + weights(1024), 0)) and net.stage == 0
        small = x[:, :512].reshape(2, 256)
        assert (
            np.array_equal(net({"x": small})["y"].ravel(), np.maximum(x[0, :512] + weights(512), 0)) and net.stage == 1
        )
    with pytest.raises(
        rt.Error,
        match=r"no stage .* of 3x3: dimension 0 of input 'x' is 3, at most 2 .*; there are 1x1024 \(x86\); 2x256",
    ):
        net({"x": np.zeros((3, 3), np.float32)})
    net.use({"x": (1, 1024)})
    assert net.stage == 0 and net.inputs[0].shape == (1, 1024)
    with pytest.raises(rt.Error, match="input 'x' .* is missing"):
        net.use({})


def test_threads_share_a_net_of_several_stages(models):
    from concurrent.futures import ThreadPoolExecutor

    net = rt.load(models / "stages.bmodel").net()

    def run(i: int) -> bool:
        shape = ((1, 1024), (2, 256))[i % 2]
        x = np.full(shape, i, np.float32)
        return np.array_equal(net({"x": x})["y"].ravel(), np.maximum(x.ravel() + weights(x.size), 0))

    with ThreadPoolExecutor(4) as threads:
        assert all(threads.map(run, range(400)))


INTERRUPTED = """
import sys, threading, time, os, signal
import numpy as np
import tessera.runtime as rt
net = rt.load(sys.argv[1]).net()
x = np.full((1, 1024), np.float32(1.5e-45))  # the first byte is 1, so the model never stops
def stop():
    time.sleep(0.3)
    stop.at = time.monotonic()
    os.kill(os.getpid(), signal.SIGINT)
threading.Thread(target=stop).start()
try:
    net({"x": x})
except KeyboardInterrupt:
    print(time.monotonic() - stop.at)
net({"x": np.zeros((1, 1024), np.float32)})
"""


def test_ctrl_c_ends_a_run(models):
    result = subprocess.run(
        [sys.executable, "-c", INTERRUPTED, models / "endless.bmodel"],
        capture_output=True,
        text=True,
        timeout=60,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )
    assert result.returncode == 0, result.stderr
    assert float(result.stdout) < 5  # 0.2 s where the machine has nothing else to do


def test_cancel_from_another_thread(models):
    net = rt.load(models / "endless.bmodel", threads=2).net()
    timer = threading.Timer(0.1, net.cancel)
    timer.start()
    with pytest.raises(rt.Error, match="the run was cancelled") as caught:
        net({"x": np.full((1, 1024), np.float32(1.5e-45))})
    assert caught.value.code == "cancelled"
    timer.join()
    net.cancel()  # of nothing
    zeros = np.zeros((1, 1024), np.float32)
    np.testing.assert_array_equal(net({"x": zeros})["y"], np.maximum(zeros + weights(1024), 0))


@pytest.mark.parametrize(
    "text, words", [("[" * 100000, "nested too deep"), ("{", "is not valid JSON"), ("[1]", "is not a JSON object")]
)
def test_records_that_are_no_records(text, words):
    with pytest.raises(rt.Error, match=words):
        rt._parse_record("x", text)


def test_a_dump_that_runs_its_own_net_is_an_error(models, x):
    """Without the check, the net would wait for itself forever."""
    net = rt.load(models / "add_relu.bmodel").net()
    with pytest.raises(RuntimeError, match="must not use it"):
        net.run_with_dump({"x": x}, lambda name, values: net({"x": x}))
    np.testing.assert_array_equal(net({"x": x})["y"], np.maximum(x + weights(1024), 0))
