"""Requests of /v1/attention: one meaning in three forms, with or without a batch axis."""

import io
import json
from contextlib import suppress
from typing import Any

import numpy as np
import pytest
import safetensors.numpy
from hypothesis import given
from hypothesis import strategies as st

from service.errors import InvalidRequestError, RequestTooLargeError
from service.inference import NO_WEIGHTS, Inference, WantedWeights
from service.protocol.attention_request import AttentionRequest, decode_request
from service.protocol.forms import Form

B, L, S, D, H = 4, 5, 7, 6, 3
MAX_BYTES = 2**20
BATCHED = {
    "query": (B, L, D), "key": (B, S, D), "value": (B, S, D), "mask": (B, H, L, S),
    "key_mask": (B, S), "bias": (B, L, S),
}  # fmt: skip
UNBATCHED = {
    "query": (L, D), "key": (S, D), "value": (S, D), "mask": (H, L, S), "key_mask": (S,),
    "bias": (L, S),
}  # fmt: skip


def draw(shapes: dict[str, tuple[int, ...]]) -> dict[str, Any]:
    generator = np.random.default_rng(1)
    return {
        name: generator.random(shape) < 0.7
        if "mask" in name
        else generator.standard_normal(shape).astype(np.float32)
        for name, shape in shapes.items()
    }


def write(tensors: dict[str, Any], form: Form) -> bytes:
    if form == "json":
        return json.dumps({name: array.tolist() for name, array in tensors.items()}).encode()
    if form == "safetensors":
        return safetensors.numpy.save(tensors)
    stream = io.BytesIO()
    np.savez(stream, allow_pickle=False, **tensors)
    return stream.getvalue()


def decode(body: bytes, form: Form = "json", **options: Any) -> AttentionRequest:
    return decode_request(body, form, options, MAX_BYTES)


def decode_json(**members: Any) -> AttentionRequest:
    return decode(json.dumps({"query": [[1.5] * D] * L} | members).encode())


def refuse(body: bytes, form: Form = "json", **options: Any) -> str:
    with pytest.raises(InvalidRequestError) as caught:
        decode(body, form, **options)
    return str(caught.value)


def refuse_json(**members: Any) -> str:
    return refuse(json.dumps({"query": [[1.5] * D] * L} | members).encode())


def check_tensors(asked: Inference, wanted: dict[str, Any]) -> None:
    assert asked.tensors.keys() == wanted.keys()
    for name, array in wanted.items():
        assert asked.tensors[name].dtype == array.dtype, name
        assert asked.tensors[name].shape == array.shape, name
        assert asked.tensors[name].tobytes() == array.tobytes(), name


@pytest.mark.parametrize("form", ["json", "npz", "safetensors"])
def test_three_forms_have_one_meaning(form: Form) -> None:
    tensors = draw(BATCHED)
    asked = decode(write(tensors, form), form)
    check_tensors(asked.inference, tensors)
    assert asked.batched
    assert asked.converted == {}
    assert (asked.model, asked.version) == (None, None)
    assert (asked.inference.causal, asked.inference.weights) == (None, NO_WEIGHTS)


@pytest.mark.parametrize("form", ["json", "npz", "safetensors"])
def test_tensors_without_a_batch_axis_get_one(form: Form) -> None:
    tensors = draw(UNBATCHED)
    asked = decode(write(tensors, form), form)
    wanted = {n: a if n == "bias" else a[None] for n, a in tensors.items()}
    check_tensors(asked.inference, wanted)
    assert not asked.batched


@pytest.mark.parametrize(
    ("shape", "wide"), [((1, S), (1, S)), ((L, S), (L, S)), ((H, 1, S), (1, H, 1, S))]
)
@pytest.mark.parametrize("name", ["mask", "bias"])
def test_a_mask_of_two_axes_needs_no_batch_axis(
    name: str, shape: tuple[int, ...], wide: tuple[int, ...]
) -> None:
    tensors = draw({"query": (L, D), "key": (S, D), name: shape})
    assert decode(write(tensors, "npz"), "npz").inference.tensors[name].shape == wide


@pytest.mark.parametrize(
    ("name", "shape"),
    [("key", (1, S, D)), ("value", (1, S, D)), ("key_mask", (1, S)), ("mask", (1, 1, L, S)),
     ("bias", (1, H, L, S)), ("mask", (S,))],
)  # fmt: skip
def test_all_tensors_have_a_batch_axis_or_none(name: str, shape: tuple[int, ...]) -> None:
    tensors = draw({"query": (L, D), name: shape})
    assert refuse(write(tensors, "npz"), "npz") == (
        f"input '{name}' has shape {list(shape)} beside a query without a batch axis; leave the "
        "batch axis out of all tensors, or of none"
    )


@pytest.mark.parametrize("form", ["npz", "safetensors"])
def test_other_floats_are_converted_and_it_is_noted(form: Form) -> None:
    tensors = draw(BATCHED)
    tensors["query"] = tensors["query"].astype(np.float64)
    tensors["bias"] = tensors["bias"].astype(np.float16)
    asked = decode(write(tensors, form), form)
    assert asked.converted == {"query": "FP64", "bias": "FP16"}
    assert asked.inference.tensors["query"].dtype == np.float32
    assert asked.inference.tensors["bias"].dtype == np.float32


@pytest.mark.parametrize("form", ["npz", "safetensors"])
def test_a_float_mask_becomes_bool_and_an_integer_mask_is_left_to_the_engine(form: Form) -> None:
    tensors = draw(BATCHED)
    mask = tensors["mask"]
    tensors["mask"] = mask.astype(np.float32)
    tensors["key_mask"] = tensors["key_mask"].astype(np.int64)
    found = decode(write(tensors, form), form).inference.tensors
    assert found["mask"].dtype == np.bool_
    np.testing.assert_array_equal(found["mask"], mask)
    assert found["key_mask"].dtype == np.int64


def test_a_json_mask_takes_four_spellings_and_floats_of_the_same_value() -> None:
    assert decode_json(mask=[[True, 0, 1, False, 1]]).inference.tensors["mask"].tolist() == [
        [True, False, True, False, True]
    ]
    found = decode_json(mask=[[1.0, 0.0, 1, 0, 1]]).inference.tensors["mask"]
    assert found.dtype == np.bool_
    assert found.tolist() == [[True, False, True, False, True]]


@pytest.mark.parametrize(
    ("members", "said"),
    [
        ({"mask": [[True, 2]]}, "input 'mask' holds 2 at element 1, expected true, false, 1 or 0"),
        ({"mask": [[0.5, 1]]}, "input 'mask' holds 0.5 at [0, 0], expected 0 or 1; additive "
         "values go into 'bias'"),
        ({"mask": [["a", 1]]}, "input 'mask' holds a string at element 0, expected true, false, "
         "0 or 1"),
        ({"mask": [[None, True]]}, "input 'mask' holds null at element 0, expected true, false, "
         "0 or 1"),
        ({"mask": True}, "input 'mask' is a boolean, expected nested lists"),
        ({"query": {"data": []}}, "input 'query' is an object, expected nested lists"),
        ({"query": [[True]]}, "input 'query' holds a boolean at element 0, expected numbers for "
         "FP32"),
        ({"query": [[1e39]]}, "input 'query' holds 1e+39 at element 0, which FP32 cannot hold"),
        ({"query": [[1, 2], [3]]}, "input 'query' has lists of 1 and of 2 elements beside each "
         "other at depth 1, expected one length"),
        ({"query": None}, "input 'query' is missing"),
        ({"mask_": []}, "input 'mask_' is unknown, expected some of query, key, value, mask, "
         "key_mask, bias"),
        ({"format": "npz"}, "input 'format' is unknown, expected some of query, key, value, mask, "
         "key_mask, bias"),
        ({"causal": 1}, "parameter 'causal' is 1, expected true, false, \"top_left\" (as true) or "
         '"bottom_right"'),
        ({"weights": True}, 'parameter \'weights\' is true, expected "none", "per_head", "mean" or '
         '"top_k"'),
        ({"weights": "all"}, 'parameter \'weights\' is "all", expected "none", "per_head", "mean" '
         'or "top_k"'),
        ({"weights": "mean", "heads": [0, 0]}, "parameter 'heads' holds 0 twice, expected it once"),
        ({"weights": "top_k", "top_k": 2.0}, "parameter 'top_k' is 2.0, expected a whole number "
         "from 1 to 2147483647"),
        ({"weights": "top_k"}, "parameter 'weights' is \"top_k\", but parameter 'top_k' is missing"
         ", expected how many keys of each row; change one of the two"),
        ({"model": 1}, "option 'model' is 1, expected a string"),
        ({"version": 1}, "option 'version' is 1, expected a string"),
    ],
)  # fmt: skip
def test_a_malformed_json_member_is_refused(members: dict[str, Any], said: str) -> None:
    assert refuse_json(**members) == said


def test_foreign_names_are_translated_in_every_form() -> None:
    assert refuse_json(attention_mask=[[1]]).startswith(
        "input 'attention_mask' is not known here: send 'key_mask' [batch_size, key_length]"
    )
    tensors = draw(BATCHED) | {"attn_mask": np.ones((L, S), bool)}
    assert refuse(write(tensors, "npz"), "npz").startswith(
        "input 'attn_mask' is not known here: send 'mask'"
    )


def test_null_is_the_same_as_absent() -> None:
    asked = decode_json(
        key=None,
        mask=None,
        causal=None,
        weights=None,
        heads=None,
        top_k=None,
        model=None,
        version=None,
    )
    assert asked.inference.tensors.keys() == {"query"}
    assert (asked.inference.causal, asked.inference.weights) == (None, NO_WEIGHTS)
    assert (asked.model, asked.version) == (None, None)


def test_options_come_in_the_body() -> None:
    options = {"weights": "top_k", "heads": [2, 0], "top_k": 3}
    asked = decode_json(causal=True, model="demo", version="1", **options)
    assert asked.inference.causal == "top_left"
    assert asked.inference.weights == WantedWeights("top_k", (2, 0), 3)
    assert (asked.model, asked.version) == ("demo", "1")


@pytest.mark.parametrize("form", ["json", "npz", "safetensors"])
def test_options_come_in_the_query_string(form: Form) -> None:
    body = write(draw(BATCHED), form)
    options = {"causal": "bottom_right", "weights": "per_head", "heads": (1,)}
    asked = decode(body, form, **options, model="a", version="2")
    assert asked.inference.causal == "bottom_right"
    assert asked.inference.weights == WantedWeights("per_head", (1,))
    assert (asked.model, asked.version) == ("a", "2")


@pytest.mark.parametrize("member", ['"mask": [[1, 0]]', '"causal": true', '"query": [[1]]'])
def test_a_member_comes_once(member: str) -> None:
    name = member.split('"')[1]
    body = f'{{"query": [[1]], "model": "mask", {member}, {member}}}'
    assert refuse(body.encode()) == (
        f"the request is ambiguous: '{name}' comes twice, expected once"
    )


def test_an_option_may_be_called_like_a_member() -> None:
    assert decode_json(model="mask", mask=[[1] * L] * L).model == "mask"


def test_an_option_comes_once() -> None:
    body = b'{"query": [[1]], "causal": true}'
    assert refuse(body, causal=False) == (
        "option 'causal' is in the query string and in the body, expected once"
    )
    assert decode(b'{"query": [[1]], "causal": null}', causal="top_left").inference.causal


@pytest.mark.parametrize("token", ["NaN", "Infinity", "-Infinity"])
def test_tokens_that_are_no_json_are_refused_with_the_cure(token: str) -> None:
    assert refuse(b'{"query": [[%s]]}' % token.encode()) == (
        "the request is not JSON: it holds NaN or Infinity, which JSON cannot say; send npz or "
        "safetensors, and to hide a key a mask or a bias of -1e30"
    )


def test_an_archive_beyond_the_bound_is_refused() -> None:
    with pytest.raises(RequestTooLargeError):
        decode_request(write(draw(BATCHED), "npz"), "npz", {}, 100)


@pytest.mark.parametrize("form", ["json", "npz", "safetensors"])
@given(data=st.data())
def test_a_damaged_body_is_read_or_refused(form: Form, data: st.DataObject) -> None:
    body = bytearray(write(draw({"query": (2, D), "mask": (2, 2)}), form))
    body[data.draw(st.integers(0, len(body) - 1))] = data.draw(st.integers(0, 255))
    with suppress(InvalidRequestError, RequestTooLargeError):
        decode(bytes(body), form)
