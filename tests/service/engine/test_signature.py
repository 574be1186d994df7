"""The tensor contract: what a model takes, what stands in for what, and every refusal."""

from typing import Any

import numpy as np
import pytest

from model.contract import AttentionSpec
from service.engine.signature import Prepared, check_request
from service.engine.sizes import Limits
from service.errors import InvalidRequestError
from service.inference import Inference, WantedWeights, WeightsForm

B, L, S, D, H = 4, 5, 7, 6, 3
KDIM, VDIM = 8, 10
SPEC = AttentionSpec(D, H)
UNLIKE = AttentionSpec(D, H, KDIM, VDIM)
LIMITS = Limits(256, 2**20, 2**30, 2**30)


def floats(*shape: int) -> Any:
    return np.random.default_rng(3).standard_normal(shape).astype(np.float32)


def prepare(spec: AttentionSpec = SPEC, **tensors: Any) -> Prepared:
    return check_request(spec, LIMITS, Inference({"query": floats(B, L, D)} | tensors))


def refuse(spec: AttentionSpec = SPEC, **tensors: Any) -> str:
    with pytest.raises(InvalidRequestError) as caught:
        prepare(spec, **tensors)
    return str(caught.value)


def test_query_key_and_value_may_all_differ_in_width() -> None:
    key, value = floats(B, S, KDIM), floats(B, S, VDIM)
    found = prepare(UNLIKE, key=key, value=value)
    assert (found.key is key, found.value is value) == (True, True)


def test_an_absent_key_is_the_query_and_an_absent_value_the_key() -> None:
    alone = prepare()
    assert alone.key is alone.query
    assert alone.value is alone.query
    key = floats(B, S, D)
    assert prepare(key=key).value is key


def test_a_value_without_a_key_has_the_tokens_of_the_query() -> None:
    value = floats(B, L, D)
    found = prepare(value=value)
    assert found.key is found.query
    assert found.value is value
    assert refuse(value=floats(B, S, D)) == (
        "input 'value' has 7 tokens, expected 5 as query (which stands in for the absent key)"
    )


def test_a_key_or_value_of_another_width_must_come() -> None:
    assert refuse(UNLIKE) == (
        "input 'key' is missing, and the query cannot stand in for it: this model's keys are 8 "
        "wide, its queries 6"
    )
    assert refuse(UNLIKE, key=floats(B, S, KDIM)) == (
        "input 'value' is missing, and the key cannot stand in for it: this model's values are 10 "
        "wide, its keys 8"
    )
    assert refuse(AttentionSpec(D, H, KDIM, D), value=floats(B, S, D)).startswith(
        "input 'key' is missing"
    )


@pytest.mark.parametrize(
    ("shape", "expected"),
    [
        ((L, D), "[batch_size, query_length, 6]"),
        ((B, L, D + 1), "[batch_size, query_length, 6]"),
        ((B, L, 0), "[batch_size, query_length, 6]"),
        ((1, B, L, D), "[batch_size, query_length, 6]"),
        ((), "[batch_size, query_length, 6]"),
        ((0, L, D), "no axis of size 0"),
        ((B, 0, D), "no axis of size 0"),
    ],
)
def test_a_query_of_another_shape_is_refused(shape: tuple[int, ...], expected: str) -> None:
    assert refuse(query=np.zeros(shape, np.float32)) == (
        f"input 'query' has shape {list(shape)}, expected {expected}"
    )


@pytest.mark.parametrize(
    ("tensors", "said"),
    [
        ({"key": floats(B, S, D), "value": floats(B, S, VDIM)}, "input 'key' has shape [4, 7, 6], "
         "expected [batch_size, key_length, 8]"),
        ({"key": floats(B, S, KDIM), "value": floats(B, S, KDIM)}, "input 'value' has shape "
         "[4, 7, 8], expected [batch_size, key_length, 10]"),
        ({"key": floats(B, S, KDIM), "value": floats(B, S + 1, VDIM)}, "input 'value' has 8 "
         "tokens, expected 7 as key"),
        ({"key": floats(1, S, KDIM), "value": floats(B, S, VDIM)}, "input 'key' has batch size 1, "
         "expected 4 as query; tensors are [batch_size, length, width]"),
        ({"key": floats(B, S, KDIM), "value": floats(3, S, VDIM)}, "input 'value' has batch size "
         "3, expected 4 as query; tensors are [batch_size, length, width]"),
        ({"key": floats(B, 0, KDIM), "value": floats(B, 0, VDIM)}, "input 'key' has shape "
         "[4, 0, 8], expected no axis of size 0"),
    ],
)  # fmt: skip
def test_a_key_or_value_that_does_not_fit_is_refused(tensors: dict[str, Any], said: str) -> None:
    assert refuse(UNLIKE, **tensors) == said


@pytest.mark.parametrize("name", ["query", "key", "value"])
@pytest.mark.parametrize(("dtype", "shown"), [("f8", "FP64"), ("i8", "INT64"), ("f2", "FP16")])
def test_tokens_are_float32(name: str, dtype: str, shown: str) -> None:
    tensors: dict[str, Any] = {name: np.zeros((B, L, D), dtype)}
    assert refuse(**tensors) == (
        f"input '{name}' has datatype {shown}, expected FP32: convert it before sending "
        "(/v1/attention converts FP16 and FP64 itself)"
    )


def test_names_are_checked_before_anything_else() -> None:
    assert refuse(query=np.zeros(3), mask_=np.zeros(3)).startswith("input 'mask_' is unknown")


def test_hiding_and_form_are_passed_on() -> None:
    tensors = {
        "query": floats(B, L, D), "key": floats(B, S, D), "mask": np.ones((L, S), bool),
        "key_mask": np.ones((B, S), np.int64), "bias": floats(B, L, S),
    }  # fmt: skip
    found = check_request(SPEC, LIMITS, Inference(tensors, "bottom_right", WantedWeights("mean")))
    hiding = found.hiding
    assert (hiding.causal, found.weights) == ("bottom_right", WantedWeights("mean"))
    assert hiding.mask is not None
    assert hiding.key_mask is not None
    assert hiding.bias is not None
    assert (hiding.mask.shape, hiding.bias.shape) == ((1, 1, L, S), (B, 1, L, S))
    assert hiding.key_mask.shape == (B, S)
    assert hiding.key_mask.dtype == np.bool_


def test_memory_is_counted_once_for_a_tensor_that_stands_in_for_others() -> None:
    assert prepare().size_bytes == 4 * B * L * D
    everything = prepare(
        key=floats(B, S, D),
        value=floats(B, S, D),
        mask=np.ones((L, S), bool),
        key_mask=np.ones((B, S), bool),
        bias=floats(1, S),
    )
    assert everything.size_bytes == 4 * B * (L + S + S) * D + L * S + B * S + 4 * S


def test_a_request_says_how_many_rows_it_has() -> None:
    assert prepare(key=floats(B, S, D)).rows == B


@pytest.mark.parametrize("form", ["per_head", "mean", "top_k"])
def test_heads_that_the_model_does_not_have_are_refused(form: WeightsForm) -> None:
    def ask(*heads: int) -> Prepared:
        weights = WantedWeights(form, heads, 2 if form == "top_k" else None)
        return check_request(SPEC, LIMITS, Inference({"query": floats(B, L, D)}, weights=weights))

    assert ask(2, 0).weights.heads == (2, 0)
    with pytest.raises(InvalidRequestError) as caught:
        ask(0, 3)
    assert str(caught.value) == (
        "parameter 'heads' holds 3, expected numbers from 0 to 2: the model has 3 heads"
    )
