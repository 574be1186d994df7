"""Whole V2 requests: where the JSON ends, the request's own members, and damage."""

import json
from contextlib import suppress
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from service.errors import InvalidRequestError, NotOfferedError
from service.protocol.v2_outputs import WantedOutput
from service.protocol.v2_request import V2Request, decode_request

QUERY = {"name": "query", "shape": [1, 2, 3], "datatype": "FP32", "data": [1, 2, 3, 4, 5, 6]}
BINARY = QUERY | {"parameters": {"binary_data_size": 24}}
del BINARY["data"]
DATA = np.arange(6, dtype=np.float32).tobytes()


def write(**members: Any) -> bytes:
    return json.dumps({"inputs": [QUERY]} | members).encode()


def decode(**members: Any) -> V2Request:
    return decode_request(write(**members), [])


def refuse(body: bytes, *header_lengths: str) -> str:
    with pytest.raises(InvalidRequestError) as caught:
        decode_request(body, list(header_lengths))
    return str(caught.value)


def test_a_json_request() -> None:
    asked = decode(id="7", parameters={"causal": True, "timeout": 5000, "foo": 1})
    assert asked.id == "7"
    assert asked.inference.tensors["query"].tolist() == [[[1, 2, 3], [4, 5, 6]]]
    assert (asked.inference.causal, asked.inference.weights) == ("top_left", "per_head")
    assert [output.name for output in asked.outputs] == ["output", "attention_weights"]


def test_a_binary_request() -> None:
    text = write(inputs=[BINARY])
    body = text + DATA
    asked = decode_request(body, [str(len(text))])
    found = asked.inference.tensors["query"]
    assert found.tolist() == [[[0, 1, 2], [3, 4, 5]]]
    assert np.shares_memory(found, np.frombuffer(body, np.uint8))


def test_the_header_may_say_that_all_is_json() -> None:
    body = write()
    assert decode_request(body, [str(len(body))]).outputs == decode().outputs


@pytest.mark.parametrize("identity", ["", "7", "\N{GRINNING FACE}", "7\n8"])
def test_the_id_is_kept(identity: str) -> None:
    assert decode(id=identity).id == identity


def test_there_may_be_no_id() -> None:
    assert decode().id == decode(id=None).id == ""


@pytest.mark.parametrize(("value", "kind"), [(7, "a number"), (True, "a boolean")])
def test_an_id_is_a_string(value: object, kind: str) -> None:
    assert refuse(write(id=value)) == f"'id' is {kind}, expected a string"


@pytest.mark.parametrize("form", ["per_head", "mean"])
def test_the_form_of_the_weights_is_a_parameter(form: str) -> None:
    assert decode(parameters={"weights": form}).inference.weights == form


def test_weights_that_are_not_asked_for_are_not_computed() -> None:
    asked = decode(outputs=[{"name": "output"}])
    assert asked.inference.weights == "none"
    assert asked.outputs == (WantedOutput("output", binary=False),)
    assert decode(parameters={"weights": "none"}).inference.weights == "none"


def test_weights_cannot_be_asked_for_and_left_out() -> None:
    body = write(parameters={"weights": "none"}, outputs=[{"name": "attention_weights"}])
    assert refuse(body) == (
        "parameter 'weights' is \"none\", but the output 'attention_weights' is asked for; "
        "leave one of the two out"
    )


@pytest.mark.parametrize(
    ("parameters", "said"),
    [
        (
            {"causal": "left"},
            "parameter 'causal' is \"left\", expected true, false, "
            '"top_left" (as true) or "bottom_right"',
        ),
        (
            {"weights": True},
            'parameter \'weights\' is true, expected "none", "per_head" or "mean"',
        ),
        ({"causal": None}, "parameter 'causal' of the request is null, expected a string, number "
         "or boolean"),
    ],
)  # fmt: skip
def test_parameters_of_the_contract_are_checked(parameters: dict[str, Any], said: str) -> None:
    assert refuse(write(parameters=parameters)) == said


@pytest.mark.parametrize(
    ("header_lengths", "said"),
    [
        (["5", "5"], "header Inference-Header-Content-Length came 2 times, expected once"),
        (["+5"], 'header Inference-Header-Content-Length is "+5", expected a number of bytes in '
         "decimal digits"),
        (["\N{SUPERSCRIPT TWO}"], 'header Inference-Header-Content-Length is "\N{SUPERSCRIPT TWO}",'
         " expected a number of bytes in decimal digits"),
        ([""], 'header Inference-Header-Content-Length is "", expected a number of bytes in '
         "decimal digits"),
        (["9" * 19], f'header Inference-Header-Content-Length is "{"9" * 19}", expected a number '
         "of bytes in decimal digits"),
        (["0"], "header Inference-Header-Content-Length is 0 (a raw binary request), but the "
         "model has several inputs: describe them in JSON"),
        (["9999"], f"header Inference-Header-Content-Length is 9999, but the body has "
         f"{len(write())} bytes"),
    ],
)  # fmt: skip
def test_a_header_that_cannot_be_is_refused(header_lengths: list[str], said: str) -> None:
    assert refuse(write(), *header_lengths) == said


def test_a_header_that_ends_within_the_json_is_refused() -> None:
    body = write()
    assert refuse(body, str(len(body) - 1)).startswith("the request is not JSON: ")


def test_tokens_of_load_tools_are_numbers() -> None:
    body = write().replace(b'"data": [1, 2,', b'"data": [NaN, -Infinity,')
    found = decode_request(body, []).inference.tensors["query"]
    np.testing.assert_array_equal(found.ravel(), [np.nan, -np.inf, 3, 4, 5, 6])


@pytest.mark.parametrize("member", ["inputs", "outputs", "parameters", "id"])
@pytest.mark.parametrize("value", [1, {}, [], [1], [{}], "a", None, True, {"a": None}])
def test_every_member_may_be_anything_and_nothing_breaks(member: str, value: object) -> None:
    with suppress(InvalidRequestError, NotOfferedError):
        decode(**{member: value})


@given(st.data())
def test_a_damaged_request_is_read_or_refused(data: st.DataObject) -> None:
    text = write(inputs=[BINARY], id="7", parameters={"causal": True})
    body = bytearray(text + DATA)
    place = data.draw(st.integers(0, len(body) - 1))
    body[place] = data.draw(st.integers(0, 255))
    cut = data.draw(st.integers(0, len(body)))
    with suppress(InvalidRequestError, NotOfferedError):
        decode_request(bytes(body[:cut]), [str(len(text))])


@given(st.binary(max_size=60), st.lists(st.text(max_size=4), max_size=2))
@example(b"{}", ["2"])
@example(b"[]", [])
def test_any_bytes_are_read_or_refused(body: bytes, header_lengths: list[str]) -> None:
    with pytest.raises(InvalidRequestError):
        decode_request(body, header_lengths)
