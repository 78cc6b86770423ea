# SPDX-License-Identifier: Apache-2.0
"""Speech to text with networks in the shape of Whisper."""
from __future__ import annotations

from dataclasses import dataclass
from typing import Iterator, Sequence

import numpy as np

from ..errors import TesseraError
from .audio import HOP, RATE, log_mel
from .encoder_decoder import EncoderDecoder

_STEP = 0.02  # seconds per timestamp token


@dataclass(frozen=True)
class Segment:
    """A part of the audio, in seconds, and its tokens."""

    start: float
    end: float
    tokens: tuple[int, ...]


class TimestampRules:
    """Chooses tokens such that each segment stands between two timestamps, which never decrease."""

    def __init__(self, first: int, eos: int, suppressed: Sequence[int]) -> None:
        self._first, self._eos, self._suppressed = first, eos, list(suppressed)

    def choose(self, logits: np.ndarray, made: Sequence[int]) -> int:
        first, logits = self._first, logits.astype(np.float64)
        logits[self._suppressed] = -np.inf
        logits[first - 1] = -np.inf  # the token for a text without timestamps
        ends_in_time = bool(made) and made[-1] >= first
        is_pair = len(made) < 2 or made[-2] >= first
        if ends_in_time and is_pair:
            logits[first:] = -np.inf  # text follows
        elif ends_in_time:
            logits[: self._eos] = -np.inf  # the start of the next segment follows, or the end
        times = [token for token in made if token >= first]
        if times:
            logits[first : times[-1] + (0 if ends_in_time and not is_pair else 1)] = -np.inf
        if not made:
            logits[:first] = -np.inf
            logits[first + int(1 / _STEP) + 1 :] = -np.inf
        most = logits.max()
        if np.isfinite(most):
            time = np.exp(logits[first:] - most).sum()
            if time > np.exp(logits[:first].max() - most):
                logits[:first] = -np.inf
        return int(logits.argmax())


class Transcriber:
    def __init__(self, model: EncoderDecoder, language: str = "en", task: str = "transcribe") -> None:
        self._model, settings = model, model.settings
        shape = model.input_shape
        if len(shape) != 3:
            raise TesseraError("the model's encoder does not take spectra", hint="use tessera translate")
        self._bins, self._frames = shape[1], shape[2]
        prompt = [settings["start"]]
        languages, tasks = settings.get("languages", {}), settings.get("tasks", {})
        if languages and language not in languages:
            raise TesseraError(f"the model does not know the language '{language}'; it knows {', '.join(languages)}")
        prompt += [languages[language]] if languages else []
        prompt += [tasks[task]] if tasks else []
        self._prompt: list[int] = prompt
        self._no_times: int | None = settings.get("no_timestamps")

    def window(self, samples: np.ndarray, has_times: bool) -> list[int]:
        """Returns the tokens of one window of the encoder."""
        encoded = self._model.encode(log_mel(samples, self._bins, self._frames))
        if not has_times:
            prompt = self._prompt + ([] if self._no_times is None else [self._no_times])
            return list(self._model.generate(encoded, prompt))
        assert self._no_times is not None
        rules = TimestampRules(self._no_times + 1, min(self._model.settings["ends"]), self._model.suppressed)
        return list(self._model.generate(encoded, self._prompt, choose=rules.choose))

    def transcribe(self, samples: np.ndarray, has_times: bool = False) -> Iterator[Segment]:
        """Returns the segments of audio of any length: with timestamps, else one per window."""
        if has_times and self._no_times is None:
            raise TesseraError("the model has no tokens for timestamps")
        length, begin = self._frames * HOP, 0
        while begin < len(samples):
            tokens = self.window(samples[begin : begin + length], has_times)
            seconds = begin / RATE
            if not has_times:
                end = min(begin + length, len(samples))
                yield Segment(seconds, end / RATE, tuple(tokens))
                begin += length
                continue
            found, used = split_at_times(tokens, (self._no_times or 0) + 1, length / RATE)
            for start, end_time, text in found:
                yield Segment(seconds + start, seconds + end_time, text)
            begin += int(round(used * RATE)) if used > 0 else length


def split_at_times(
    tokens: Sequence[int], first: int, length: float
) -> tuple[list[tuple[float, float, tuple[int, ...]]], float]:
    """Returns start, end and text of the segments in a window, and the time up to which they reach. Text after the last
    complete segment belongs to the next window, unless there is no segment before it."""
    segments: list[tuple[float, float, tuple[int, ...]]] = []
    start, text = 0.0, []
    for token in tokens:
        if token < first:
            text.append(token)
            continue
        time = (token - first) * _STEP
        if text:
            segments.append((start, time, tuple(text)))
        start, text = time, []
    if text and not segments:
        segments.append((start, length, tuple(text)))
    is_complete = not text and len(tokens) > 1 and tokens[-2] < first  # silence follows the last segment
    return segments, length if is_complete or not segments else segments[-1][1]
