# SPDX-License-Identifier: Apache-2.0
"""Tests how the end of the compiler process becomes a result, an error or a reproducer. A script replaces the
compiler."""
from __future__ import annotations

import io
import os
import signal
import stat
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tessera import compile_driver
from tessera.errors import ExitCode, TesseraError
from tessera.files import scratch_folder
from tessera.progress import Report


@pytest.fixture
def compiler(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Returns a function: compiler("shell text") makes the next runs execute this script instead of the compiler."""

    def install(text: str) -> None:
        path = tmp_path / "fake-compile"
        path.write_text(f"#!/bin/sh\n{text}\n")
        path.chmod(path.stat().st_mode | stat.S_IXUSR)
        monkeypatch.setattr(compile_driver, "find_program", lambda name: str(path))

    return install


def run(tmp_path: Path, **more):
    report = Report(1, io.StringIO())
    return (
        compile_driver.run_compile(
            ["import", "--output", str(tmp_path / "o")], report, reproducer_beside=tmp_path, **more
        ),
        report,
    )


def test_result_and_warnings(compiler, tmp_path: Path) -> None:
    compiler("""echo '{"event":"warning","message":"odd"}'; echo 'not json'; echo '{"event":"result","ops":3}'""")
    result, report = run(tmp_path)
    assert result["ops"] == 3 and report.warnings == ["odd"]


def test_flags_are_told_as_users_type_them(compiler, tmp_path: Path) -> None:
    compiler(
        'echo \'{"event":"error","message":"--chip-set lanes=0: one-by-one",'
        '"hint":"give --input-shapes, or cut with --outputs; not a--b-c"}\'; exit 2'
    )
    with pytest.raises(TesseraError) as caught:
        run(tmp_path)
    assert caught.value.message == "--chip_set lanes=0: one-by-one"
    assert caught.value.hint == "give --input_shapes, or cut with --output_names; not a--b-c"


@pytest.mark.parametrize("code", [1, 2, 4])
def test_known_code_carries_the_message(compiler, tmp_path: Path, code: int) -> None:
    compiler(f"""echo '{{"event":"error","code":{code},"message":"bad conv","hint":"mend it"}}'; exit {code}""")
    with pytest.raises(TesseraError, match="bad conv") as caught:
        run(tmp_path)
    assert caught.value.code == code and caught.value.hint == "mend it"
    assert not list(tmp_path.glob("tessera-reproducer*"))


@pytest.mark.parametrize("end", ["kill -SEGV $$", "kill -ABRT $$", "exit 70", "exit 17", "exit 1"])
def test_crash_saves_a_reproducer(compiler, tmp_path: Path, end: str) -> None:
    model = tmp_path / "m.onnx"
    model.write_bytes(b"model")
    compiler(f"[ '{end}' = 'exit 1' ] || echo 'stack trace' >&2; {end}")
    with pytest.raises(TesseraError, match="fault in Tessera") as caught:
        run(tmp_path, inputs=[model])
    assert caught.value.code == ExitCode.INTERNAL and "stack trace" not in caught.value.message
    folder = next(tmp_path.glob("tessera-reproducer*"))
    assert str(folder) in caught.value.hint
    assert (folder / "m.onnx").read_bytes() == b"model" and "import" in (folder / "command.sh").read_text()
    assert end == "exit 1" or "stack trace" in (folder / "stderr.txt").read_text()


def test_an_internal_error_is_shown_and_saved(compiler, tmp_path: Path) -> None:
    """The message of an internal error reaches the user, and the reproducer contains all files that its command
    names."""
    message = "internal error: command 7 (map): operand a begins in another lane than the result"
    compiler(f"""echo '{{"event":"error","code":70,"message":"{message}"}}'; exit 70""")
    (tmp_path / "a").mkdir()
    table, weights, other = tmp_path / "m_cali.json", tmp_path / "m_cali.safetensors", tmp_path / "a" / "m_cali.json"
    for file in (table, weights, other):
        file.write_text(str(file))
    with pytest.raises(TesseraError, match="fault in Tessera") as caught:
        compile_driver.run_compile(
            [
                "deploy",
                "--calibration-table",
                str(table),
                "--quantize-table",
                str(other),
                "--output",
                str(table.with_suffix(".bmodel")),
            ],
            Report(1, io.StringIO()),
            reproducer_beside=tmp_path,
        )
    assert caught.value.details == [message]
    folder = next(tmp_path.glob("tessera-reproducer*"))
    assert message in (folder / "stderr.txt").read_text()
    command = (folder / "command.sh").read_text()
    assert "--calibration-table m_cali.json --quantize-table 2-m_cali.json --output m_cali.bmodel" in command
    for name, file in (("m_cali.json", table), ("m_cali.safetensors", weights), ("2-m_cali.json", other)):
        assert (folder / name).read_text() == str(file)


def test_reproducer_outlives_temporary_folders(compiler, tmp_path: Path) -> None:
    compiler("kill -SEGV $$")
    with pytest.raises(TesseraError) as caught, scratch_folder(tmp_path) as folder:
        with scratch_folder(folder) as inner:
            compile_driver.run_compile(["deploy"], Report(1, io.StringIO()), reproducer_beside=inner / "o.bmodel")
    assert str(next(tmp_path.glob("tessera-reproducer*"))) in caught.value.hint


def test_interrupt_ends_the_child(tmp_path: Path) -> None:
    """A SIGINT that only the tool receives also ends the compiler, before the tool ends."""
    fake = tmp_path / "fake-compile"
    fake.write_text("#!/bin/sh\necho $$ > pid\nexec sleep 600\n")
    fake.chmod(0o755)
    code = (
        "import tessera.compile_driver as d, tessera.interrupts as i, tessera.progress as p, io, signal\n"
        f"d.find_program = lambda name: {str(fake)!r}\n"
        # tessera.cli sets this handler: interrupts are deferred while a child is started.
        "signal.signal(signal.SIGINT, signal.SIG_DFL)\n"
        "with i.caught():\n    try:\n        with i.raised():\n            d.run_compile(['x'], p.Report(1, "
        "io.StringIO()))\n"
        "    except KeyboardInterrupt:\n        raise SystemExit(130)\n"
    )
    with subprocess.Popen([sys.executable, "-c", code], cwd=tmp_path) as tool:
        deadline = time.monotonic() + 300
        while not (tmp_path / "pid").exists() or not (tmp_path / "pid").read_text().strip():
            assert time.monotonic() < deadline and tool.poll() is None
            time.sleep(0.02)
        tool.send_signal(signal.SIGINT)
        assert tool.wait(300) == 130
    with pytest.raises(ProcessLookupError):
        os.kill(int((tmp_path / "pid").read_text()), 0)


def test_side_by_side_keeps_the_order(compiler, tmp_path: Path) -> None:
    compiler("""echo '{"event":"result","ops":3}'""")
    jobs = [lambda i=i: (i, run(tmp_path)[0]["ops"]) for i in range(5)]
    assert compile_driver.side_by_side(jobs) == [(i, 3) for i in range(5)]


@pytest.mark.parametrize("first", [KeyboardInterrupt(), TesseraError("bad")])
def test_what_ends_one_job_ends_the_children_of_the_others(compiler, tmp_path: Path, first: BaseException) -> None:
    compiler(f"echo $$ > {tmp_path}/writing; mv {tmp_path}/writing {tmp_path}/pid; exec sleep 600")

    def fail() -> None:
        while not (tmp_path / "pid").exists():
            time.sleep(0.01)
        raise first

    began = time.monotonic()
    with pytest.raises(type(first)):
        compile_driver.side_by_side([fail, lambda: run(tmp_path)])
    assert time.monotonic() - began < 300
    with pytest.raises(ProcessLookupError):
        os.kill(int((tmp_path / "pid").read_text()), 0)
    assert not list(tmp_path.glob("tessera-reproducer*"))
