# SPDX-License-Identifier: Apache-2.0
"""Multiple-choice questions for language models with caches, scored as lm-evaluation-harness does.

The model does not generate an answer: the choice wins whose tokens have the largest likelihood after the question.
"""
from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ..errors import TesseraError
from ..llm.model import LanguageModel
from .perplexity import read_text

NAME = "multiple_choice"
_EXAMPLE = '{"question": "Question: 1 + 1 is\\nAnswer:", "choices": ["2", "3"], "answer": 0}'


@dataclass(frozen=True)
class Question:
    """A question. where: its file and line. answer: the index of the right choice, from 0."""

    where: str
    text: str
    choices: tuple[str, ...]
    answer: int


def read_questions(path: Path) -> list[Question]:
    """Returns the questions of a .jsonl file. Raises TesseraError with the number of a wrong line."""
    lines = read_text(path).split("\n")
    return [_question(f"{path}:{i}", line) for i, line in enumerate(lines, 1) if line.strip()]


def _question(where: str, line: str) -> Question:
    def fail(why: str) -> TesseraError:
        return TesseraError(f"{where}: {why}", hint=f"a line is like {_EXAMPLE}")

    try:
        entry: Any = json.loads(line)
        json.dumps(entry, ensure_ascii=False).encode()
    except UnicodeEncodeError as error:
        raise fail(f"half a surrogate pair: {error}") from error
    except (ValueError, RecursionError) as error:
        raise fail(f"not JSON: {error}") from error
    if not isinstance(entry, dict) or not {"question", "choices", "answer"} <= set(entry):
        raise fail("expected an object with 'question', 'choices' and 'answer'")
    text, choices, answer = entry["question"], entry["choices"], entry["answer"]
    if not isinstance(text, str) or not text.strip():
        raise fail("'question' is not a text, or is empty")
    if not isinstance(choices, list) or len(choices) < 2 or not all(isinstance(c, str) and c.strip() for c in choices):
        raise fail("'choices' is not a list of at least two texts that are not empty")
    if isinstance(answer, bool) or not isinstance(answer, int) or not 0 <= answer < len(choices):
        raise fail(f"'answer' is {answer!r}; allowed: 0 to {len(choices) - 1}, the index of the right choice")
    return Question(where, text, tuple(choices), answer)


def likelihoods(model: LanguageModel, question: Question) -> list[float]:
    """Returns the logarithm of the likelihood of each choice after the question. A space separates them, unless there
    is white space."""
    body = question.text.rstrip()
    space = question.text[len(body) :]
    before = model.tokenizer.encode(body)
    found = []
    for choice in question.choices:
        tokens = model.tokenizer.encode(body + (space or ("" if choice[0].isspace() else " ")) + choice)
        if not 1 <= len(before) < len(tokens):
            raise TesseraError(f"{question.where}: the choice '{choice}' has no tokens of its own after the question")
        if len(tokens) > model.context:
            raise TesseraError(
                f"{question.where}: {len(tokens)} tokens do not fit into the model's context of {model.context}",
                hint="shorten the question, or compile the model with a larger --context",
            )
        found.append(float(model.log_likelihoods(tokens, len(before)).sum()))
    return found


def score(model: LanguageModel, data: Path, context: int | None = None) -> dict[str, float]:
    """Returns {'n', 'acc', 'acc_norm', 'acc_error'}: the number of questions, the share of right answers by the sums of
    log-likelihoods, that by these sums divided by the numbers of characters of the choices, and the standard error of
    acc."""
    questions = read_questions(data)
    right, right_by_length = [], []
    for question in questions:
        sums = np.array(likelihoods(model, question))
        right.append(int(sums.argmax()) == question.answer)
        right_by_length.append(int((sums / list(map(len, question.choices))).argmax()) == question.answer)
    error = float(np.std(right)) / max(len(right) - 1, 1) ** 0.5
    return {
        "n": len(right),
        "acc": float(np.mean(right)),
        "acc_norm": float(np.mean(right_by_length)),
        "acc_error": error,
    }
