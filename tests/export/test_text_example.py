"""Sentences as a text model embeds them."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import save_file

from export.checkpoints.checkpoint import open_checkpoint
from export.example import Example
from export.text_example import SENTENCES, read_text_example
from model.contract import AttentionSpec

WIDTH = 8
SPEC = AttentionSpec(WIDTH, 2)
VOCABULARY = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", ".", "the", "cat", "it", "was", "s", "##at"]


def write_checkpoint(folder: Path, **changes: Any) -> tuple[Path, dict[str, torch.Tensor]]:
    """A checkpoint of embeddings with its vocabulary; `changes` replace tensors, None drops one."""
    generator = torch.Generator().manual_seed(3)
    tensors = {
        "word_embeddings.weight": torch.randn(len(VOCABULARY), WIDTH, generator=generator),
        "position_embeddings.weight": torch.randn(40, WIDTH, generator=generator),
        "token_type_embeddings.weight": torch.randn(2, WIDTH, generator=generator),
        "LayerNorm.weight": torch.randn(WIDTH, generator=generator),
        "LayerNorm.bias": torch.randn(WIDTH, generator=generator),
    }
    tensors = {name: tensor for name, tensor in (tensors | changes).items() if tensor is not None}
    save_file({f"bert.embeddings.{n}": t for n, t in tensors.items()}, folder / "m.safetensors")
    (folder / "vocab.txt").write_text("\n".join(VOCABULARY))
    return folder / "m.safetensors", tensors


def read(file: Path, spec: AttentionSpec) -> Example | None:
    """The example of a checkpoint."""
    with open_checkpoint(file, num_heads=2) as checkpoint:
        return read_text_example(checkpoint, spec)


def test_tokens_are_embedded_as_bert_does(tmp_path: Path) -> None:
    file, tensors = write_checkpoint(tmp_path)
    example = read(file, SPEC)
    assert example
    first, second = example.labels
    assert len(first) == len(second)
    assert list(first[:6]) == ["[CLS]", "the", "cat", "s", "##at", "[UNK]"]
    numbers = torch.tensor([[VOCABULARY.index(piece) for piece in row] for row in (first, second)])
    embedded = (
        torch.nn.functional.embedding(numbers, tensors["word_embeddings.weight"])
        + tensors["position_embeddings.weight"][: len(first)]
        + tensors["token_type_embeddings.weight"][0]
    )
    norm = (tensors["LayerNorm.weight"], tensors["LayerNorm.bias"])
    expected = torch.nn.functional.layer_norm(embedded, (WIDTH,), *norm, eps=1e-12)
    np.testing.assert_allclose(example.tensors["query"], expected.numpy(), atol=1e-5)
    assert np.array_equal(example.tensors["key_mask"], (numbers != 0).numpy())
    assert len(SENTENCES) == 2


@pytest.mark.parametrize(
    "name", ["word_embeddings.weight", "position_embeddings.weight", "LayerNorm.bias"]
)
def test_without_all_embeddings_there_is_no_example(tmp_path: Path, name: str) -> None:
    file, _ = write_checkpoint(tmp_path, **{name: None})
    assert read(file, SPEC) is None


def test_embeddings_of_another_width_are_none(tmp_path: Path) -> None:
    file, _ = write_checkpoint(tmp_path)
    assert read(file, AttentionSpec(6, 2)) is None
    assert read(file, AttentionSpec(WIDTH, 2, kdim=6, vdim=6)) is None


@pytest.mark.parametrize("vocabulary", [None, "", "[PAD]\n[UNK]"])
def test_without_a_whole_vocabulary_there_is_no_example(
    tmp_path: Path, vocabulary: str | None
) -> None:
    file, _ = write_checkpoint(tmp_path)
    (tmp_path / "vocab.txt").unlink()
    if vocabulary is not None:
        (tmp_path / "vocab.txt").write_text(vocabulary)
    assert read(file, SPEC) is None


def test_a_vocabulary_larger_than_the_embeddings_is_none(tmp_path: Path) -> None:
    file, _ = write_checkpoint(tmp_path, **{"word_embeddings.weight": torch.randn(4, WIDTH)})
    assert read(file, SPEC) is None
