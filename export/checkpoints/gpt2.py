"""GPT-2, https://github.com/openai/gpt-2, in the form that Hugging Face gave it."""

from collections.abc import Iterable

from export.checkpoints.config import Config
from export.checkpoints.family import Family, find_prefixes
from export.checkpoints.packed import join_maps, read_maps
from export.checkpoints.plain import check_plain, name_parts
from export.checkpoints.settings import check_model_type, check_settings
from export.checkpoints.tensors import Tensors
from export.errors import CheckpointError
from model.weights import Weights

TYPES = ("gpt2",)
PLAIN = {"scale_attn_weights": True, "scale_attn_by_inverse_layer_idx": False}
# Not biases: the causal mask, and the number that it puts into the scores.
BUFFERS = ("bias", "masked_bias")
MAPS = ("q_attn", "c_attn", "c_proj")


def find(names: Iterable[str]) -> set[str]:
    """Layers such as ``h.3.attn``, or ``h.3.crossattention`` in a decoder."""
    return find_prefixes(names, "c_attn.weight")


def read(tensors: Tensors, config: Config) -> Weights:
    """Read ``c_attn`` and ``c_proj``, and in cross attention ``q_attn``.

    They are Conv1D, which stores ``[inputs, outputs]``. Self attention is causal; a query that
    comes with keys of its past is the last of them, so the alignment is at the bottom right.

    Raises:
        CheckpointError: if a tensor is missing, unfit or unknown, or ``config.json`` tells of
            scores of another scale or of another network.
    """
    check_settings(config, PLAIN)
    check_model_type(config, TYPES)
    if "q_attn.weight" in tensors:
        weights = read_cross_attention(tensors, config)
    else:
        weights = read_self_attention(tensors, config)
    check_plain(tensors, (*name_parts(*MAPS), *BUFFERS))
    return weights


def read_self_attention(tensors: Tensors, config: Config) -> Weights:
    """``c_attn`` holds query, key and value in turn."""
    _, d_model = read_widths(tensors, 3)
    spec = config.make_spec(d_model, d_model, d_model, causal="bottom_right")
    query, key, value = read_maps(tensors, "c_attn", d_model, d_model, count=3, transposed=True)
    (output,) = read_maps(tensors, "c_proj", d_model, d_model, count=1, transposed=True)
    return join_maps(spec, query, key, value, output)


def read_cross_attention(tensors: Tensors, config: Config) -> Weights:
    """``c_attn`` holds key and value in turn."""
    width, d_model = read_widths(tensors, 2)
    spec = config.make_spec(d_model, width, width)
    (query,) = read_maps(tensors, "q_attn", d_model, d_model, count=1, transposed=True)
    key, value = read_maps(tensors, "c_attn", d_model, width, count=2, transposed=True)
    (output,) = read_maps(tensors, "c_proj", d_model, d_model, count=1, transposed=True)
    return join_maps(spec, query, key, value, output)


def read_widths(tensors: Tensors, count: int) -> tuple[int, int]:
    """Inputs and outputs of each of the `count` maps in ``c_attn``.

    Raises:
        CheckpointError: if it is stored as ``nn.Linear`` stores it, as nanoGPT and StarCoder do;
            theirs need not hold query, key and value in turn.
    """
    inputs, outputs = tensors.read_shape("c_attn.weight")
    if outputs % count or outputs < inputs:
        raise CheckpointError(
            f"tensor {tensors.prefix + 'c_attn.weight'!r} of {tensors.file!r} has shape "
            f"{[inputs, outputs]}, expected [d_model, {count} * d_model], as the Conv1D of GPT-2 "
            "stores it; of nn.Linear (nanoGPT, StarCoder) it is not known what the rows hold"
        )
    return inputs, outputs // count


GPT2 = Family("GPT-2", "c_attn, c_proj, in cross attention q_attn", find, read)
