"""An example beside a model: tokens to ask it with, and the words that they stand for."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray
from safetensors.numpy import save

from model.contract import EXAMPLE_FILE, KEY, QUERY, VALUE, AttentionSpec

SENTENCE: Final = "the cat sat on the mat and the dog slept on the rug"
# Wide enough apart that random weights tell the words from each other.
SPREAD: Final = 3.0


@dataclass(frozen=True, slots=True)
class Example:
    """A request, and its words.

    Attributes:
        tensors: named as in a request, with or without a batch axis.
        labels: a word for each query token; in lists of their own where there is a batch axis.
    """

    tensors: dict[str, NDArray[Any]]
    labels: Sequence[str] | Sequence[Sequence[str]]


def write_example(directory: Path, example: Example) -> None:
    """Write an example into the directory of a version.

    It is a body of ``/v1/attention`` in safetensors as it stands; the metadata, which holds texts
    alone, has ``labels`` as JSON. The manifest does not list it: a model serves without.
    """
    content = save(example.tensors, {"labels": json.dumps(example.labels)})
    (directory / EXAMPLE_FILE).write_bytes(content)


def draw_example(spec: AttentionSpec, seed: int = 0) -> Example:
    """Random tokens for `SENTENCE`; where a word comes again, so does its token.

    Returns:
        query ``[L, D]``; where the widths differ, also key ``[L, kdim]`` and value ``[L, vdim]``.
    """
    words = SENTENCE.split()
    rng = np.random.default_rng(seed)
    tensors = {QUERY: draw_words(words, spec.d_model, rng)}
    if (spec.kdim, spec.vdim) != (spec.d_model, spec.d_model):
        tensors[KEY] = draw_words(words, spec.kdim, rng)
        tensors[VALUE] = draw_words(words, spec.vdim, rng)
    return Example(tensors, words)


def draw_words(words: Sequence[str], width: int, rng: np.random.Generator) -> NDArray[np.float32]:
    """A random token of `width` for each word, the same for the same word: ``[L, width]``."""
    tokens = {word: rng.standard_normal(width) * SPREAD for word in dict.fromkeys(words)}
    return np.stack([tokens[word] for word in words]).astype(np.float32)
