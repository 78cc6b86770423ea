# SPDX-License-Identifier: Apache-2.0
"""Integer weights of language models that are chosen with a text: lower perplexities, and clear errors."""
from __future__ import annotations

import json
from pathlib import Path

import gguf_files
import numpy as np
import pytest
from case_file import data_path
from conftest import check, run_tool
from story_text import write_stories

from tessera.calibration import language
from tessera.cli.calibrated_decoder import Calibration, split_text
from tessera.cli.decoder_source import DecoderSource
from tessera.llm import load
from tessera.progress import Report
from tessera.tasks.perplexity import score_windows


@pytest.fixture(scope="module")
def story(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Returns stories260k as a checkpoint in F32."""
    path = tmp_path_factory.mktemp("story") / "s.gguf"
    parts = gguf_files.stories(
        data_path("data:models/llm/stories260k_kv.onnx"), data_path("data:models/llm/tok512.bin")
    )
    gguf_files.write(path, *parts, {})
    return path


@pytest.fixture(scope="module")
def text(story: Path) -> Path:
    """Returns a text that the model has made up."""
    batch, path = story.with_name("batch.bmodel"), story.with_name("text.txt")
    check(run_tool("tessera", "llm", story, "-o", batch, "--context", "256", "--chunk", "64", "--sequences", "16"))
    write_stories(path, batch)
    return path


def compile_with(text: Path, story: Path, output: Path, precision: str, *flags: object) -> dict:
    run = ("tessera", "llm", story, "-o", output, "--context", "256", "--quantize", precision, *flags)
    return json.loads(check(run_tool(*run, "--calibration_text", text, "--json")))["calibration"]


@pytest.mark.parametrize("precision, flags", [("W4", ()), ("W4", ("--group_size", 64)), ("W4A8", ())])
def test_perplexity_falls(story: Path, text: Path, tmp_path: Path, precision: str, flags: tuple) -> None:
    """The chosen weights have a lower perplexity than the default rounding on text that did not choose them, and the
    compiled model contains them, in the same form as the others."""
    output, plain = tmp_path / "m.bmodel", tmp_path / "plain.bmodel"
    found = compile_with(text, story, output, precision, *flags)
    check(run_tool("tessera", "llm", story, "-o", plain, "--context", "256", "--quantize", precision, *flags))
    assert found["used"] and found["f32"] < found["with"] < found["without"] < 1.5 * found["f32"]
    for path, wanted in ((output, found["with"]), (plain, found["without"])):
        model = load(path)
        held_out = split_text(text, model).held_out
        assert score_windows(model, held_out)["ppl"] == pytest.approx(wanted, rel=1e-4)
        assert found["tokens"] == len(held_out.tokens) * (held_out.size - held_out.first)
    assert output.stat().st_size == pytest.approx(plain.stat().st_size, rel=0.01)


def test_shape_of_the_model_does_not_matter(story: Path, text: Path, tmp_path: Path) -> None:
    """Weights that are chosen once serve several sequences and other caches."""
    found = compile_with(text, story, tmp_path / "a.bmodel", "W4")
    flags = ("--sequences", "2", "--kv", "bf16")
    assert compile_with(text, story, tmp_path / "b.bmodel", "W4", *flags) == found
    model = load(tmp_path / "b.bmodel")
    assert score_windows(model, split_text(text, model).held_out)["ppl"] == pytest.approx(found["with"], rel=0.01)


def test_eight_bits(story: Path, text: Path, tmp_path: Path) -> None:
    """Weights of 8 bits hardly change the perplexity, so the chosen ones may not be used."""
    found = compile_with(text, story, tmp_path / "m.bmodel", "W8")
    assert found["with"] == pytest.approx(found["f32"], rel=2e-3)
    assert found["used"] == (found["with"] < found["without"])


def test_integers_of_a_file_stay_if_they_are_better(text: Path, tmp_path: Path) -> None:
    """Q8_0 is better than any 4 bits. The compiled model has the integers of the file."""
    parts = gguf_files.stories(
        data_path("data:models/llm/stories260k_kv.onnx"), data_path("data:models/llm/tok512.bin")
    )
    forms = {name: "Q8_0" for name, array in parts[1].items() if array.ndim == 2 and "ffn_down" not in name}
    gguf_files.write(tmp_path / "q.gguf", *parts, forms)
    found = compile_with(text, tmp_path / "q.gguf", tmp_path / "m.bmodel", "W4A8")
    assert not found["used"] and found["without"] < found["with"]
    model = load(tmp_path / "m.bmodel")
    assert score_windows(model, split_text(text, model).held_out)["ppl"] == pytest.approx(found["without"], rel=1e-4)


def test_batches_choose_the_same_weights(
    story: Path, text: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    results = []
    for budget in (language.BUDGET, 1):
        monkeypatch.setattr(language, "BUDGET", budget)
        folder = tmp_path / str(budget)
        folder.mkdir()
        source = DecoderSource(story, context=256)
        results.append(Calibration(source, "W4", (), folder, Report(1, quiet=True)).run(text).weights)
    assert len(results[0]) == 35 and results[0].keys() == results[1].keys()
    for name, rounded in results[0].items():
        assert np.array_equal(rounded.integers, results[1][name].integers), name
        assert np.array_equal(rounded.scales, results[1][name].scales), name


def test_errors(story: Path, text: Path, tmp_path: Path) -> None:
    path = tmp_path / "t.txt"

    def message(given: Path, *flags: object, status: int) -> str:
        output = tmp_path / "m.bmodel"
        result = run_tool("tessera", "llm", story, "-o", output, "--calibration_text", given, *flags)
        assert result.returncode == status and not output.exists(), result.stderr
        return result.stderr

    w4 = ("--quantize", "W4", "--context", "256")
    path.write_text("Once upon a time")
    assert "calibration needs at least 256 tokens" in message(path, *w4, status=1)
    path.write_bytes(b"abc\xff")
    assert "byte 3 is not UTF-8" in message(path, *w4, status=1)
    path.write_text("\n")
    assert "does not contain text" in message(path, *w4, status=1)
    assert "no such file" in message(tmp_path / "none.txt", *w4, status=1)
    assert "the context 16" in message(text, "--quantize", "W4", "--context", "16", status=1)
    for precision in ("FILE", "BF16", "W8A8"):
        wanted = f"--calibration_text is for --quantize W4, W4A8, W8, not {precision}"
        assert wanted in message(text, "--quantize", precision, status=2)
    assert "must be a multiple of 16" in message(text, *w4, "--group_size", "24", status=2)
    assert "requires --quantize W4 or W4A8" in message(text, "--quantize", "W8", "--group_size", "32", status=2)
