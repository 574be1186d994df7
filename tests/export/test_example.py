"""An example beside a model."""

import json
from pathlib import Path

import numpy as np
from safetensors import safe_open
from safetensors.numpy import load_file

import service
from export.example import SENTENCE, Example, draw_example, write_example
from model.contract import EXAMPLE_FILE, AttentionSpec

DEMO = Path(service.__file__).parent / "demo" / "demo" / "1" / EXAMPLE_FILE
WORDS = SENTENCE.split()


def test_the_example_of_the_demo_is_made_again_byte_for_byte(tmp_path: Path) -> None:
    write_example(tmp_path, draw_example(AttentionSpec(6, 3)))
    assert (tmp_path / EXAMPLE_FILE).read_bytes() == DEMO.read_bytes()


def test_words_are_in_the_metadata(tmp_path: Path) -> None:
    query = np.arange(12, dtype=np.float32).reshape(3, 4)
    words = ["a", "\N{LEFT DOUBLE QUOTATION MARK}b", "c"]
    write_example(tmp_path, Example({"query": query}, words))
    with safe_open(tmp_path / EXAMPLE_FILE, "np") as file:
        assert json.loads(file.metadata()["labels"]) == words
    assert np.array_equal(load_file(tmp_path / EXAMPLE_FILE)["query"], query)


def test_a_word_that_comes_again_is_the_same_token() -> None:
    query = draw_example(AttentionSpec(6, 3)).tensors["query"]
    assert query.shape == (len(WORDS), 6)
    for first, word in enumerate(WORDS):
        for second, other in enumerate(WORDS):
            assert np.array_equal(query[first], query[second]) == (word == other)


def test_a_model_of_several_widths_gets_each_tensor() -> None:
    tensors = draw_example(AttentionSpec(8, 2, kdim=5, vdim=3)).tensors
    shapes = {name: array.shape for name, array in tensors.items()}
    assert shapes == {"query": (13, 8), "key": (13, 5), "value": (13, 3)}
    assert draw_example(AttentionSpec(8, 2)).tensors.keys() == {"query"}
