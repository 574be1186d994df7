"""Whole V2 requests: where the JSON ends, the request's own members, and damage."""

import json
from contextlib import suppress
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from service.errors import InvalidRequestError, NotOfferedError
from service.inference import NO_WEIGHTS, Schedule, WantedWeights, WeightsForm
from service.protocol.v2_layout import V2Request
from service.protocol.v2_outputs import WantedOutput
from service.protocol.v2_request import decode_request

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
    assert asked.inference.causal == "top_left"
    assert asked.inference.weights == WantedWeights("per_head")
    assert [output.name for output in asked.outputs] == ["output", "attention_weights"]


def test_a_request_says_how_it_wants_to_wait() -> None:
    assert decode(parameters={"timeout": 5000, "priority": 2}).schedule == Schedule(2, 5000)
    assert decode().schedule == Schedule(0, None)


def test_a_request_of_a_sequence_is_not_offered() -> None:
    with pytest.raises(NotOfferedError, match=r"^parameter 'sequence_id' is 7, but sequences "):
        decode(parameters={"sequence_id": 7})


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
def test_the_form_of_the_weights_is_a_parameter(form: WeightsForm) -> None:
    assert decode(parameters={"weights": form}).inference.weights == WantedWeights(form)


def test_weights_that_are_not_asked_for_are_not_computed() -> None:
    asked = decode(outputs=[{"name": "output"}])
    assert asked.inference.weights == NO_WEIGHTS
    assert asked.outputs == (WantedOutput("output", binary=False),)
    assert decode(parameters={"weights": "none"}).inference.weights == NO_WEIGHTS


def test_weights_cannot_be_asked_for_and_left_out() -> None:
    body = write(parameters={"weights": "none"}, outputs=[{"name": "attention_weights"}])
    assert refuse(body) == (
        "parameter 'weights' is \"none\", but the output 'attention_weights' is asked for, "
        "expected some of output; change one of the two"
    )


def test_heads_and_the_number_of_keys_are_parameters() -> None:
    asked = decode(parameters={"weights": "top_k", "heads": "2,0", "top_k": 3})
    assert asked.inference.weights == WantedWeights("top_k", (2, 0), 3)
    assert [output.name for output in asked.outputs] == ["output", "top_k_weights", "top_k_keys"]
    assert decode(parameters={"heads": "1"}).inference.weights == WantedWeights("per_head", (1,))


@pytest.mark.parametrize("name", ["top_k_weights", "top_k_keys"])
def test_one_of_the_two_outputs_of_the_largest_weights_is_enough(name: str) -> None:
    asked = decode(parameters={"weights": "top_k", "top_k": 3}, outputs=[{"name": name}])
    assert asked.inference.weights == WantedWeights("top_k", None, 3)
    assert asked.outputs == (WantedOutput(name, binary=False),)


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
            'parameter \'weights\' is true, expected "none", "per_head", "mean" or "top_k"',
        ),
        (
            {"heads": 0},
            "parameter 'heads' is 0, expected the numbers of heads with commas between them, "
            'as "0,3"; leave it out for all of them',
        ),
        (
            {"heads": [0]},
            "parameter 'heads' of the request is a list, expected a string, number or boolean",
        ),
        (
            {"weights": "none", "heads": "0"},
            "parameter 'heads' is given, but parameter 'weights' is \"none\", expected "
            '"per_head", "mean" or "top_k" beside it; change one of the two',
        ),
        (
            {"weights": "top_k", "top_k": "2"},
            "parameter 'top_k' is \"2\", expected a whole number from 1 to 2147483647",
        ),
        (
            {"top_k": 2},
            "parameter 'top_k' is given, but parameter 'weights' is \"per_head\", expected "
            '"top_k" beside it; change one of the two',
        ),
        (
            {"timeout": "5s"},
            "parameter 'timeout' is \"5s\", expected a whole number of microseconds from 0 to "
            "9223372036854775807",
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


@pytest.mark.parametrize("blanks", [" ", "\t \t"])
def test_blanks_around_the_header_do_not_count(blanks: str) -> None:
    """RFC 9110, 5.5; httptools leaves those that follow a value."""
    body = write()
    assert decode_request(body, [f"{len(body)}{blanks}"]).inference.tensors.keys() == {"query"}


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
