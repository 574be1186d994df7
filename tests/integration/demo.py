"""The demo model in numpy: random requests to it, and the answers that are right."""

from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from model.contract import AttentionSpec
from model.reference import attend
from model.weights import Weights

Arrays = dict[str, NDArray[Any]]

MODEL: Final = "demo"
DEMO: Final = Weights.random(AttentionSpec(d_model=6, num_heads=3), seed=0)
# All different, so that no swapped axis can pass: batch, query length, key length, width, heads.
B, L, S, D, H = 4, 5, 7, 6, 3
TOLERANCE: Final = 1e-5


def draw_tokens(
    batch_size: int = B, query_length: int = L, key_length: int = S, seed: int = 1
) -> Arrays:
    """A query, a key and a value, all different."""
    generator = np.random.default_rng(seed)
    lengths = {"query": query_length, "key": key_length, "value": key_length}
    return {
        name: generator.standard_normal((batch_size, length, D), np.float32)
        for name, length in lengths.items()
    }


def draw_mask(*shape: int, seed: int = 2) -> NDArray[np.bool_]:
    """A mask that hides about half of the keys, but never all of a row's."""
    mask = np.random.default_rng(seed).random(shape) < 0.5
    mask[..., 0] |= ~mask.any(axis=-1)
    return mask


def draw_bias(*shape: int, seed: int = 3) -> NDArray[np.float32]:
    """A finite bias."""
    return np.random.default_rng(seed).standard_normal(shape, np.float32)


def expect(tensors: Arrays, **options: Any) -> Arrays:
    """The right outputs of a request, in float64.

    Args:
        tensors: with a batch axis.
        **options: `causal`, `weights` ("per_head" unless given), `heads` and `top_k`.
    """
    form, heads = options.pop("weights", "per_head"), options.pop("heads", [*range(H)])
    count = options.pop("top_k", None)
    arguments: dict[str, Any] = tensors | options
    output, weights = attend(DEMO, **arguments)
    weights = weights[:, heads]
    keys = np.argsort(-weights, axis=-1, kind="stable")[..., :count].astype(np.int32)
    largest = np.take_along_axis(weights, keys, axis=-1)
    forms: dict[str, Arrays] = {
        "none": {},
        "per_head": {"attention_weights": weights},
        "mean": {"attention_weights": weights.mean(axis=1)},
        "top_k": {"top_k_weights": largest, "top_k_keys": keys},
    }
    return {"output": output, **forms[form]}


def check_close(got: Arrays, wanted: Arrays) -> None:
    """Compare names, shapes, datatypes and numbers of outputs."""
    assert sorted(got) == sorted(wanted)
    for name, right in wanted.items():
        assert got[name].dtype == (np.int32 if right.dtype.kind == "i" else np.float32), name
        assert got[name].shape == right.shape, name
        np.testing.assert_allclose(got[name], right, rtol=0, atol=TOLERANCE, err_msg=name)


def check_same(got: Arrays, wanted: Arrays) -> None:
    """Compare outputs bit for bit."""
    assert sorted(got) == sorted(wanted)
    for name, right in wanted.items():
        assert got[name].shape == right.shape, name
        assert got[name].tobytes() == right.tobytes(), name
