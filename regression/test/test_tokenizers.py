# SPDX-License-Identifier: Apache-2.0
"""Tokenizers in the files of SentencePiece, Marian and the package tokenizers: the tokens of the packages that
define them, in committed models and, where the package is installed, in random texts; and clear errors."""
from __future__ import annotations

import json
import random
import shutil
from pathlib import Path
from typing import Any

import pytest
from conftest import check, run_tool

from tessera.errors import TesseraError
from tessera.llm.tokenizer import make_tokenizer
from tessera.llm.tokenizer_base import Tokenizer
from tessera.llm.tokenizer_files import read_tokenizer
from tessera.llm.tokenizer_json import _PATTERNS

MODELS = Path(__file__).resolve().parents[1] / "models"
TOKENIZERS = MODELS / "tokenizers"
EXPECTED: dict[str, dict[str, list[int]]] = json.loads((TOKENIZERS / "expected.json").read_text())
DOCUMENT = MODELS.parents[1] / "docs/language-models.md"
VOCABULARY = 1000


def plain(path: Path) -> Tokenizer:
    """Returns the tokenizer in a file without the tokens that a model wants at the beginning and the end."""
    language = {"tokenizer.ggml.add_bos_token": False, "tokenizer.ggml.add_eos_token": False}
    return make_tokenizer({**read_tokenizer(path), **language}, VOCABULARY)


@pytest.mark.parametrize("name", ["unigram", "bpe"])
def test_tokens_of_sentencepiece(name: str) -> None:
    tokenizer = plain(TOKENIZERS / f"{name}.model")
    assert {text: tokenizer.encode(text) for text in EXPECTED[name]} == EXPECTED[name]
    assert tokenizer.decode(tokenizer.encode("the model's tokens")) == "the model's tokens"


def test_bytes_and_special_tokens(tmp_path: Path) -> None:
    tokenizer = make_tokenizer(read_tokenizer(TOKENIZERS / "bpe.model"), VOCABULARY)
    tokens = tokenizer.encode("日本 the 😀")
    assert tokens[0] == tokenizer.bos == 1 and tokenizer.ends == {2}
    assert tokenizer.decode(tokens) == "日本 the 😀"  # of characters that only bytes give
    assert make_tokenizer(read_tokenizer(TOKENIZERS / "unigram.model"), VOCABULARY).encode("a")[-1] == 2
    # A folder as transformers stores it: tokens that follow those of the model, and a template.
    shutil.copy(TOKENIZERS / "bpe.model", tmp_path / "tokenizer.model")
    count = len(tokenizer.tokens)
    (tmp_path / "added_tokens.json").write_text(json.dumps({"<|im_end|>": count + 1}))
    decoder = {str(count): {"content": "<|tool|>", "special": False}, "3": {"content": "<sep>", "special": True}}
    config = {"added_tokens_decoder": decoder, "chat_template": "x", "eos_token": {"content": "<|im_end|>"}}
    (tmp_path / "tokenizer_config.json").write_text(json.dumps({**config, "add_bos_token": False}))
    (tmp_path / "special_tokens_map.json").write_text(json.dumps({"additional_special_tokens": ["<|im_end|>"]}))
    language = read_tokenizer(tmp_path)
    found = make_tokenizer(language, VOCABULARY)
    assert found.encode("a<|im_end|>b<|tool|>")[1::2] == [count + 1, count] and found.eos == count + 1
    assert found.decode([count, count + 1, 3]) == "<|tool|>" and language["tokenizer.chat_template"] == "x"


def test_marian(tmp_path: Path) -> None:
    """The pieces of source.spm have the numbers of vocab.json; `translate` reads and writes text with them."""
    language = read_tokenizer(TOKENIZERS / "marian")
    tokenizer = make_tokenizer(language, VOCABULARY)
    assert {text: tokenizer.encode(text) for text in EXPECTED["marian"]} == EXPECTED["marian"]
    assert tokenizer.eos == 0 and tokenizer.decode(tokenizer.encode(">>fra<<in time")[1:]) == "in time"
    folder = tmp_path / "m"
    shutil.copytree(MODELS / "seq2seq/t5", folder)
    shutil.copytree(TOKENIZERS / "marian", folder, dirs_exist_ok=True)
    check(run_tool("tessera", "llm", folder, "-o", tmp_path / "out", "--chunk", "32"))
    run = ("tessera", "translate", "--model", tmp_path / "out", "--max_tokens", "8", "--json")
    text = json.loads(check(run_tool(*run, "--text", "once upon a time")))
    tokens = ",".join(map(str, EXPECTED["marian"]["once upon a time"]))
    assert text["tokens"] == json.loads(check(run_tool(*run, "--tokens", tokens)))["tokens"]
    assert text["text"] == tokenizer.decode(text["tokens"])
    (folder / "tokenizer_config.json").write_text(json.dumps({"separate_vocabs": True}))
    with pytest.raises(TesseraError, match="separate vocabularies of two languages are not supported"):
        read_tokenizer(folder)
    (folder / "tokenizer_config.json").unlink()
    for wrong, text in (({"<unk>": 0, "</s>": 1}, "lacks the token <pad>"), ({"a": 1}, "from 0 to 0")):
        (folder / "vocab.json").write_text(json.dumps(wrong))
        with pytest.raises(TesseraError, match=text):
            read_tokenizer(folder)


@pytest.mark.parametrize("name", ["unigram", "bpe"])
def test_damaged_files(tmp_path: Path, name: str) -> None:
    """A file that was cut off or altered is rejected, or gives a tokenizer that works; nothing else happens."""
    whole, path = (TOKENIZERS / f"{name}.model").read_bytes(), tmp_path / "tokenizer.model"
    rng = random.Random(5)
    for number in range(400):
        data = bytearray(whole)
        for _ in range(rng.choice([1, 2, 5])):
            data[rng.randrange(len(data))] = rng.choice([0, 8, 127, 255, rng.randrange(256)])
        path.write_bytes(data[: rng.randrange(len(data))] if number % 4 == 0 else data)
        try:
            make_tokenizer(read_tokenizer(path), VOCABULARY).encode("ﬁne text, 12<sep>日")
        except TesseraError as error:
            assert "tokenizer" in str(error)
    for data, text in (
        (b"", "it has no pieces"),
        (whole[:100], "goes beyond the end"),
        (b"\x0b\x0c", "unknown type 3"),
    ):
        path.write_bytes(data)
        with pytest.raises(TesseraError, match=text):
            read_tokenizer(path)
    path.write_bytes(whole.replace(b"\x18\x02" if name == "bpe" else b"\x18\x01", b"\x18\x04"))
    with pytest.raises(TesseraError, match="supported are unigram and BPE"):
        read_tokenizer(path)


@pytest.mark.parametrize("kind", ["unigram", "bpe"])
@pytest.mark.parametrize("rule", ["identity", "nmt_nfkc"])
def test_random_texts(tmp_path: Path, kind: str, rule: str) -> None:
    sentencepiece = pytest.importorskip("sentencepiece")
    lines = DOCUMENT.read_text().splitlines()
    rng = random.Random(5)
    for flags in (
        "--byte_fallback",
        "--user_defined_symbols=<sep>,<se",
        "--remove_extra_whitespaces=0",
        "--add_dummy_prefix=0",
    ):
        model = tmp_path / "tokenizer.model"
        sentencepiece.SentencePieceTrainer.Train(
            f"--input={DOCUMENT} --model_type={kind} "
            f"--model_prefix={tmp_path / 'tokenizer'} --normalization_rule_name={rule} --hard_vocab_limit=0 "
            f"--vocab_size=500 --minloglevel=2 --character_coverage=0.99 {flags}"
        )
        peer, tokenizer = sentencepiece.SentencePieceProcessor(str(model)), plain(tmp_path)
        for _ in range(300):
            text = "".join(rng.choices("abc  \t．Ａ１é日\u200b\u00a0①ﬁ▁<😀e\u0301がか\u3099½", k=rng.randrange(12)))
            text = rng.choice(["", "<sep>", " <se ", "\n"]).join([text, rng.choice(lines)[:50]])
            assert tokenizer.encode(text) == peer.encode(text), (flags, text)


def byte_pairs(normalizer: Any, splitter: Any, marks: bool, **model: Any) -> Any:
    """Returns a tokenizer of the package tokenizers, trained on a page of the documentation."""
    tokenizers = pytest.importorskip("tokenizers")
    lines = DOCUMENT.read_text().splitlines()
    alphabet = [] if marks else tokenizers.pre_tokenizers.ByteLevel.alphabet()
    bytes_of = [f"<0x{byte:02X}>" for byte in range(256)] if marks else []
    found = tokenizers.Tokenizer(tokenizers.models.BPE(unk_token="<unk>", byte_fallback=marks, fuse_unk=True, **model))
    found.pre_tokenizer = tokenizers.pre_tokenizers.Metaspace() if marks else splitter
    trainer = tokenizers.trainers.BpeTrainer(
        vocab_size=600, initial_alphabet=alphabet, special_tokens=["<unk>", *bytes_of], show_progress=False
    )
    found.train_from_iterator(lines, trainer)
    saved = json.loads(found.to_str()) | {"normalizer": normalizer, "pre_tokenizer": None, "added_tokens": []}
    found = tokenizers.Tokenizer.from_str(json.dumps(saved))
    if splitter is not None:
        found.pre_tokenizer = splitter
    token = tokenizers.AddedToken
    found.add_special_tokens([token("<|a|>", rstrip=True, special=True), token("<|b|>", special=True)])
    found.add_tokens([token("<|c|>", lstrip=True, normalized=False), token("<|cc|>", normalized=False)])
    return found


MARK = {"type": "Replace", "pattern": {"String": " "}, "content": "\u2581"}
PREPEND = {"type": "Sequence", "normalizers": [{"type": "Prepend", "prepend": "\u2581"}, MARK]}


@pytest.mark.parametrize("name", ["gpt2", "smollm", "llama3", "qwen2", "prepend", "first", "always", "never", "gemma"])
def test_tokens_of_package_tokenizers(tmp_path: Path, name: str) -> None:
    """Each way in which published models split text and mark spaces, with tokens that take the spaces beside them."""
    split = pytest.importorskip("tokenizers").pre_tokenizers
    regex = pytest.importorskip("tokenizers").Regex
    plain_bytes = split.ByteLevel(add_prefix_space=False)
    word = lambda kind: split.Sequence(
        [
            split.Split(regex({name: text for text, name in _PATTERNS.items()}[kind]), "isolated"),
            split.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )
    given: dict[str, Any] = {
        "gpt2": lambda: byte_pairs(None, plain_bytes, False),
        "smollm": lambda: byte_pairs(None, split.Sequence([split.Digits(True), plain_bytes]), False),
        "llama3": lambda: byte_pairs(None, word("llama-bpe"), False, ignore_merges=True),
        "qwen2": lambda: byte_pairs({"type": "NFC"}, word("qwen2"), False),
        "prepend": lambda: byte_pairs(PREPEND, None, True),
        "gemma": lambda: byte_pairs(MARK, split.Split(" ", "merged_with_previous"), True),
    }
    metaspace = lambda: byte_pairs(None, split.Metaspace("\u2581", name, False), True)
    peer = given.get(name, metaspace)()
    peer.save(str(tmp_path / "tokenizer.json"))
    tokenizer, rng = plain(tmp_path), random.Random(3)
    lines = DOCUMENT.read_text().splitlines()
    for number in range(600):
        text = "".join(rng.choices("abc  \t\n12 3é日'sT\u00a0①ﬁ\u2581<~😀e\u0301がか\u3099½\r", k=rng.randrange(14)))
        text += rng.choice(lines)[: rng.randrange(40)]
        text += rng.choice(["<|a|> ", "<|b|> ", " <|c|>", "<|cc|>", "\n"]) + rng.choice(["x", " y", "\n z", ""])
        assert tokenizer.encode(text) == peer.encode(text, add_special_tokens=False).ids, text


def test_unsupported_tokenizers(tmp_path: Path) -> None:
    """Parts of a tokenizer that would change the tokens of a text are rejected, not ignored."""
    base: dict[str, Any] = {"model": {"type": "BPE", "vocab": {"a": 0}, "merges": []}}
    bytes_of = {"type": "ByteLevel", "add_prefix_space": False, "use_regex": True}
    split = {"type": "Split", "pattern": {"Regex": "\\p{N}{1,3}|."}, "behavior": "Isolated"}
    pair = {"type": "Sequence", "pretokenizers": [split, {**bytes_of, "use_regex": False}]}
    unigram = {"type": "Unigram", "unk_id": 0, "vocab": [["<unk>", 0.0]]}
    for changes, text in (
        ({"model": {**base["model"], "dropout": 0.1}}, "its model has 'dropout'"),
        ({"pre_tokenizer": pair}, "it splits text by the pattern"),
        ({"pre_tokenizer": {**bytes_of, "add_prefix_space": True}}, "it adds a space before the text"),
        ({"pre_tokenizer": {**bytes_of, "use_regex": False}}, "it splits text by ByteLevel"),
        ({"pre_tokenizer": bytes_of, "normalizer": {"type": "Lowercase"}}, "its normalizer is Lowercase"),
        ({"pre_tokenizer": {"type": "Whitespace"}}, "it changes or splits text by Whitespace"),
        ({}, "it neither splits text to bytes nor marks spaces"),
        ({"model": unigram, "normalizer": {"type": "NFD"}}, "its normalizer is NFD"),
        ({"model": unigram, "pre_tokenizer": {"type": "BertPreTokenizer"}}, "it splits text by BertPreTokenizer"),
    ):
        (tmp_path / "tokenizer.json").write_text(json.dumps({**base, **changes}))
        with pytest.raises(TesseraError, match=text):
            read_tokenizer(tmp_path)
