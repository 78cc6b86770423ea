# SPDX-License-Identifier: Apache-2.0
"""Fixtures of the end-to-end tests: commands of this build, and models that are compiled once and shared."""
from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from collections import Counter
from pathlib import Path
from typing import Any, Callable, Iterator

import numpy as np
import pytest

from tessera.files import save_npz

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from case_file import Case, DataMissing, data_path  # noqa: E402
from fork_server import MODULES, ForkServer  # noqa: E402
from made_once import BUILD, made_once  # noqa: E402

# A job that a shell starts in the background ignores Ctrl-C, and so would all commands that tests run.
signal.signal(signal.SIGINT, signal.default_int_handler)

Run = Callable[..., "subprocess.CompletedProcess[str]"]


# Two servers run the commands, in turn for each command. They have different hash seeds, so code that depends on the
# order of a set gives different results in consecutive runs.
_servers: list[ForkServer] = []
_runs: Counter[str] = Counter()


def run_tool(
    name: str, *arguments: object, cwd: Path | None = None, timeout: int = 600, **more: object
) -> subprocess.CompletedProcess[str]:
    """Runs a command of build/bin as a user would; see fork_server.py."""
    if (
        name in MODULES
        and not more
        and "TESSERA_TEST_EXEC" not in os.environ
        and threading.current_thread() is threading.main_thread()
    ):
        if not _servers:
            _servers.extend(ForkServer(BUILD / "bin" / "tessera-python") for _ in range(2))
        _runs[name] += 1
        server = _servers[_runs[name] % 2]
        if server.suits():
            return server.run(name, [str(word) for word in arguments], str(cwd or os.getcwd()), timeout)
    return subprocess.run(
        [str(BUILD / "bin" / name), *map(str, arguments)],
        cwd=cwd,
        text=True,
        errors="replace",
        capture_output=True,
        timeout=timeout,
        **more,
    )  # type: ignore[call-overload]


def check(result: subprocess.CompletedProcess[str]) -> str:
    """Checks that a run succeeded. Returns its output."""
    assert result.returncode == 0, f"exit code {result.returncode}\n{result.stdout[-3000:]}\n{result.stderr[-3000:]}"
    return result.stdout


class Builder:
    """Transforms and deploys cases, each once in a build."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._done: dict[object, Path] = {}

    def top(self, case: Case) -> Path:
        """Returns the case's NAME_top.mlir."""
        if case.name not in self._done:
            folder, model, mlir = self._folder / case.name, data_path(case.model), f"{case.name}_top.mlir"
            folder.mkdir()
            flags = list(case.transform) + (["--input_shapes", case.input_shapes] if case.input_shapes else [])
            flags += [] if case.validate else ["--not_inference"]
            made_once(
                folder,
                [model, Path(__file__)],
                ["top", case.name, *flags],
                lambda out: check(
                    run_tool(
                        "model_transform",
                        "--model_name",
                        case.name,
                        "--model_def",
                        model,
                        "--mlir",
                        mlir,
                        *flags,
                        cwd=out,
                    )
                ),
            )
            self._done[case.name] = folder / mlir
        return self._done[case.name]

    def bmodel(self, case: Case, isa: str) -> Path:
        """Compiles the case for one instruction set, at most once."""
        key = (case.name, isa)
        if key not in self._done:
            mlir = self.top(case)
            output = mlir.with_name(f"{case.name}_{isa}.bmodel")
            flags = ["--chip", isa, "--quantize", "F32", *([] if case.validate else ["--skip_validation"])]
            made_once(
                mlir.parent,
                [data_path(case.model), Path(__file__)],
                ["bmodel", case, *flags],
                lambda out: check(
                    run_tool("model_deploy", "--mlir", mlir, "--model", out / output.name, *flags, cwd=out)
                ),
            )
            self._done[key] = output
        return self._done[key]

    def table(self, case: Case, folder: Path) -> tuple[Path, list[dict]]:
        """Calibrates the case on noise, in `folder`. Returns the table and the input specs. Weights are
        rounded to nearest: learning them from samples takes long, and tests do not need it."""
        top = self.top(case)
        made_once(folder, [data_path(case.model), Path(__file__)], ["table", case], lambda out: calibrate(top, out))
        return folder / "table.json", json.loads((folder / "inputs.json").read_text())


def inputs_of(top: Path) -> list[dict]:
    """Returns the name, shape and dtype of each input of a Top module."""
    return json.loads(check(run_tool("tessera-compile", "info", "--mlir", top)).splitlines()[-1])["inputs"]


def samples(specs: list[dict], seed: int) -> dict[str, np.ndarray]:
    """Returns random values for the inputs."""
    generator = np.random.default_rng(seed)
    return {
        spec["name"]: (generator.standard_normal(spec["shape"]) * 0.7).astype(np.float32)
        if spec["dtype"].startswith("float")
        else generator.integers(0, 2, spec["shape"]).astype(spec["dtype"])
        for spec in specs
    }


def calibrate(top: Path, folder: Path, *flags: object) -> tuple[Path, list[dict]]:
    """Calibrates with two samples of noise. Writes table.json, inputs.json and data/{0,1}.npz into `folder`; returns
    the path of the table and the input specs."""
    specs = inputs_of(top)
    (folder / "inputs.json").write_text(json.dumps(specs))
    (folder / "data").mkdir()
    for seed in range(2):
        save_npz(folder / "data" / f"{seed}.npz", samples(specs, seed))
    check(
        run_tool(
            "run_calibration",
            top,
            "--dataset",
            folder / "data",
            "--cali_method",
            "max",
            "-o",
            folder / "table.json",
            "--workers",
            "1",
            *(flags or ("--methods", "none")),
        )
    )  # more take longer to start than two samples take
    return folder / "table.json", specs


@pytest.fixture(scope="session")
def builder(tmp_path_factory: pytest.TempPathFactory) -> Builder:
    return Builder(tmp_path_factory.mktemp("models"))


@pytest.fixture
def need() -> Callable[[str], Path]:
    """Returns a function: need("data:…") returns the path of the file, or skips the test and names the missing file."""

    def path(text: str) -> Path:
        try:
            return data_path(text)
        except DataMissing as missing:
            pytest.skip(str(missing))

    return path


def _skip_without_data(outcome: Any) -> None:
    try:
        outcome.get_result()
    except DataMissing as missing:
        pytest.skip(str(missing))


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_setup() -> Iterator[None]:
    """Skips a test that needs files which this machine does not have, wherever the test requests them."""
    _skip_without_data((yield))


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_call() -> Iterator[None]:
    _skip_without_data((yield))
