"""Valid requests with something changed: never a fault of the server, never a wrong number."""

import json
import os
from dataclasses import dataclass, replace
from typing import Any

import httpx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.integration.demo import Arrays, check_close, draw_bias, draw_mask, draw_tokens, expect
from tests.integration.doors import (
    ATTENTION,
    HEADER_LENGTH,
    INFER,
    JSON,
    NPZ,
    SAFETENSORS,
    read_answer,
    write_nested,
    write_npz,
    write_safetensors,
    write_v2_binary,
    write_v2_json,
)
from tests.integration.requests_as_read import is_tame, read_request

B, L, S = 2, 3, 4
TENSORS: Arrays = draw_tokens(B, L, S) | {
    "mask": draw_mask(B, 1, L, S),
    "key_mask": np.arange(S) < np.array([4, 2])[:, None],
    "bias": draw_bias(1, 3, L, S),
}
EXAMPLES = int(os.environ.get("LIMELIGHT_TEST_EXAMPLES", "100"))
LEAKS = ("Traceback", 'File "', "site-packages", "/opt/", "/usr/", ".py", "0x7f")
PIECES = [b"null", b"true", b"-1", b"[", b"]", b"{", b'"', b"1e400", b"NaN"]


@dataclass(frozen=True)
class Request:
    """A request as it goes over the wire."""

    path: str
    body: bytes
    headers: dict[str, str]
    query: dict[str, str]


BINARY_BODY, BINARY_HEADERS = write_v2_binary(TENSORS, parameters={"binary_data_output": True})
REQUESTS = {
    "v2-json": Request(INFER, json.dumps(write_v2_json(TENSORS)).encode(), {}, {}),
    "v2-binary": Request(INFER, BINARY_BODY, BINARY_HEADERS, {}),
    "v1-json": Request(
        ATTENTION,
        json.dumps(write_nested(TENSORS, causal=True, weights="per_head")).encode(),
        {"Content-Type": JSON},
        {},
    ),
    "v1-npz": Request(
        ATTENTION,
        write_npz(TENSORS),
        {"Content-Type": NPZ},
        {"causal": "bottom_right", "weights": "mean"},
    ),
    "v1-safetensors": Request(
        ATTENTION, write_safetensors(TENSORS), {"Content-Type": SAFETENSORS}, {"weights": "mean"}
    ),
}


@st.composite
def mutate_bytes(draw: Any, body: bytes) -> bytes:
    """A body with a few pieces overwritten, inserted, left out or repeated."""
    for _ in range(draw(st.integers(1, 3))):
        start = draw(st.integers(0, len(body)))
        end = min(len(body), start + draw(st.integers(0, 12)))
        piece = draw(
            st.one_of(
                st.binary(max_size=8),
                st.sampled_from(PIECES),
                st.just(body[start:end] * 2),
            )
        )
        body = body[:start] + piece + body[end:]
    return body


@st.composite
def mutate_json(draw: Any, root: Any) -> Any:
    """A JSON value with one part of it replaced."""
    path: list[Any] = []
    part = root
    while isinstance(part, dict | list) and part and draw(st.integers(0, 4)):
        keys = sorted(part) if isinstance(part, dict) else list(range(len(part)))
        path.append(draw(st.sampled_from(keys)))
        part = part[path[-1]]
    scalars = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5)
    new = draw(st.one_of(scalars, st.lists(scalars, max_size=4), st.just([part]), st.just({})))
    return put(root, path, new)


def put(root: Any, path: list[Any], new: Any) -> Any:
    """A copy of `root` with another value at `path`."""
    if not path:
        return new
    copy = dict(root) if isinstance(root, dict) else list(root)
    copy[path[0]] = put(copy[path[0]], path[1:], new)
    return copy


@st.composite
def mutate_tensors(draw: Any) -> Arrays:
    """Tensors some of which are absent, of another type, shape or order of axes."""
    tensors = dict(TENSORS)
    for name in draw(st.lists(st.sampled_from(sorted(TENSORS)), min_size=1, max_size=3)):
        array = tensors.pop(name, TENSORS[name])
        change = draw(st.sampled_from(["absent", "dtype", "axes", "slice", "squeeze", "numbers"]))
        if change == "dtype":
            dtypes = ["float64", "float16", "float32", "int64", "int32", "int8", "uint8", "bool"]
            array = array.astype(draw(st.sampled_from(dtypes)))
        elif change == "axes":
            array = array.transpose(draw(st.permutations(range(array.ndim)))).copy()
        elif change == "slice":
            array = array[
                tuple(slice(draw(st.integers(0, 1)), size) for size in array.shape)
            ].copy()
        elif change == "squeeze" and array.ndim > 1 and len(array):
            array = array[0].copy()
        elif change == "numbers":
            array = draw(st.sampled_from([np.zeros_like, np.ones_like]))(array)
        if change != "absent":
            tensors[name] = array
    return tensors


@st.composite
def mutate_headers(draw: Any, headers: dict[str, str]) -> dict[str, str]:
    """Headers one of which says something else."""
    changes = {
        HEADER_LENGTH: ["", "0", "1", "+12", "1_2", "0x10", "12.0", "-1", "99999999999999999999"],
        "Content-Type": [JSON, NPZ, SAFETENSORS, "text/plain", "multipart/form-data", "", ";"],
        "Accept": ["", "*/*", "text/html", f"{NPZ};q=0.5, {JSON};q=0", ",,;q=", SAFETENSORS],
        "Content-Encoding": ["gzip", "deflate", "br", "identity", "", "gzip, gzip"],
        "X-Request-Id": ["a" * 200, "{}", "a b", "id-1"],
    }
    name = draw(st.sampled_from(sorted(changes)))
    printable = st.text(st.characters(min_codepoint=32, max_codepoint=126), max_size=20)
    return headers | {name: draw(st.sampled_from(changes[name]) | printable.map(str.strip))}


def check(client: httpx.Client, request: Request) -> None:
    """Send a request: an error of the client's, or the right numbers."""
    response = client.post(
        request.path, content=request.body, headers=request.headers, params=request.query
    )
    assert response.status_code < 500 or response.status_code == 501, response.text
    if response.status_code != 200:
        check_refusal(response)
        return
    tensors, options = read_request(request.path, request.body, request.headers, request.query)
    if is_tame(tensors):
        check_answer(response, tensors, options)


def check_refusal(response: httpx.Response) -> None:
    """An error has the one form, and tells nothing of the server's inside."""
    assert response.headers["Content-Type"] == JSON
    assert response.json()["error"]
    request = response.request
    # The words of the client's own come back: hypothesis takes some from this very file.
    own = f"{request.url} {request.headers.raw!r} {request.content!r}"
    leaks = [leak for leak in LEAKS if leak in response.text and leak not in own]
    assert not leaks, response.text


def test_words_of_the_client_are_no_leak(client: httpx.Client) -> None:
    request = REQUESTS["v1-safetensors"]
    for word in ("Traceback", ".py"):
        response = client.post(request.path, content=request.body, headers={"Content-Type": word})
        assert word.lower() in response.text.lower()
        check_refusal(response)


def check_answer(response: httpx.Response, tensors: Arrays, options: dict[str, Any]) -> None:
    """Compare an answer with the right one, for the outputs that came."""
    is_batched = np.ndim(tensors["query"]) == 3
    if not is_batched:
        tensors = {
            name: array if name in ("mask", "bias") and array.ndim == 2 else array[None]
            for name, array in tensors.items()
        }
    right = expect(tensors, **options)
    if not is_batched:
        right = {name: array[0] for name, array in right.items()}
    got = read_answer(response)
    assert got
    check_close(got, {name: right[name] for name in got})


@pytest.mark.parametrize("door", REQUESTS)
@given(data=st.data())
@settings(max_examples=EXAMPLES)
def test_changed_bytes(client: httpx.Client, door: str, data: st.DataObject) -> None:
    request = REQUESTS[door]
    check(client, replace(request, body=data.draw(mutate_bytes(request.body))))


@pytest.mark.parametrize("door", ["v2-json", "v1-json"])
@given(data=st.data())
@settings(max_examples=EXAMPLES)
def test_changed_json(client: httpx.Client, door: str, data: st.DataObject) -> None:
    request = REQUESTS[door]
    changed = data.draw(mutate_json(json.loads(request.body)))
    check(client, replace(request, body=json.dumps(changed).encode()))


@given(data=st.data())
@settings(max_examples=EXAMPLES)
def test_changed_json_before_binary_data(client: httpx.Client, data: st.DataObject) -> None:
    request = REQUESTS["v2-binary"]
    length = int(request.headers[HEADER_LENGTH])
    changed = data.draw(mutate_json(json.loads(request.body[:length])))
    head = json.dumps(changed).encode()
    headers = request.headers | {HEADER_LENGTH: str(len(head))}
    check(client, replace(request, body=head + request.body[length:], headers=headers))


@pytest.mark.parametrize("door", REQUESTS)
@given(data=st.data())
@settings(max_examples=EXAMPLES)
def test_changed_headers(client: httpx.Client, door: str, data: st.DataObject) -> None:
    request = REQUESTS[door]
    headers = data.draw(mutate_headers(request.headers))
    response = client.post(
        request.path, content=request.body, headers=headers, params=request.query
    )
    assert response.status_code in (200, 400, 413, 415), response.text
    if response.status_code == 200:  # then the body was read as the one that it is
        reading = read_request(request.path, request.body, request.headers, request.query)
        check_answer(response, *reading)
    else:
        check_refusal(response)


@pytest.mark.parametrize("door", REQUESTS)
@given(tensors=mutate_tensors())
@settings(max_examples=EXAMPLES)
def test_changed_tensors(client: httpx.Client, door: str, tensors: Arrays) -> None:
    request = REQUESTS[door]
    if door == "v2-json":
        body, headers = json.dumps(write_v2_json(tensors)).encode(), request.headers
    elif door == "v2-binary":
        body, headers = write_v2_binary(tensors)
    elif door == "v1-json":
        body, headers = json.dumps(write_nested(tensors)).encode(), request.headers
    else:
        write = write_npz if door == "v1-npz" else write_safetensors
        body, headers = write(tensors), request.headers
    check(client, replace(request, body=body, headers=headers))


def test_the_requests_that_are_changed_are_right(client: httpx.Client) -> None:
    for request in REQUESTS.values():
        response = client.post(
            request.path, content=request.body, headers=request.headers, params=request.query
        )
        tensors, options = read_request(request.path, request.body, request.headers, request.query)
        assert is_tame(tensors)
        check_answer(response, tensors, options)
