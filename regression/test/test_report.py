# SPDX-License-Identifier: Apache-2.0
"""tessera report: the page's numbers are those of model_tool, it asks nobody for anything, and a browser draws it."""
from __future__ import annotations

import contextlib
import json
import re
import shutil
import socket
import subprocess
import time
import urllib.request
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from case_file import all_cases
from conftest import Builder, check, run_tool
from onnx import TensorProto, helper, numpy_helper

BROWSER = shutil.which("chromium") or shutil.which("google-chrome")
DRIVER = shutil.which("chromedriver")
needs_browser = pytest.mark.skipif(not BROWSER, reason="no Chromium: apt-get install chromium")
TABS = ["Overview", "Graph", "Accuracy", "Partition", "Performance", "Timeline", "Memory", "Advice", "Comparison"]


class Made:
    def __init__(self, folder: Path) -> None:
        case = next(case for case in all_cases() if case.name == "resnet8_cifar10")
        top = Builder(folder).top(case)
        self.npu, self.x86, self.page = folder / "npu.bmodel", folder / "x86.bmodel", folder / "r.html"
        deploy = ("model_deploy", "--mlir", top, "--skip_validation")
        check(run_tool(*deploy, "--chip", "npu-base", "--quantize", "F16", "--model", self.npu))
        check(run_tool(*deploy, "--chip", "x86-avx2", "--quantize", "F32", "--model", self.x86))
        check(run_tool("tessera", "report", self.npu, self.x86, "-o", self.page))
        self.perf = json.loads(check(run_tool("model_tool", "perf", self.npu, "--json")))["report"]
        found = re.search(r'<script type="application/json" id="data">(.*?)</script>', self.page.read_text(), re.S)
        assert found
        self.data = json.loads(found[1])


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Made:
    return Made(tmp_path_factory.mktemp("report"))


class Tables(HTMLParser):
    """The rows of tables with an id, as (value, text) of cells; ids of sections and buttons."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.rows: dict[str, list[list[list[str]]]] = {}
        self.ids: list[str] = []
        self._table, self._cell = "", False
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list) -> None:
        values = dict(attrs)
        self.ids += [values["id"]] if "id" in values else []
        if tag == "table":
            self._table = values.get("id", "")
        elif tag == "tr":
            self.rows.setdefault(self._table, []).append([])
        elif tag == "td":
            self._cell = True
            self.rows[self._table][-1].append([values.get("data-value", ""), ""])

    def handle_endtag(self, tag: str) -> None:
        self._cell = self._cell and tag != "td"

    def handle_data(self, data: str) -> None:
        if self._cell:
            self.rows[self._table][-1][-1][1] += data


def browse(page: Path, folder: Path) -> tuple[str, str]:
    """The DOM with all tabs drawn, and what the console said."""
    command = [str(BROWSER), "--headless=new", "--no-sandbox", "--disable-gpu", f"--user-data-dir={folder}"]
    command += ["--enable-logging=stderr", "--virtual-time-budget=4000", "--dump-dom", f"file://{page}?all"]
    result = subprocess.run(command, capture_output=True, text=True, timeout=120)
    return result.stdout, "\n".join(line for line in result.stderr.splitlines() if "CONSOLE" in line)


def test_numbers_are_those_of_the_tools(made: Made) -> None:
    told, stage = made.data[0], made.data[0]["stages"][0]
    assert stage["perf"] == made.perf
    assert told["bytes"] == made.npu.stat().st_size
    micro = made.perf["microseconds"] / made.perf["cycles"]
    for layer, row in zip(made.perf["layers"], stage["layers"]):
        assert row["us"] == layer["cycles"] * micro and row["products"] == layer["products"]
        assert row["moved"] == sum(each["moved"] for each in layer["ddr_bytes"].values())
    assert len(stage["layers"]) >= len(made.perf["layers"]) > 5
    assert len(stage["trace"]) == made.perf["dma"]["commands"] + made.perf["compute"]["commands"]


def test_times_of_x86_are_measured_where_asked(made: Made, tmp_path: Path) -> None:
    def stage_of(*flags: object) -> dict:
        check(run_tool("tessera", "report", made.x86, "-o", tmp_path / "r.html", *flags))
        found = re.search(r'id="data">(.*?)</script>', (tmp_path / "r.html").read_text(), re.S)
        assert found
        return json.loads(found[1])[0]["stages"][0]

    assert stage_of()["time"] is None and all(layer["us"] is None for layer in stage_of()["layers"])
    stage = stage_of("--measure", 2)
    assert stage["time"]["how"] == "measured, mean of 2 runs, 1 thread" and stage["time"]["us"] > 0
    assert sum(layer["us"] for layer in stage["layers"]) == pytest.approx(stage["time"]["us"])
    assert run_tool("tessera", "report", made.x86, "--measure", -1).returncode == 2


def test_several_sizes_and_a_gpu(made: Made, tmp_path: Path) -> None:
    weight = numpy_helper.from_array(np.linspace(-1, 1, 16 * 3 * 9, dtype=np.float32).reshape(16, 3, 3, 3), "w")
    x, y = (
        helper.make_tensor_value_info(name, TensorProto.FLOAT, ["n", c, 32, 32]) for name, c in (("x", 3), ("y", 16))
    )
    nodes = [
        helper.make_node("Conv", ["x", "w"], ["c"], "conv", pads=[1, 1, 1, 1]),
        helper.make_node("Relu", ["c"], ["y"], "relu"),
    ]
    onnx.save(helper.make_model(helper.make_graph(nodes, "g", [x], [y], [weight])), tmp_path / "m.onnx")
    tops = [tmp_path / f"{batch}.mlir" for batch in (1, 3)]
    for batch, top in zip((1, 3), tops):
        words = ("--model_name", "m", "--model_def", tmp_path / "m.onnx", "--input_shapes", f"x={batch}x3x32x32")
        check(run_tool("model_transform", *words, "--mlir", top))
    made_files = []
    for chip in ("npu-base", "cuda-sm80"):
        singles = [tmp_path / f"{chip}{number}.bmodel" for number in range(2)]
        for top, single in zip(tops, singles):
            words = ("--mlir", top, "--chip", chip, "--quantize", "F16", "--model", single, "--skip_validation")
            check(run_tool("model_deploy", *words))
        made_files.append(tmp_path / f"{chip}.bmodel")
        check(run_tool("model_tool", "combine", *singles, "-o", made_files[-1]))
    check(run_tool("tessera", "report", *made_files, "-o", tmp_path / "r.html"))
    found = re.search(r'id="data">(.*?)</script>', (tmp_path / "r.html").read_text(), re.S)
    assert found
    for model, path in zip(json.loads(found[1]), made_files):
        assert len(model["stages"]) == 2
        for number, stage in enumerate(model["stages"]):
            perf = json.loads(
                check(run_tool("model_tool", "perf", f"{path.with_suffix('')}{number}.bmodel", "--json"))
            )["report"]
            assert stage["time"]["us"] == perf.get("total_microseconds", perf["microseconds"])
            assert stage["inputs"][0]["shape"][0] == (1, 3)[number]
            assert [layer["products"] for layer in stage["layers"]] == [layer["products"] for layer in perf["layers"]]


def test_asks_nobody(made: Made) -> None:
    text = made.page.read_text()
    assert "default-src 'none'" in text and made.page.stat().st_size < 1 << 20
    links = set(re.findall(r"https?://[^\s\"'<\\]+", text))
    assert links <= {"http://www.w3.org/2000/svg"}
    assert not re.search(r"<(?:link|img|iframe)\b|\bsrc=|\bfetch\(|@import", text)


def test_a_name_is_no_markup(made: Made, tmp_path: Path) -> None:
    evil = tmp_path / "</script><b>.bmodel".replace("/", "_")
    shutil.copy(made.x86, evil)
    check(run_tool("tessera", "report", evil, "-o", tmp_path / "r.html"))
    assert "<b>.bmodel" not in (tmp_path / "r.html").read_text()


@needs_browser
def test_a_browser_draws_all_tabs(made: Made, tmp_path: Path) -> None:
    dom, console = browse(made.page, tmp_path)
    assert not console
    drawn = Tables(dom)
    assert [f"tab-{name}" in drawn.ids and f"to-{name}" in drawn.ids for name in TABS] == [True] * len(TABS)
    rows = [row for row in drawn.rows["layers-table"] if row]
    layers = made.data[0]["stages"][0]["layers"]
    assert [(row[0][1], float(row[2][0]), int(row[5][1]), int(row[6][1])) for row in rows] == [
        (layer["name"], layer["us"], layer["products"], layer["moved"]) for layer in layers
    ]
    assert [row[2][1] for row in rows] == [f"{layer['us']:.2f}" for layer in layers]
    assert dom.count("<circle") > 3 and 'aria-label="timeline"' in dom and "local memory of a lane" in dom


def test_what_it_refuses(made: Made, tmp_path: Path) -> None:
    def failed(code: int, *words: object) -> None:
        result = run_tool("tessera", "report", *words, cwd=tmp_path)
        assert result.returncode == code and "fault in Tessera" not in result.stderr, result.stderr

    (tmp_path / "bad.json").write_text("{")
    failed(2, made.npu, "-o", "r.pdf")
    failed(1, tmp_path / "none.bmodel")
    failed(1, made.page)
    failed(1, made.npu, "--accuracy", "bad.json")
    failed(2, made.npu, "--accuracy", "bad.json,bad.json")
    assert [path.name for path in tmp_path.iterdir()] == ["bad.json"]


class Driver:
    """A window of Chromium, driven through the WebDriver protocol."""

    def __init__(self, width: int) -> None:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        self._process = subprocess.Popen([str(DRIVER), f"--port={port}"], stdout=subprocess.DEVNULL)
        self._url = f"http://127.0.0.1:{port}"
        for _ in range(100):
            with contextlib.suppress(OSError):
                urllib.request.urlopen(f"{self._url}/status", timeout=5)
                break
            time.sleep(0.1)
        flags = ["--headless=new", "--no-sandbox", "--disable-gpu"]
        size = {"deviceMetrics": {"width": width, "height": 900, "pixelRatio": 1}}
        options = {"binary": BROWSER, "args": flags, "mobileEmulation": size}
        wanted = {"goog:chromeOptions": options, "goog:loggingPrefs": {"browser": "ALL"}}
        self._url += f"/session/{self.ask('/session', capabilities={'alwaysMatch': wanted})['sessionId']}"

    def ask(self, path: str, **body: object) -> Any:
        request = urllib.request.Request(self._url + path, json.dumps(body).encode())
        with urllib.request.urlopen(request, timeout=60) as answer:
            return json.loads(answer.read())["value"]

    def script(self, text: str) -> Any:
        return self.ask("/execute/sync", script=f"return {text}", args=[])

    def key(self, key: str) -> None:
        down_up = [{"type": "keyDown", "value": key}, {"type": "keyUp", "value": key}]
        self.ask("/actions", actions=[{"type": "key", "id": "keys", "actions": down_up}])

    def close(self) -> None:
        with contextlib.suppress(OSError):
            urllib.request.urlopen(urllib.request.Request(self._url, method="DELETE"), timeout=20)
        self._process.terminate()
        self._process.wait(20)


RIGHT, TAB, ENTER = "\ue014", "\ue004", "\ue007"


@pytest.mark.skipif(not (BROWSER and DRIVER), reason="no chromedriver: apt-get install chromium-driver")
@pytest.mark.parametrize("width", [1280, 390])
def test_by_keys_wide_and_narrow(made: Made, width: int) -> None:
    window = Driver(width)
    try:
        window.ask("/url", url=f"file://{made.page}")
        assert window.script("performance.timing.domContentLoadedEventEnd - performance.timing.navigationStart") < 1000
        window.script("document.getElementById('to-Overview').focus()")
        for name in TABS:
            assert window.script("document.activeElement.id") == f"to-{name}"
            assert window.script("document.querySelector('section:not([hidden])').id") == f"tab-{name}"
            assert window.script("document.documentElement.scrollWidth - innerWidth") <= 0, name
            window.key(RIGHT)
        window.script("document.getElementById('to-Performance').click()")
        window.script("document.querySelector('#layers-table tbody tr:nth-child(2)').focus()")
        window.key(ENTER)
        layer = made.data[0]["stages"][0]["layers"][1]
        assert window.script("document.getElementById('picked').textContent").startswith(layer["name"])
        window.script("document.getElementById('to-Timeline').click()")
        assert window.script("document.querySelectorAll('#tab-Timeline .picked').length") > 0
        assert window.ask("/se/log", type="browser") == []
    finally:
        window.close()


def test_explain_tells_of_one_layer(made: Made) -> None:
    layer = made.perf["layers"][1]
    node = layer["name"].split("+")[0]
    said = check(run_tool("tessera", "explain", made.npu, node))
    assert layer["name"] in said and f"bound by {layer['bound']}" in said and f"# {layer['name']}" in said
    told = json.loads(check(run_tool("tessera", "explain", made.npu, node, "--json")))["layers"]
    assert [each["products"] for each in told] == [layer["products"]]
    assert len(told[0]["commands"]) == layer["dma"]["commands"] + layer["compute"]["commands"]
    assert "device.conv" in check(run_tool("tessera", "explain", made.x86, node))
    missing = run_tool("tessera", "explain", made.npu, node + "x")
    assert missing.returncode == 1 and "there are" in missing.stderr


def test_deploy_says_that_samples_are_few(made: Made, tmp_path: Path) -> None:
    case = next(case for case in all_cases() if case.name == "resnet8_cifar10")
    builder = Builder(tmp_path)
    table = builder.table(case, tmp_path)[0]
    deploy = ("model_deploy", "--mlir", builder.top(case), "--chip", "npu-base", "--quantize", "INT8", "--accept_loss")
    told = json.loads(
        check(run_tool(*deploy, "--calibration_table", table, "--model", tmp_path / "m.bmodel", "--json"))
    )
    assert "TA106" in [each["code"] for each in told["advice"]]
    page = ("tessera", "report", tmp_path / "m.bmodel", "-o", tmp_path / "r.html", "--calibration_table", table)
    assert "TA106" in check(run_tool(*page))
