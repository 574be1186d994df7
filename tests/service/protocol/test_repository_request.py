"""Requests of the model repository extension."""

from collections.abc import Callable

import pytest

from service.errors import InvalidRequestError, NotOfferedError
from service.protocol.repository_request import decode_index, decode_load, decode_unload

Decode = Callable[[bytes], object]
ALL: list[Decode] = [decode_index, decode_load, decode_unload]


@pytest.mark.parametrize("decode", ALL)
@pytest.mark.parametrize("text", [b"", b"{}", b' {"mine": [1]}\n', b'{"parameters": {}}'])
def test_a_body_may_be_absent_or_say_nothing(decode: Decode, text: bytes) -> None:
    decode(text)


@pytest.mark.parametrize(
    ("text", "ready"),
    [(b"", False), (b'{"ready": true}', True), (b'{"ready": false}', False), (b'{"ready": null}',
     False)],
)  # fmt: skip
def test_the_index_may_be_asked_for_what_is_ready(text: bytes, *, ready: bool) -> None:
    assert decode_index(text) is ready


@pytest.mark.parametrize(
    "text",
    [
        b'{"parameters": null}',
        b'{"parameters": {"mine": 1}}',
        b'{"parameters": {"unload_dependents": true}}',
        b'{"parameters": {"unload_dependents": false}}',
    ],
)
def test_parameters_that_change_nothing_are_taken(text: bytes) -> None:
    decode_load(text)
    decode_unload(text)


@pytest.mark.parametrize("name", ["config", "file:1/model.onnx", "file:"])
def test_what_a_load_would_bring_along_is_refused_by_name(name: str) -> None:
    with pytest.raises(NotOfferedError) as caught:
        decode_load(f'{{"parameters": {{"{name}": "x"}}}}'.encode())
    assert str(caught.value) == (
        f"parameter '{name}' is not offered: a model is loaded as it lies in the directory of "
        "models; put its files and its config.pbtxt there"
    )


@pytest.mark.parametrize("decode", ALL)
@pytest.mark.parametrize(
    ("text", "said"),
    [
        (b"{", "the request is not JSON: unexpected end of data at line 1, column 2"),
        (b"[]", "the request is a list, expected a JSON object"),
        (b"null", "the request is null, expected a JSON object"),
        (b"\xff", "the request is not JSON: "),
        (b'{"a": NaN}', "the request is not JSON: "),
        (b'{"ready": true, "ready": true}', "the request is ambiguous: 'ready' comes twice, "
         "expected once"),
    ],
)  # fmt: skip
def test_a_malformed_body_is_refused(decode: Decode, text: bytes, said: str) -> None:
    with pytest.raises(InvalidRequestError) as caught:
        decode(text)
    assert str(caught.value).startswith(said)


@pytest.mark.parametrize(
    ("decode", "text", "said"),
    [
        (decode_index, b'{"ready": 1}', "'ready' is a number, expected true or false"),
        (decode_index, b'{"ready": "true"}', "'ready' is a string, expected true or false"),
        (decode_load, b'{"parameters": []}', "'parameters' of the request is a list, expected an "
         "object"),
        (decode_load, b'{"parameters": {"a": {}}}', "parameter 'a' of the request is an object, "
         "expected a string, number or boolean"),
        (decode_unload, b'{"parameters": {"unload_dependents": null}}', "parameter "
         "'unload_dependents' of the request is null, expected a string, number or boolean"),
    ],
)  # fmt: skip
def test_a_member_of_another_type_is_refused(decode: Decode, text: bytes, said: str) -> None:
    with pytest.raises(InvalidRequestError) as caught:
        decode(text)
    assert str(caught.value) == said
