# SPDX-License-Identifier: Apache-2.0
"""Tests tessera report: the page has the same numbers as model_tool, needs no network, and a browser draws it."""
from __future__ import annotations

import json
import re
import shutil
import subprocess
import time
from decimal import ROUND_HALF_UP, Decimal
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import onnx
import pytest
from browser import BROWSER, ENTER, RIGHT, Driver, needs_browser, needs_driver
from case_file import all_cases
from conftest import Builder, check, run_tool
from onnx import TensorProto, helper, numpy_helper
from tessera.report.gather import accuracy, verdict
from tessera.report.page import page

TABS = ["Overview", "Graph", "Accuracy", "Partition", "Performance", "Timeline", "Memory", "Advice", "Comparison"]


def fixed(value: float | None, digits: int) -> str:
    """Formats a number like the page: a tie is rounded up, where Python takes the even digit."""
    if value is None:
        return "–"
    return str(Decimal(value).quantize(Decimal(10) ** -digits, ROUND_HALF_UP))


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
def result(tmp_path_factory: pytest.TempPathFactory) -> Made:
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
    """Returns the DOM with all tabs drawn, and the messages of the console."""
    command = [str(BROWSER), "--headless=new", "--no-sandbox", "--disable-gpu", f"--user-data-dir={folder}"]
    command += ["--enable-logging=stderr", "--virtual-time-budget=4000", "--dump-dom", f"file://{page}?all"]
    result = subprocess.run(command, capture_output=True, text=True, timeout=120)
    return result.stdout, "\n".join(line for line in result.stderr.splitlines() if "CONSOLE" in line)


def test_numbers_are_those_of_the_tools(result: Made) -> None:
    info, stage = result.data[0], result.data[0]["stages"][0]
    assert stage["perf"] == result.perf
    assert info["bytes"] == result.npu.stat().st_size
    micro = result.perf["microseconds"] / result.perf["cycles"]
    for layer, row in zip(result.perf["layers"], stage["layers"]):
        assert row["us"] == layer["cycles"] * micro and row["products"] == layer["products"]
        assert row["moved"] == sum(each["moved"] for each in layer["ddr_bytes"].values())
    assert len(stage["layers"]) >= len(result.perf["layers"]) > 5
    assert len(stage["trace"]) == result.perf["dma"]["commands"] + result.perf["compute"]["commands"]


def test_times_of_x86_are_measured_where_asked(result: Made, tmp_path: Path) -> None:
    def stage_of(*flags: object) -> dict:
        check(run_tool("tessera", "report", result.x86, "-o", tmp_path / "r.html", *flags))
        found = re.search(r'id="data">(.*?)</script>', (tmp_path / "r.html").read_text(), re.S)
        assert found
        return json.loads(found[1])[0]["stages"][0]

    assert stage_of()["time"] is None and all(layer["us"] is None for layer in stage_of()["layers"])
    stage = stage_of("--measure", 2)
    assert stage["time"]["how"] == "measured, median of 2 runs, 1 thread" and stage["time"]["us"] > 0
    assert sum(layer["us"] for layer in stage["layers"]) == pytest.approx(stage["time"]["us"])
    assert run_tool("tessera", "report", result.x86, "--measure", -1).returncode == 2


def test_several_sizes_and_a_gpu(result: Made, tmp_path: Path) -> None:
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


@needs_driver
def test_sizes_and_chips_of_a_file_are_gone_through(result: Made, tmp_path: Path) -> None:
    """Every shape and chip of a file is shown: by Overview, by Advice, and side by side."""
    other = tmp_path / "other.bmodel"
    case = next(case for case in all_cases() if case.name == "resnet8_cifar10")
    words = ("--mlir", Builder(tmp_path).top(case), "--chip", "npu-pro", "--quantize", "F16", "--skip_validation")
    check(run_tool("model_deploy", *words, "--model", other))
    check(run_tool("model_tool", "combine", result.npu, result.x86, other, "-o", tmp_path / "all.bmodel"))
    check(run_tool("tessera", "report", tmp_path / "all.bmodel", "-o", tmp_path / "r.html"))
    found = re.search(r'id="data">(.*?)</script>', (tmp_path / "r.html").read_text(), re.S)
    assert found
    model = json.loads(found[1])[0]
    assert {each["stage"] for each in model["advice"]} == {0, 2}
    window = Driver(1280)
    try:
        window.ask("/url", url=f"file://{tmp_path / 'r.html'}")
        titles = [f"1x3x32x32, {chip}" for chip in ("npu-base", "x86-avx2", "npu-pro")]
        options = "[...document.querySelectorAll('#choice option')].map(each => each.textContent)"
        assert window.script(options) == titles
        rows = "[...document.querySelectorAll('#sizes-table tbody tr')].map(row => row.innerText.split('\\t'))"
        times = [stage["time"]["us"] if stage["time"] else None for stage in model["stages"]]
        assert [(row[0], row[2]) for row in window.script(rows)] == [
            (title, fixed(time, 1)) for title, time in zip(titles, times)
        ]
        window.script("document.querySelector('#sizes-table tbody tr:nth-child(2) button').click()")
        assert window.script("document.querySelector('#choice select').value") == "1"
        assert window.script("document.querySelector('#sizes-table [aria-pressed=true]').textContent") == titles[1]
        window.script("document.getElementById('to-Advice').click()")
        texts = window.script("[...document.querySelectorAll('.advice')].map(each => each.innerText)")
        assert len(texts) == len(model["advice"])
        for text, each in zip(texts, model["advice"]):
            assert each["page"] in text and f"({titles[each['stage']]})" in text
            assert f"{fixed(100 * each['microseconds'] / times[each['stage']], 1)} % of a run" in text
        last = next(at for at, each in enumerate(model["advice"]) if each["stage"] == 2 and each["layer"])
        window.script(f"document.querySelectorAll('.advice')[{last}].click()")
        assert window.script("document.querySelector('#choice select').value") == "2"
        assert window.script("document.getElementById('picked').textContent").startswith(model["advice"][last]["layer"])
        window.script("document.getElementById('to-Comparison').click()")
        totals = window.script("document.querySelector('#compared-totals tbody tr').innerText.split('\\t')")
        assert totals == ["time, us", *(fixed(time, 2) for time in times)]
        assert window.ask("/se/log", type="browser") == []
    finally:
        window.close()


def test_verdict_and_own_errors_are_those_of_the_comparison(tmp_path: Path) -> None:
    def row(name: str, passed: bool) -> dict:
        return {"name": name, "passed": passed, "excuse": "", "rel_l2": 0.5, "own_rel_l2": 0.25}

    info = {"exit_code": 0, "comparison": {"tensors": [row("a", True), row("b", False)]}}
    assert [each["own"] for each in accuracy(info)] == [{"rel_l2": 0.25}] * 2
    assert verdict(info) == "1 of 2 tensors outside"  # accepted, but not right
    assert verdict({**info, "exit_code": 3}) == "wrong: exit code 3" and verdict({}) == "not checked"
    info["comparison"]["tensors"].pop()
    assert verdict(info) == "right"


def test_asks_nobody(result: Made) -> None:
    text = result.page.read_text()
    assert "default-src 'none'" in text and result.page.stat().st_size < 1 << 20
    links = set(re.findall(r"https?://[^\s\"'<\\]+", text))
    assert links <= {"http://www.w3.org/2000/svg"}
    assert not re.search(r"<(?:link|img|iframe)\b|\bsrc=|\bfetch\(|@import", text)


def test_a_name_is_no_markup(result: Made, tmp_path: Path) -> None:
    evil = tmp_path / "</script><b>.bmodel".replace("/", "_")
    shutil.copy(result.x86, evil)
    check(run_tool("tessera", "report", evil, "-o", tmp_path / "r.html"))
    assert "<b>.bmodel" not in (tmp_path / "r.html").read_text()


@needs_browser
def test_a_browser_draws_all_tabs(result: Made, tmp_path: Path) -> None:
    dom, console = browse(result.page, tmp_path)
    assert not console
    drawn = Tables(dom)
    assert [f"tab-{name}" in drawn.ids and f"to-{name}" in drawn.ids for name in TABS] == [True] * len(TABS)
    rows = [row for row in drawn.rows["layers-table"] if row]
    layers = result.data[0]["stages"][0]["layers"]
    assert [(row[0][1], float(row[2][0]), int(row[5][1]), int(row[6][1])) for row in rows] == [
        (layer["name"], layer["us"], layer["products"], layer["moved"]) for layer in layers
    ]
    assert [row[2][1] for row in rows] == [fixed(layer["us"], 2) for layer in layers]
    held = [row for row in drawn.rows["memory-table"] if row]
    memory = result.data[0]["stages"][0]["memory"]["local"]["rectangles"]
    assert {int(row[2][0]) for row in held} == {
        max(high - low for number, _, _, low, high in memory if number == layer)
        for layer in {each[0] for each in memory}
    }
    assert dom.count("<circle") > 3 and 'aria-label="timeline"' in dom and "Local memory per lane" in dom


@needs_browser
def test_times_are_not_mixed_nor_left_out(result: Made, tmp_path: Path) -> None:
    """The timeline states the host's time, and an estimate is never subtracted from a measurement."""
    data = json.loads(json.dumps(result.data))
    own = data[0]["stages"][0]["perf"]["microseconds"]
    data[0]["stages"][0]["perf"]["host"] = {"microseconds": 3 * own, "hand_over_microseconds": own}
    data[1]["stages"][0]["time"] = {"how": "measured, median of 2 runs", "us": 5.0, "shares": {}}
    for layer in data[1]["stages"][0]["layers"]:
        layer["us"] = 1.0
    text = re.sub(
        r'(id="data">)(.*?)(</script>)', lambda m: m[1] + json.dumps(data) + m[3], result.page.read_text(), flags=re.S
    )
    (tmp_path / "r.html").write_text(text)
    dom, console = browse(tmp_path / "r.html", tmp_path / "browser")
    assert not console and "80 % of a run; they are not drawn" in dom
    rows = [row for row in Tables(dom).rows["compared-table"] if row]
    assert rows and all(row[-1][1] == "–" for row in rows) and "not comparable" in dom


def test_what_it_rejects(result: Made, tmp_path: Path) -> None:
    def failed(code: int, *words: object) -> None:
        result = run_tool("tessera", "report", *words, cwd=tmp_path)
        assert result.returncode == code and "fault in Tessera" not in result.stderr, result.stderr

    (tmp_path / "bad.json").write_text("{")
    failed(2, result.npu, "-o", "r.pdf")
    failed(1, tmp_path / "none.bmodel")
    failed(1, result.page)
    failed(1, result.npu, "--accuracy", "bad.json")
    failed(2, result.npu, "--accuracy", "bad.json,bad.json")
    assert [path.name for path in tmp_path.iterdir()] == ["bad.json"]


@needs_driver
@pytest.mark.parametrize("width, dark", [(1280, False), (390, True)])
def test_by_keys_wide_and_narrow(result: Made, width: int, dark: bool) -> None:
    window = Driver(width, dark)
    try:
        window.ask("/url", url=f"file://{result.page}")
        assert window.script("performance.timing.domContentLoadedEventEnd - performance.timing.navigationStart") < 1000
        assert window.script("performance.getEntriesByType('resource').length") == 0
        paper = window.script("getComputedStyle(document.body).backgroundColor")
        assert paper == ("rgb(21, 24, 28)" if dark else "rgb(255, 255, 255)")
        window.script("document.getElementById('to-Overview').focus()")
        for name in TABS:
            assert window.script("document.activeElement.id") == f"to-{name}"
            assert window.script("document.querySelector('section:not([hidden])').id") == f"tab-{name}"
            assert window.script("document.documentElement.scrollWidth - innerWidth") <= 0, name
            window.key(RIGHT)
        window.script("document.getElementById('to-Performance').click()")
        window.script("document.querySelector('#layers-table tbody tr:nth-child(2)').focus()")
        window.key(ENTER)
        layer = result.data[0]["stages"][0]["layers"][1]
        assert window.script("document.getElementById('picked').textContent").startswith(layer["name"])
        for name in ("Graph", "Timeline", "Memory"):  # a selected layer is marked in each tab
            window.script(f"document.getElementById('to-{name}').click()")
            time.sleep(0.2)
            marked = window.script(f"document.querySelectorAll('#tab-{name} svg .picked').length")
            assert marked > 0, name
        assert window.ask("/se/log", type="browser") == []
    finally:
        window.close()


def test_edges_are_those_of_the_network(result: Made) -> None:
    """In a residual network, each block's sum reads the block before it. Edges are found from the bytes that commands
    access."""
    for info in result.data:
        stage = info["stages"][0]
        layers, edges = stage["layers"], stage["edges"]
        assert len({tuple(edge) for edge in edges}) == len(edges) and all(a != b for a, b in edges)
        readers = [sum(edge[0] == row for edge in edges) for row in range(len(layers))]
        sources = [sum(edge[1] == row for edge in edges) for row in range(len(layers))]
        assert sources.count(2) >= 3, "three sums"  # one in each of the three blocks
        assert sorted(readers)[0] == 0 and readers.count(0) == 1, "one layer makes the output"
        assert sources.count(0) == 1, "one layer reads the input"


def network(count: int) -> list[dict]:
    """Returns the report data of a network with `count` layers."""
    layers = [
        {"name": f"layer_{i}", "nodes": [f"layer_{i}"], "on": "x86", "top": "", "op": "device.conv", "us": i % 7 + 0.5,
         "bound": "", "mac_utilisation": None, "products": 10, "moved": 100, "least": None}
        for i in range(count)
    ]  # fmt: skip
    edges = [[i, i + 1] for i in range(count - 1)] + [[i, i + 5] for i in range(0, count - 5, 5)]
    stage = {"name": "", "edges": edges, "chip": "x86", "constants": {}, "results": {}, "inputs": [], "outputs": [],
             "workspaces": [], "subnets": [], "layers": layers, "time": None, "perf": None}  # fmt: skip
    return [{"file": "m.bmodel", "bytes": 1, "sha256": "", "name": "m", "producer": "", "schema_hash": "",
             "properties": [], "chips": [], "stages": [stage], "accuracy": [], "verdict": "", "partition": {},
             "advice": []}]  # fmt: skip


@needs_driver
def test_two_thousand_layers_are_smooth(tmp_path: Path) -> None:
    (tmp_path / "r.html").write_text(page(network(2000)))
    window = Driver(1280)
    try:
        window.ask("/url", url=f"file://{tmp_path / 'r.html'}#Graph")
        assert window.script("performance.timing.domContentLoadedEventEnd - performance.timing.navigationStart") < 2000
        window.script("document.querySelector('[aria-label=\"whole graph\"]').click()")
        time.sleep(0.3)
        drawn = "document.querySelectorAll('svg.graph path, svg.graph rect').length"
        assert window.script(drawn) < 50  # the whole network, with few shapes
        window.script("document.querySelector('svg.graph').focus()")
        for _ in range(3):
            window.key("\ue015")  # down
        time.sleep(0.3)
        assert window.script("document.querySelector('svg.graph .picked title').textContent").startswith("layer_2")
        assert window.script(drawn) < 200  # only the visible part
        spent = window.script("(() => { const view = followers.view; const begin = performance.now(); "
                              "for (let i = 0; i < 20; ++i) { view.left += 3; view.paint(); } "
                              "return (performance.now() - begin) / 20; })()")  # fmt: skip
        assert spent < 50, f"{spent} ms a picture"
        assert window.ask("/se/log", type="browser") == []
    finally:
        window.close()


@needs_browser
def test_accuracy_shows_channels_and_ranges(tmp_path: Path) -> None:
    """The accuracy tab of an INT8 model on x86 shows the numbers from the outputs of model_deploy and
    run_calibration."""
    case = next(case for case in all_cases() if case.name == "resnet8_cifar10")
    builder = Builder(tmp_path)
    top = builder.top(case)
    builder.table(case, tmp_path)
    words = ("--dataset", tmp_path / "data", "--input_num", 2, "--methods", "none", "--cali_method", "mse")
    check(run_tool("run_calibration", top, *words, "--histograms", tmp_path / "h.json", "-o", tmp_path / "c.json"))
    deploy = ("--mlir", top, "--chip", "x86", "--quantize", "INT8", "--calibration_table", tmp_path / "c.json")
    info = check(run_tool("model_deploy", *deploy, "--model", tmp_path / "m.bmodel", "--compare_all", "--accept_loss",
                          "--json"))  # fmt: skip
    (tmp_path / "deploy.json").write_text(info)
    words = ("--accuracy", "deploy.json", "--histograms", "h.json", "--calibration_table", "c.json", "-o", "r.html")
    check(run_tool("tessera", "report", "m.bmodel", *words, cwd=tmp_path))
    dom, console = browse(tmp_path / "r.html", tmp_path / "browser")
    assert not console
    rows = {row["name"]: row for row in json.loads(info)["comparison"]["tensors"]}
    drawn = Tables(dom)
    table = [row for row in drawn.rows["accuracy-table"] if row]
    assert {row[1][1] for row in table} == rows.keys()
    for row in table:
        assert float(row[2][0]) == rows[row[1][1]]["cosine"] and float(row[3][0]) == rows[row[1][1]]["rel_l2"]
    whole = dom[dom.index('id="accuracy-table"') :]
    bars = [row for row in re.findall(r"<tr.*?</tr>", whole[: whole.index("</table>")], re.S) if "hsl(" in row]
    assert len(bars) == len(table)
    for row in bars:  # rows outside their tolerance are red, however long the bar is
        assert ("hsl(0 " in row) == (">outside<" in row), row
    channels = [row for row in drawn.rows["channels-table"] if row]
    worst = sorted((-error for row in rows.values() for _, error in row["worst_channels"]))
    assert [-float(row[2][0]) for row in channels] == worst[:40] and len(channels) > 5
    seen = json.loads((tmp_path / "h.json").read_text())["tensors"]
    ranges = [row for row in drawn.rows["ranges-table"] if row]
    assert {row[1][0]: (float(row[2][0]), float(row[3][0])) for row in ranges} == {
        method: (found["low"], found["high"]) for method, found in seen[0]["ranges"].items()
    }
    for entry in seen:
        assert sum(entry["counts"]) == pytest.approx(entry["values"], rel=1e-3) and len(entry["ranges"]) == 5
        assert entry["chosen_range"] == [entry["ranges"]["mse"][key] for key in ("low", "high")]
    bad = run_tool("tessera", "report", "m.bmodel", "--histograms", "deploy.json", cwd=tmp_path)
    assert bad.returncode == 1 and "was not written by run_calibration --histograms" in bad.stderr


def test_model_explorer_gets_the_graph(result: Made, tmp_path: Path) -> None:
    words = (
        "tessera",
        "report",
        result.npu,
        result.x86,
        "-o",
        tmp_path / "r.html",
        "--model_explorer",
        tmp_path / "me",
    )
    check(run_tool(*words))
    assert {path.name for path in (tmp_path / "me").iterdir()} == {
        f"{name}{end}.json" for name in ("npu", "x86") for end in ("", "_time", "_traffic", "_products")
    }
    for info, name in zip(result.data, ("npu", "x86")):
        stage, collection = info["stages"][0], json.loads((tmp_path / "me" / f"{name}.json").read_text())
        assert collection["label"] == name
        (graph,) = collection["graphs"]
        nodes = {node["id"]: node for node in graph["nodes"]}
        assert [node["label"] for node in graph["nodes"]] == [layer["name"] for layer in stage["layers"]]
        edges = {(edge["sourceNodeId"], id) for id, node in nodes.items() for edge in node["incomingEdges"]}
        assert edges == {(str(source), str(target)) for source, target in stage["edges"]}
        assert all(isinstance(each["value"], str) for node in nodes.values() for each in node["attrs"])
        for ending, key in (("time", "us"), ("traffic", "moved"), ("products", "products")):
            data = json.loads((tmp_path / "me" / f"{name}_{ending}.json").read_text())[graph["id"]]
            assert {node: each["value"] for node, each in data["results"].items()} == {
                str(row): layer[key] for row, layer in enumerate(stage["layers"]) if layer[key] is not None
            }
            assert data["results"].keys() <= nodes.keys() and [each["stop"] for each in data["gradient"]] == [0, 1]


def test_explain_tells_of_one_layer(result: Made) -> None:
    layer = result.perf["layers"][1]
    node = layer["name"].split("+")[0]
    said = check(run_tool("tessera", "explain", result.npu, node))
    assert layer["name"] in said and f"bound by {layer['bound']}" in said and f"# {layer['name']}" in said
    info = json.loads(check(run_tool("tessera", "explain", result.npu, node, "--json")))["layers"]
    assert [each["products"] for each in info] == [layer["products"]]
    assert len(info[0]["commands"]) == layer["dma"]["commands"] + layer["compute"]["commands"]
    assert "device.conv" in check(run_tool("tessera", "explain", result.x86, node))
    missing = run_tool("tessera", "explain", result.npu, node + "x")
    assert missing.returncode == 1 and "similar names" in missing.stderr


def test_deploy_says_that_samples_are_few(result: Made, tmp_path: Path) -> None:
    case = next(case for case in all_cases() if case.name == "resnet8_cifar10")
    builder = Builder(tmp_path)
    table = builder.table(case, tmp_path)[0]
    deploy = ("model_deploy", "--mlir", builder.top(case), "--chip", "npu-base", "--quantize", "INT8", "--accept_loss")
    info = json.loads(
        check(run_tool(*deploy, "--calibration_table", table, "--model", tmp_path / "m.bmodel", "--json"))
    )
    assert "TA106" in [each["code"] for each in info["advice"]]
    page = ("tessera", "report", tmp_path / "m.bmodel", "-o", tmp_path / "r.html", "--calibration_table", table)
    assert "TA106" in check(run_tool(*page))
