"""Sentences as a text model embeds them, where its checkpoint's directory tells how."""

from collections.abc import Iterable
from typing import Final

import numpy as np
from numpy.typing import NDArray

from export.checkpoints.checkpoint import Checkpoint
from export.checkpoints.tensors import Tensors
from export.errors import CheckpointError
from export.example import Example
from export.word_pieces import read_vocabulary, split_sentence
from model.contract import KEY_MASK, QUERY, AttentionSpec

SENTENCES: Final = (
    "the cat sat on the mat because it was warm.",
    "the animal did not cross the street because it was too tired.",
)
WORDS: Final = "word_embeddings.weight"
POSITIONS: Final = "position_embeddings.weight"
KINDS: Final = "token_type_embeddings.weight"
PADDING: Final = "[PAD]"
# BERT's, where config.json says nothing.
EPSILON: Final = 1e-12


def read_text_example(checkpoint: Checkpoint, spec: AttentionSpec) -> Example | None:
    """`SENTENCES` as the network's first layer gets them, padded to one length.

    For a deeper layer they are what the network starts from, not what that layer gets.

    Args:
        checkpoint: of safetensors, with a WordPiece vocabulary beside it.
        spec: sizes of the layer.

    Returns:
        query ``[B, L, D]`` and key_mask ``[B, L]``; None where the vocabulary or the embeddings
        are missing, unlike BERT's, or of another width than the layer.
    """
    try:
        vocabulary = read_vocabulary(checkpoint.path.parent)
        tensors = find_embeddings(checkpoint.tensors)
        if tensors is None or not {PADDING, "[UNK]", "[CLS]", "[SEP]"} <= vocabulary.keys():
            return None
        return embed(vocabulary, tensors, spec, checkpoint)
    except (CheckpointError, LookupError, OSError, RecursionError, ValueError):
        return None  # an example is an aid: no export fails for want of one


def find_embeddings(tensors: Tensors) -> Tensors | None:
    """The embeddings of a checkpoint, below whatever prefix they have."""
    ends = f"embeddings.{WORDS}"
    names = sorted(name for name in tensors.names if name.endswith(ends))
    return tensors.below(names[0].removesuffix(f".{WORDS}")) if names else None


def embed(
    vocabulary: dict[str, int], tensors: Tensors, spec: AttentionSpec, checkpoint: Checkpoint
) -> Example | None:
    """The example from a vocabulary and embeddings.

    Raises:
        CheckpointError: if a tensor is missing or unfit.
    """
    _, width = tensors.read_shape(WORDS)
    if (width, width, width) != (spec.d_model, spec.kdim, spec.vdim):
        return None
    sentences = [split_sentence(sentence, vocabulary) for sentence in SENTENCES]
    length = max(map(len, sentences))
    labels = [pieces + [PADDING] * (length - len(pieces)) for pieces in sentences]
    numbers = np.array([[vocabulary[piece] for piece in pieces] for pieces in labels])
    words = read_rows(checkpoint, tensors.prefix + WORDS, numbers.ravel())
    positions = read_rows(checkpoint, tensors.prefix + POSITIONS, range(length))
    kind = read_rows(checkpoint, tensors.prefix + KINDS, [0])
    total = words.reshape(*numbers.shape, width) + positions + kind
    epsilon = float(checkpoint.config.read_values().get("layer_norm_eps", EPSILON))
    query = normalize(total, *read_norm(tensors, width), epsilon)
    return Example({QUERY: query, KEY_MASK: numbers != vocabulary[PADDING]}, labels)


def read_rows(checkpoint: Checkpoint, name: str, rows: Iterable[int]) -> NDArray[np.float32]:
    """Rows of a tensor as float32 ``[rows, ...]``; the others, most of them, are never in memory.

    Raises:
        CheckpointError: if the file is not safetensors, or has no such row.
    """
    from safetensors import SafetensorError, safe_open

    path = checkpoint.path.with_name(checkpoint.tensors.stored[name].file)
    try:
        with safe_open(path, framework="pt") as file:
            part = file.get_slice(name)
            return np.stack([part[int(row) : int(row) + 1][0].float().numpy() for row in rows])
    except SafetensorError as error:
        raise CheckpointError(f"'{path}' cannot be read by rows: {error}") from None


def read_norm(tensors: Tensors, width: int) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """Factor and offset of the embeddings' LayerNorm: ``[D]`` each; old files call them otherwise.

    Raises:
        CheckpointError: if one is missing or unfit.
    """
    names = ("gamma", "beta") if "LayerNorm.gamma" in tensors else ("weight", "bias")
    factor, offset = (tensors.read(f"LayerNorm.{name}", width) for name in names)
    return factor, offset


def normalize(
    tokens: NDArray[np.float32],
    factor: NDArray[np.float32],
    offset: NDArray[np.float32],
    epsilon: float,
) -> NDArray[np.float32]:
    """LayerNorm over the last axis (https://arxiv.org/abs/1607.06450): ``[..., D]``."""
    exact = tokens.astype(np.float64)
    centred = exact - exact.mean(axis=-1, keepdims=True)
    spread = np.sqrt((centred**2).mean(axis=-1, keepdims=True) + epsilon)
    normalized: NDArray[np.float32] = (centred / spread * factor + offset).astype(np.float32)
    return normalized
