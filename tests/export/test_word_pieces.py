"""WordPiece as far as plain sentences need it."""

import json
from pathlib import Path

import pytest

from export.word_pieces import read_vocabulary, split_sentence, split_word

VOCABULARY = {piece: at for at, piece in enumerate(["un", "##aff", "##able", "able", "##a", "!"])}


@pytest.mark.parametrize(
    ("word", "pieces"),
    [
        ("unaffable", ["un", "##aff", "##able"]),
        ("able", ["able"]),
        ("unable", ["un", "##able"]),
        ("una", ["un", "##a"]),
        ("unb", ["[UNK]"]),
        ("x", ["[UNK]"]),
    ],
)
def test_a_word_is_cut_into_the_longest_pieces(word: str, pieces: list[str]) -> None:
    assert split_word(word, VOCABULARY) == pieces


def test_a_sentence_is_words_and_marks_between_its_ends() -> None:
    pieces = ["[CLS]", "un", "##able", "[UNK]", "!", "!", "[SEP]"]
    assert split_sentence("unable to!!", VOCABULARY) == pieces


def test_a_vocabulary_is_a_line_for_each_piece(tmp_path: Path) -> None:
    (tmp_path / "vocab.txt").write_text("[PAD]\nthe\n##s\n")
    assert read_vocabulary(tmp_path) == {"[PAD]": 0, "the": 1, "##s": 2}


@pytest.mark.parametrize(("kind", "found"), [("WordPiece", {"the": 1}), ("BPE", {})])
def test_a_vocabulary_may_be_in_tokenizer_json(
    tmp_path: Path, kind: str, found: dict[str, int]
) -> None:
    described = {"model": {"type": kind, "vocab": {"the": 1}}}
    (tmp_path / "tokenizer.json").write_text(json.dumps(described))
    assert read_vocabulary(tmp_path) == found


@pytest.mark.parametrize("text", ["[]", '{"model": 3}', '{"model": {"type": "WordPiece"}}'])
def test_a_tokenizer_json_of_another_kind_has_no_vocabulary(tmp_path: Path, text: str) -> None:
    (tmp_path / "tokenizer.json").write_text(text)
    assert read_vocabulary(tmp_path) == {}


def test_without_a_tokenizer_there_is_no_vocabulary(tmp_path: Path) -> None:
    assert read_vocabulary(tmp_path) == {}
