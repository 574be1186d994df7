"""Bodies that are broken as bytes: JSON, lengths, encodings, and how large they may be."""

import json
import socket
from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import urlsplit

import httpx
import pytest

from tests.integration.demo import D, check_close, draw_tokens, expect
from tests.integration.doors import (
    ATTENTION,
    HEADER_LENGTH,
    INFER,
    JSON,
    NPZ,
    SAFETENSORS,
    ask,
    write_v2_binary,
    write_v2_json,
)

TENSORS = draw_tokens()
BODY, HEADERS = write_v2_binary(TENSORS)
HEAD_BYTES = int(HEADERS[HEADER_LENGTH])
DATA_BYTES = len(BODY) - HEAD_BYTES
MIB = 2**20
LIMIT = 64 * MIB
DEEP = 200_000
TIMEOUT_S = 60


def describe_length(text: str) -> str:
    """The refusal of a length that is no plain number."""
    return (
        f"header {HEADER_LENGTH} is {json.dumps(text)}, expected a number of bytes in decimal "
        "digits"
    )


@pytest.mark.parametrize(
    ("length", "text"),
    [
        *(
            pytest.param(odd, describe_length(odd), id=odd or "empty")
            for odd in ("+12", "-1", "1_2", "0x10", "", "1.0", "12abc", "1 2", "9" * 19)
        ),
        pytest.param(
            str(len(BODY) + 1),
            f"header {HEADER_LENGTH} is {len(BODY) + 1}, but the body has {len(BODY)} bytes",
            id="beyond-the-body",
        ),
        pytest.param(
            "0",
            f"header {HEADER_LENGTH} is 0 (a raw binary request), but the model has several "
            "inputs: describe them in JSON",
            id="raw",
        ),
    ],
)
def test_a_header_length_that_is_no_length(client: httpx.Client, length: str, text: str) -> None:
    response = client.post(INFER, content=BODY, headers={HEADER_LENGTH: length})
    assert (response.status_code, response.json()) == (400, {"error": text})


def test_a_header_length_that_comes_twice(client: httpx.Client) -> None:
    twice = [(HEADER_LENGTH, str(HEAD_BYTES))] * 2
    response = client.post(INFER, content=BODY, headers=twice)
    text = f"header {HEADER_LENGTH} came 2 times, expected once"
    assert (response.status_code, response.json()) == (400, {"error": text})


@pytest.mark.parametrize("off", [-20, -1, 1, 20])
def test_a_header_length_that_cuts_the_json_or_the_data(client: httpx.Client, off: int) -> None:
    response = client.post(INFER, content=BODY, headers={HEADER_LENGTH: str(HEAD_BYTES + off)})
    assert response.status_code == 400
    assert "not JSON" in response.json()["error"]


def name_bytes(came: int) -> str:
    """The refusal of data of another length."""
    return f"{came} bytes follow the JSON, but the inputs' binary_data_size add up to {DATA_BYTES}"


def test_bytes_that_are_left_over(client: httpx.Client) -> None:
    response = client.post(INFER, content=BODY + b"12345", headers=HEADERS)
    text = name_bytes(DATA_BYTES + 5)
    assert (response.status_code, response.json()) == (400, {"error": text})


def test_bytes_that_are_missing(client: httpx.Client) -> None:
    response = client.post(INFER, content=BODY[:-3], headers=HEADERS)
    size, offset = TENSORS["value"].nbytes, DATA_BYTES - TENSORS["value"].nbytes
    text = (
        f"input 'value' needs {size} bytes at offset {offset} behind the JSON, but only "
        f"{DATA_BYTES - 3} follow it"
    )
    assert (response.status_code, response.json()) == (400, {"error": text})


@pytest.mark.parametrize(
    ("size", "text"),
    [
        (-4, "parameter 'binary_data_size' of input 'query' is -4, expected a number of bytes"),
        (True, "parameter 'binary_data_size' of input 'query' is true, expected a number of bytes"),
        (
            "24",
            "parameter 'binary_data_size' of input 'query' is \"24\", expected a number of bytes",
        ),
        (28, "input 'query' has binary_data_size 28, expected 24 for shape [1, 1, 6] of FP32"),
        (
            None,
            "input 'query' has neither 'data' nor parameter 'binary_data_size', expected one of "
            "them",
        ),
    ],
    ids=str,
)
def test_a_binary_data_size_that_does_not_fit(client: httpx.Client, size: Any, text: str) -> None:
    parameters = {} if size is None else {"binary_data_size": size}
    entry = {"name": "query", "shape": [1, 1, D], "datatype": "FP32", "parameters": parameters}
    head = json.dumps({"inputs": [entry]}).encode()
    headers = {HEADER_LENGTH: str(len(head))}
    response = client.post(INFER, content=head + bytes(24), headers=headers)
    assert (response.status_code, response.json()) == (400, {"error": text})


def test_data_both_in_the_json_and_behind_it(client: httpx.Client) -> None:
    body = write_v2_json({"query": TENSORS["query"]})
    body["inputs"][0]["parameters"] = {"binary_data_size": 24}
    response = client.post(INFER, json=body)
    text = "input 'query' has both 'data' and parameter 'binary_data_size', expected one of them"
    assert (response.status_code, response.json()) == (400, {"error": text})


@pytest.mark.parametrize("path", [INFER, ATTENTION])
@pytest.mark.parametrize("content_type", [None, JSON])
def test_an_empty_body(client: httpx.Client, path: str, content_type: str | None) -> None:
    headers = {"Content-Type": content_type} if content_type else {}
    response = client.post(path, content=b"", headers=headers)
    assert (response.status_code, response.json()) == (400, {"error": "the request has no body"})


@pytest.mark.parametrize("form", [NPZ, SAFETENSORS])
def test_an_empty_body_of_another_form(client: httpx.Client, form: str) -> None:
    response = client.post(ATTENTION, content=b"", headers={"Content-Type": form})
    assert (response.status_code, response.json()) == (400, {"error": "the request has no body"})


@pytest.mark.parametrize("path", [INFER, ATTENTION])
@pytest.mark.parametrize(
    "body",
    [
        pytest.param(b'{"inputs": [{"name": "que', id="truncated"),
        pytest.param(b'{"inputs": "\xff\xfe"}', id="not-utf-8"),
        pytest.param(b'{"inputs": []} {}', id="two-values"),
        pytest.param(b'{"inputs": [1,]}', id="trailing-comma"),
        pytest.param(b"{'inputs': []}", id="single-quotes"),
        pytest.param(b"\xef\xbb\xbf{}", id="byte-order-mark"),
    ],
)
def test_json_that_is_none(client: httpx.Client, path: str, body: bytes) -> None:
    response = client.post(path, content=body)
    assert response.status_code == 400
    assert response.json()["error"].startswith("the request is not JSON: ")


@pytest.mark.parametrize("path", [INFER, ATTENTION])
@pytest.mark.parametrize(
    "body",
    [
        pytest.param(b'{"query": ' + b"[" * 64 + b"]" * 64 + b"}", id="one-more"),
        pytest.param(b'{"query": ' + b"[" * DEEP + b"]" * DEEP + b"}", id="deep"),
        pytest.param(b"[" * DEEP, id="deep-and-open"),
        pytest.param(b'{"inputs": ' * DEEP, id="deep-objects"),
        pytest.param(b'{"id": NaN, "inputs": ' + b"[" * DEEP + b"]" * DEEP + b"}", id="deep-nan"),
    ],
)
def test_json_that_is_nested_too_deeply(client: httpx.Client, path: str, body: bytes) -> None:
    response = client.post(path, content=body)
    text = (
        "the request is nested too deeply: expected at most 64 lists and objects in each other "
        "(LIMELIGHT_MAX_JSON_DEPTH)"
    )
    assert (response.status_code, response.json()) == (400, {"error": text})


@pytest.mark.parametrize(
    ("body", "came"), [("[]", "a list"), ("5", "a number"), ("null", "null"), ('"x"', "a string")]
)
@pytest.mark.parametrize("path", [INFER, ATTENTION])
def test_json_that_is_no_object(client: httpx.Client, path: str, body: str, came: str) -> None:
    response = client.post(path, content=body)
    text = f"the request is {came}, expected a JSON object"
    assert (response.status_code, response.json()) == (400, {"error": text})


@pytest.mark.parametrize("coding", ["br", "zstd", "compress", "gzip, gzip"])
@pytest.mark.parametrize("path", [INFER, ATTENTION])
def test_an_unknown_content_coding_is_415(client: httpx.Client, path: str, coding: str) -> None:
    response = client.post(path, content=b"x", headers={"Content-Encoding": coding})
    assert response.status_code == 415
    text = f"Content-Encoding is '{coding}', expected gzip, deflate or none"
    assert response.json() == {"error": text}
    assert response.headers["Accept-Encoding"] == "gzip, deflate"


def test_no_coding_may_be_said(client: httpx.Client) -> None:
    headers = HEADERS | {"Content-Encoding": "identity"}
    assert client.post(INFER, content=BODY, headers=headers).status_code == 200


@pytest.mark.parametrize("path", [INFER, ATTENTION])
def test_a_body_that_is_announced_too_large_is_refused_before_it_comes(
    server_url: str, auth_headers: Mapping[str, str], path: str
) -> None:
    address, length = urlsplit(server_url), 10 * 1024 * MIB
    head = {"Host": address.netloc, "Content-Length": str(length), **auth_headers}
    lines = [f"POST {path} HTTP/1.1", *(f"{name}: {value}" for name, value in head.items())]
    with socket.create_connection((address.hostname, address.port), TIMEOUT_S) as connection:
        connection.sendall("\r\n".join([*lines, "", "few bytes"]).encode())
        answer = b""
        while b'"}' not in answer:
            part = connection.recv(65536)
            assert part, f"the connection ended after {answer!r}"
            answer += part
    assert answer.startswith(b"HTTP/1.1 413 ")
    assert f"the request body is {length} bytes, expected at most {LIMIT} bytes" in answer.decode()


@pytest.mark.parametrize("path", [INFER, ATTENTION])
def test_a_chunked_body_is_refused_where_it_grows_too_large(
    client: httpx.Client, path: str
) -> None:
    def send_parts() -> Iterator[bytes]:
        for _ in range(LIMIT // MIB + 1):
            yield b" " * MIB

    response = client.post(path, content=send_parts())
    text = (
        f"the request body is larger than allowed, expected at most {LIMIT} bytes "
        "(LIMELIGHT_MAX_REQUEST_BYTES)"
    )
    assert (response.status_code, response.json()) == (413, {"error": text})


def test_more_sequences_than_allowed(client: httpx.Client) -> None:
    tensors = draw_tokens(257, 1, 1)
    body, headers = write_v2_binary(tensors)
    response = client.post(INFER, content=body, headers=headers)
    text = "batch size is 257, expected at most 256 (LIMELIGHT_MAX_BATCH_SIZE)"
    assert (response.status_code, response.json()) == (400, {"error": text})
    fitting = draw_tokens(256, 1, 1)
    check_close(ask(client, "v2-binary", fitting), expect(fitting))


def test_more_scores_than_allowed(client: httpx.Client) -> None:
    length = 10_000
    body, headers = write_v2_binary(draw_tokens(1, length, length), parameters={"weights": "mean"})
    response = client.post(INFER, content=body, headers=headers)
    assert response.status_code == 413
    text = f"the score matrix [1, 3, {length}, {length}] takes {12 * length**2} bytes, expected at"
    assert response.json()["error"].startswith(text)
