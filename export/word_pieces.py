"""WordPiece, the tokenizer of BERT and its kin, as far as plain sentences need it."""

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Final

UNKNOWN: Final = "[UNK]"


def read_vocabulary(directory: Path) -> dict[str, int]:
    """Numbers of the pieces, from ``vocab.txt`` or ``tokenizer.json``.

    Returns:
        Nothing where the directory has neither, or one of another kind.

    Raises:
        ValueError: if a file is not text, or not JSON.
        OSError: if it cannot be read.
    """
    lines = directory / "vocab.txt"
    if lines.is_file():
        return {piece: at for at, piece in enumerate(lines.read_text("utf-8").split("\n")) if piece}
    described = directory / "tokenizer.json"
    if not described.is_file():
        return {}
    match json.loads(described.read_bytes()):
        case {"model": {"type": "WordPiece", "vocab": dict(vocabulary)}}:
            return {piece: at for piece, at in vocabulary.items() if isinstance(at, int)}
    return {}


def split_sentence(sentence: str, vocabulary: Mapping[str, int]) -> list[str]:
    """The pieces of a sentence of plain words, between ``[CLS]`` and ``[SEP]``.

    Each word is cut into the longest pieces from its start (Wu et al., 2016,
    https://arxiv.org/abs/1609.08144, as in BERT); all but the first begin with ``##``.
    """
    words = re.findall(r"\w+|[^\w\s]", sentence)
    return ["[CLS]", *(piece for word in words for piece in split_word(word, vocabulary)), "[SEP]"]


def split_word(word: str, vocabulary: Mapping[str, int]) -> list[str]:
    """The pieces of a word; ``[UNK]`` where there are none for all of it."""
    pieces: list[str] = []
    start = 0
    while start < len(word):
        mark = "##" if start else ""
        for end in range(len(word), start, -1):
            if (piece := mark + word[start:end]) in vocabulary:
                break
        else:
            return [UNKNOWN]
        pieces.append(piece)
        start = end
    return pieces
