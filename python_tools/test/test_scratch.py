# SPDX-License-Identifier: Apache-2.0
"""Tests that temporary folders of running processes are kept and those of dead processes are removed, and that the
outputs of a command appear together or not at all."""
from __future__ import annotations

import multiprocessing
import os
import signal
from pathlib import Path

import pytest

from tessera import scratch
from tessera.errors import TesseraError
from tessera.outputs import Outputs
from tessera.scratch import remove_abandoned, scratch_folder, without_scratch


def abandon(folder: Path) -> Path:
    """Returns the temporary folder that a process leaves in `folder` if it is killed while it works there."""
    child = os.fork()
    if child == 0:
        with scratch_folder(folder) as path:
            (path / "half.bin").write_bytes(b"half")
            os.kill(os.getpid(), signal.SIGKILL)
    os.waitpid(child, 0)
    (left,) = folder.glob(".tessera-*")
    return left


def test_of_the_dead(tmp_path: Path) -> None:
    left = abandon(tmp_path)
    assert (left / "half.bin").exists()
    with scratch_folder(tmp_path) as path:
        assert not left.exists() and path.is_dir()
    assert list(tmp_path.iterdir()) == []


def test_of_the_living_and_of_others(tmp_path: Path) -> None:
    for name in (
        ".tessera-notebook",
        ".tessera-12345678",
        "tessera-projects",
        ".tessera-x",
        "tessera-reproducer-abcdefgh",
    ):
        (tmp_path / name).mkdir()
        (tmp_path / name / "mine").write_text("work")
    (tmp_path / ".tessera-linked00").symlink_to(tmp_path / ".tessera-notebook")
    before = sorted(tmp_path.rglob("*"))
    with scratch_folder(tmp_path) as path:
        remove_abandoned(tmp_path)
        assert path.is_dir()
    assert sorted(tmp_path.rglob("*")) == before


def use(folder: Path, count: int) -> None:
    """Creates, uses and removes folders, and removes seemingly abandoned ones, continuously."""
    for _ in range(count):
        scratch._cleaned.clear()
        with scratch_folder(folder) as path:
            (path / "x").write_text(str(os.getpid()))
            remove_abandoned(folder)
            assert (path / "x").read_text() == str(os.getpid())


def test_many_at_once(tmp_path: Path) -> None:
    """No process takes a folder of another one, not even in the moment between creating and locking it."""
    context = multiprocessing.get_context("fork")
    workers = [context.Process(target=use, args=(tmp_path, 150)) for _ in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(120)
    assert [worker.exitcode for worker in workers] == [0, 0, 0, 0]
    assert list(tmp_path.iterdir()) == []


def test_messages_name_the_users_file() -> None:
    text = "failed to write '/home/a b/.tessera-ab12_xyz/.tessera-00000000/m.bmodel': full"
    assert without_scratch(text) == "failed to write '/home/a b/m.bmodel': full"
    assert without_scratch("/x/.tessera-notebooks/m") == "/x/.tessera-notebooks/m"


def test_outputs_appear_together(tmp_path: Path) -> None:
    with Outputs() as outputs:
        outputs.path(tmp_path / "a").write_text("a")
        (outputs.folder(tmp_path / "new" / "report") / "r.csv").write_text("r")
        outputs.path(tmp_path / "never written")
        (tmp_path / "old").write_text("old")
        outputs.remove(tmp_path / "old")
        assert not (tmp_path / "a").exists() and not (tmp_path / "new" / "report" / "r.csv").exists()
        outputs.publish()
    assert sorted(str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*") if path.is_file()) == [
        "a",
        "new/report/r.csv",
    ]
    assert not list(tmp_path.rglob(".tessera-*"))


def test_outputs_that_nobody_publishes(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("before")
    with Outputs() as outputs:
        outputs.path(tmp_path / "a").write_text("after")
    assert (tmp_path / "a").read_text() == "before" and os.listdir(tmp_path) == ["a"]


def test_outputs_that_cannot_be(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "file").write_text("x")
    with Outputs() as outputs:
        with pytest.raises(TesseraError, match="it is a folder"):
            outputs.path(tmp_path / "folder")
        for taken in (tmp_path / "file", tmp_path / "file" / "below"):
            with pytest.raises(TesseraError, match="failed to write .*file"):
                outputs.folder(taken)
        with pytest.raises(TesseraError, match="failed to write .*file"):
            outputs.path(tmp_path / "file" / "a")


def test_a_file_of_others_keeps_its_contents(tmp_path: Path) -> None:
    for text in ("first", "second", "second"):
        with Outputs() as outputs:
            outputs.path(tmp_path / "t.json").write_text(text)
            warning = outputs.keep_other(tmp_path / "t.json")
            outputs.publish()
    assert warning == "" and sorted(os.listdir(tmp_path)) == ["t.json", "t.json.1"]
    assert (tmp_path / "t.json.1").read_text() == "first"
