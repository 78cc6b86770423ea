#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Trains the small SentencePiece models in regression/models/tokenizers on the documentation, and writes expected.json:
the tokens of texts. Needs sentencepiece and transformers.

    python regression/export_tokenizers.py regression/models/tokenizers
"""
from __future__ import annotations

import argparse
import io
import json
import re
from pathlib import Path
from typing import Any, Sequence

import sentencepiece
from transformers import MarianTokenizer

ROOT = Path(__file__).resolve().parents[1]
TEXTS = [
    "",
    " ",
    "Once upon a time",
    "once upon a time",
    "  two  spaces  and\ta tab\n\nlines  ",
    "ﬁne ＡＢ１ ½ of the ﬁles",
    "the model's tokens, 12345 of 512!",
    "日本語 naïve 😀😀 Ⅳ",
    "a<sep>b <sep> c<s2><se>",
    "\u2581marks\u2581 and NUL\u0001",
    "<0x41> <extra> <sep",
]
RULES = {"ﬁ": "fi", "Ａ": "A", "Ｂ": "B", "１": "1", "½": " 1/2", "\t": " ", "\n": " ", "\u0001": ""}


def documentation() -> list[str]:
    return [line for file in sorted((ROOT / "docs").glob("*.md")) for line in file.read_text().splitlines()]


def train(path: Path, kind: str, lines: Sequence[str], **settings: Any) -> sentencepiece.SentencePieceProcessor:
    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(filter(str.strip, lines)), model_writer=model, model_type=kind, num_threads=1,
        character_coverage=0.99, hard_vocab_limit=False, minloglevel=2, **settings,
    )  # fmt: skip
    path.write_bytes(model.getvalue())
    return sentencepiece.SentencePieceProcessor(model_proto=model.getvalue())


def marian(folder: Path) -> dict[str, list[int]]:
    """Writes Marian's files; returns the tokens of texts."""
    folder.mkdir(exist_ok=True)
    lines = [re.sub("[^a-z]+", " ", line.lower()) for line in documentation()]
    pieces: list[str] = []
    for name, size in (("source.spm", 45), ("target.spm", 50)):
        model = train(folder / name, "unigram", lines, vocab_size=size, normalization_rule_name="identity", bos_id=-1)
        pieces += [
            model.id_to_piece(i) for i in range(len(model)) if not model.is_control(i) and not model.is_unknown(i)
        ]
    known = sorted(set(pieces))
    del known[9::17]  # pieces that Marian's training did not see
    vocabulary = ["</s>", "<unk>", ">>fra<<", *known, "<pad>"]
    (folder / "vocab.json").write_text(json.dumps({piece: i for i, piece in enumerate(vocabulary)}, indent=0))
    tokenizer = MarianTokenizer(*(str(folder / name) for name in ("source.spm", "target.spm", "vocab.json")))
    return {text: tokenizer(text).input_ids for text in [*TEXTS, ">>fra<< Once upon a time"]}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    folder = parser.parse_args().folder
    folder.mkdir(exist_ok=True)
    rules = folder / "rules.tsv"
    codes = lambda text: " ".join(f"{ord(c):X}" for c in text)
    rules.write_text("".join(f"{codes(a)}\t{codes(b)}\n" for a, b in RULES.items()))
    symbols = {"user_defined_symbols": ["<sep>", "<s2>", "<se"]}
    models = {
        "unigram": train(
            folder / "unigram.model", "unigram", documentation(), vocab_size=300, normalization_rule_tsv=str(rules),
            **symbols,
        ),
        "bpe": train(
            folder / "bpe.model", "bpe", documentation(), vocab_size=500, normalization_rule_name="identity",
            byte_fallback=True, remove_extra_whitespaces=False, **symbols,
        ),
    }  # fmt: skip
    rules.unlink()
    expected = {name: {text: model.encode(text) for text in TEXTS} for name, model in models.items()}
    expected["marian"] = marian(folder / "marian")
    entries = [
        f"{json.dumps(name)}: {{\n" + ",\n".join(f" {json.dumps(text)}: {ids}" for text, ids in texts.items()) + "\n}"
        for name, texts in expected.items()
    ]
    (folder / "expected.json").write_text("{\n" + ",\n".join(entries) + "\n}\n")


if __name__ == "__main__":
    main()
