"""What is parsed as a whole is bounded, and tensors as they should be are not."""

import json

import pytest

from service.errors import InvalidRequestError
from service.protocol import json_extent
from service.protocol.json_extent import MAX_CONTAINERS, MAX_VALUES, check_extent
from service.protocol.json_text import parse_object
from service.protocol.v2_request import decode_request

ADVICE = "where not all of them are tensors; send less at once, or binary data"


def refuse(text: bytes) -> str:
    with pytest.raises(InvalidRequestError) as caught:
        check_extent(text, "the request")
    return str(caught.value)


def test_the_most_is_taken_and_one_more_is_refused() -> None:
    check_extent(b"[" * MAX_CONTAINERS, "the request")
    check_extent(b"," * (MAX_VALUES - 1), "the request")
    assert refuse(b"[{" * (MAX_CONTAINERS // 2) + b"{") == (
        "the request is not as requests are, and too long to say in what: it has 524289 lists and "
        f"objects, expected at most 524288 {ADVICE}"
    )
    assert refuse(b"," * MAX_VALUES) == (
        "the request is not as requests are, and too long to say in what: it has 4194305 values, "
        f"expected at most 4194304 {ADVICE}"
    )


@pytest.mark.parametrize("inner", [{"a": 1}, [[[1]]]], ids=["objects", "lists"])
def test_what_is_no_tensor_is_refused_before_it_is_parsed(inner: object) -> None:
    text = json.dumps({"inputs": [], "mine": [inner] * MAX_CONTAINERS}).encode()
    with pytest.raises(InvalidRequestError):
        parse_object(text, what="the request", non_finite=True)


def test_a_tensor_of_any_length_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(json_extent, "MAX_VALUES", 30)
    monkeypatch.setattr(json_extent, "MAX_CONTAINERS", 20)
    entry = {"name": "query", "datatype": "FP32", "shape": [1, 900, 2]}
    rows = [[[row, 0.5] for row in range(900)]]
    text = json.dumps({"inputs": [entry | {"data": rows}]}).encode()
    assert decode_request(text, []).inference.tensors["query"].tolist() == rows
    odd = text.replace(b"0.5]", b"0.5, 1]", 1)
    with pytest.raises(InvalidRequestError):
        decode_request(odd, [])
