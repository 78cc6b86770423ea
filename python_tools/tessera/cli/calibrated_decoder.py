# SPDX-License-Identifier: Apache-2.0
"""tessera llm --calibration_text: integer weights of a language model that are chosen with a text, if that lowers the
perplexity of another part of the text."""
from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Callable, Mapping, Sequence

from .. import top_model
from ..calibration.dataset import spread
from ..calibration.language import Observer, to_round, write_table
from ..calibration.observed import Observed
from ..calibration.rounding import Rounded
from ..errors import TesseraError, usage_error
from ..families import HOST
from ..llm.model import LanguageModel
from ..progress import Report
from ..tasks.perplexity import WINDOW, Windows, read_text, score_windows, split
from ..top_model import TopModel
from .decoder_source import DecoderSource, Precision

PRECISIONS = {"W4": 4, "W4A8": 4, "W8": 8}
"""Precisions whose weights a text can choose, with their bits."""
HELD_OUT = 4
"""The last 1 / HELD_OUT of the windows measure the perplexity."""
MOST_SAMPLED, MOST_SCORED = 16384, 4096
"""Most tokens that choose weights and that measure the perplexity."""
SHARES, SMALLEST = 8, 32
"""A window has at most 1 / SHARES of the tokens, and at least SMALLEST tokens."""


def check_precision(name: str) -> None:
    if name not in PRECISIONS:
        raise usage_error(f"--calibration_text is for --quantize {', '.join(PRECISIONS)}, not {name}")


@dataclass(frozen=True)
class Texts:
    """The windows of a text that choose weights, and those that measure the result."""

    sample: Windows
    held_out: Windows


def split_text(path: Path, model: LanguageModel) -> Texts:
    """Splits the text in the file `path` for calibration."""
    tokens = model.tokenizer.encode(read_text(path), special=False)
    size = min(WINDOW, model.context, len(tokens) // SHARES)
    if size < SMALLEST:
        raise TesseraError(
            f"{path} has {len(tokens)} tokens, and the context {model.context}; calibration needs at least "
            f"{SHARES * SMALLEST} tokens, and a context of at least {SMALLEST}",
            hint="use a longer text, like those that the model will read",
        )
    windows = split(path, tokens, model.tokenizer, size)
    count = len(windows.tokens)
    begin = count - max(count // HELD_OUT, 1)
    sample, held_out = windows.part(0, begin), windows.part(begin, count)
    return Texts(_limited(sample, MOST_SAMPLED), _limited(held_out, MOST_SCORED))


def _limited(windows: Windows, tokens: int) -> Windows:
    """Returns windows with at most `tokens` tokens, evenly spread."""
    return Windows([windows.tokens[i] for i in spread(len(windows.tokens), tokens // windows.size)])


@dataclass(frozen=True)
class Chosen:
    """Weights for the matmuls of a checkpoint; empty if the perplexity is lower without them. perplexities: of the text
    that is held out, with the number of its scored tokens."""

    sample: Windows
    weights: Mapping[str, Rounded]
    perplexities: Mapping[str, float]

    def flags_for(self, model: TopModel, folder: Path, report: Report) -> list[str]:
        """Returns the flags of tessera-compile for `model`, of which the weights have been dequantised."""
        if not self.weights:
            return []
        table = folder / "chosen_cali.json"
        write_table(
            table, model.path.stem, str(top_model.describe(model.path, report)["model_hash"]), self.sample, self.weights
        )
        return ["--calibration-table", str(table)]


class Calibration:
    """Chooses the weights of one checkpoint. name: of PRECISIONS. flags: of tessera-compile. folder: for temporary
    files."""

    def __init__(self, source: DecoderSource, name: str, flags: Sequence[str], folder: Path, report: Report) -> None:
        # The kind of the caches and the number of sequences do not change the inputs of the matmuls.
        self._source = replace(source, all_logits=True, sequences=None, kv=None)
        self._precision, self._flags, self._report, self._folder = Precision.parse(name), tuple(flags), report, folder
        self._name = name

    def run(self, text: Path) -> Chosen:
        with self._report.step(f"{self._name} without the text") as step:
            model, _ = self._import("without", self._precision.dequantises)
            plain = self._open(model, ())
            texts = split_text(text, plain)
            without = score_windows(plain, texts.held_out)["ppl"]
            step.note = f"perplexity {without:.4f}"
            del plain
        with self._report.step("choose weights") as step:
            if not self._precision.dequantises:
                model, _ = self._import("dequantised", True)
            observed = Observed.compile(model.as_ports(), self._folder / "observed", _quiet(), self._flags)
            observer = Observer(model, observed)
            exact = observer.perplexity(texts.held_out)
            weights = self._choose(observer, texts.sample, step.progress)
            if not weights:
                raise TesseraError(
                    f"{text}: {texts.sample.count} tokens are too few to choose weights", hint="use a longer text"
                )
            chosen = Chosen(texts.sample, weights, {})
            step.note = f"{len(weights)} matmuls, {texts.sample.count} tokens"
        with self._report.step(f"{self._name} with these weights") as step:
            calibrated = self._open(model, chosen.flags_for(model, self._folder, self._report))
            scores = score_windows(calibrated, texts.held_out)
            step.note = f"perplexity {scores['ppl']:.4f}"
        perplexities = {"tokens": scores["tokens"], "f32": exact, "without": without, "with": scores["ppl"]}
        return Chosen(texts.sample, weights if scores["ppl"] < without else {}, perplexities)

    def _choose(self, observer: Observer, sample: Windows, progress: Callable[[int, int], None]) -> dict[str, Rounded]:
        four_bits = PRECISIONS[self._name] == 4
        wanted = to_round(observer.contractions, sample.count, four_bits)
        return observer.round(wanted, four_bits, not self._precision.dequantises, sample, progress)

    def _import(self, name: str, dequantises: bool) -> tuple[TopModel, dict]:
        folder = self._folder / name
        folder.mkdir()
        return self._source.import_top(folder, self._report, dequantises)

    def _open(self, model: TopModel, extra: Sequence[str]) -> LanguageModel:
        path = model.path.with_suffix(".bmodel")
        flags = [*self._flags, *extra]
        top_model.deploy(model, path, _quiet(), chip=HOST, quantize=self._precision.compiled, extra=flags)
        return LanguageModel(path)


def _quiet() -> Report:
    return Report(1, quiet=True)
