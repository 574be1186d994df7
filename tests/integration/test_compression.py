"""Bodies that come compressed at both doors, and answers that are compressed where asked for."""

import gzip
import json
import zlib
from collections.abc import Callable, Mapping

import httpx
import pytest

from tests.integration.demo import Arrays, check_close, check_same, draw_tokens, expect
from tests.integration.doors import (
    ATTENTION,
    HEADER_LENGTH,
    INFER,
    JSON,
    NPZ,
    SAFETENSORS,
    read_answer,
    read_v2,
    write_nested,
    write_npz,
    write_safetensors,
    write_v2_binary,
    write_v2_json,
)

TENSORS = draw_tokens()
LIMIT = 64 * 2**20
COMPRESS: dict[str, Callable[[bytes], bytes]] = {"gzip": gzip.compress, "deflate": zlib.compress}
INFLATE: dict[str, Callable[[bytes], bytes]] = {"gzip": gzip.decompress, "deflate": zlib.decompress}
EACH_CODING = pytest.mark.parametrize("coding", sorted(COMPRESS))
Request = tuple[str, bytes, dict[str, str]]


def write_requests() -> dict[str, Request]:
    """The same tensors at every door: path, body and headers."""
    body, headers = write_v2_binary(TENSORS, parameters={"binary_data_output": True})
    nested = write_nested(TENSORS, weights="per_head")
    path = f"{ATTENTION}?weights=per_head"
    return {
        "v2-json": (INFER, json.dumps(write_v2_json(TENSORS)).encode(), {}),
        "v2-binary": (INFER, body, headers),
        "v1-json": (ATTENTION, json.dumps(nested).encode(), {"Content-Type": JSON}),
        "v1-npz": (path, write_npz(TENSORS), {"Content-Type": NPZ}),
        "v1-safetensors": (path, write_safetensors(TENSORS), {"Content-Type": SAFETENSORS}),
    }


REQUESTS = write_requests()
EACH_REQUEST = pytest.mark.parametrize("request_", REQUESTS.values(), ids=REQUESTS)


def fetch(
    client: httpx.Client, request: Request, accept_encoding: str, **headers: str
) -> tuple[httpx.Response, bytes]:
    """The answer to a request, and its content as it came."""
    path, body, given = request
    headers = given | {"Accept-Encoding": accept_encoding} | headers
    with client.stream("POST", path, content=body, headers=headers) as response:
        return response, b"".join(response.iter_raw())


def read_inflated(response: httpx.Response, content: bytes, coding: str) -> Arrays:
    """The outputs of a V2 answer from its content as it came."""
    assert response.status_code == 200
    names = ("Content-Type", HEADER_LENGTH)
    headers = {name: response.headers[name] for name in names}
    return read_v2(httpx.Response(200, headers=headers, content=INFLATE[coding](content)))


@EACH_CODING
@EACH_REQUEST
def test_a_compressed_request_is_answered_as_if_it_were_not(
    client: httpx.Client, request_: Request, coding: str
) -> None:
    path, body, headers = request_
    plain = read_answer(client.post(path, content=body, headers=headers))
    packed = COMPRESS[coding](body)
    headers = headers | {"Content-Encoding": coding}
    check_same(read_answer(client.post(path, content=packed, headers=headers)), plain)
    check_close(plain, expect(TENSORS))


@pytest.mark.parametrize("coding", ["x-gzip", "GZIP"])
def test_gzip_has_several_spellings(client: httpx.Client, coding: str) -> None:
    path, body, headers = REQUESTS["v2-json"]
    headers = {"Content-Encoding": coding}
    response = client.post(path, content=gzip.compress(body), headers=headers)
    check_close(read_answer(response), expect(TENSORS))


@EACH_CODING
def test_a_compressed_body_may_come_in_chunks(client: httpx.Client, coding: str) -> None:
    path, body, headers = REQUESTS["v2-binary"]
    packed = COMPRESS[coding](body)
    chunks = (packed[i : i + 100] for i in range(0, len(packed), 100))
    response = client.post(path, content=chunks, headers=headers | {"Content-Encoding": coding})
    assert "Content-Length" not in response.request.headers
    check_close(read_answer(response), expect(TENSORS))


def test_a_gzip_body_may_have_several_members(client: httpx.Client) -> None:
    path, body, _ = REQUESTS["v2-json"]
    packed = gzip.compress(body[:100]) + gzip.compress(body[100:])
    response = client.post(path, content=packed, headers={"Content-Encoding": "gzip"})
    check_close(read_answer(response), expect(TENSORS))


def test_the_length_of_the_json_counts_inflated_bytes(client: httpx.Client) -> None:
    path, body, headers = REQUESTS["v2-binary"]
    packed = gzip.compress(body)
    length = int(headers[HEADER_LENGTH])
    for wrong in (length - 1, len(body) + 1):
        wrong_headers = {HEADER_LENGTH: str(wrong), "Content-Encoding": "gzip"}
        response = client.post(path, content=packed, headers=wrong_headers)
        assert response.status_code == 400
    assert f"but the body has {len(body)} bytes" in response.json()["error"]


BROKEN = {
    "gzip": "Content-Encoding is gzip, expected gzip (RFC 1952)",
    "deflate": "Content-Encoding is deflate, expected the zlib format (RFC 1950), not bare deflate "
    "data",
}


def break_body(coding: str) -> dict[str, tuple[bytes, str]]:
    """Broken bodies, each with what is wrong."""
    packed = COMPRESS[coding](REQUESTS["v2-json"][1])
    wrong = bytearray(packed)
    wrong[-5 if coding == "gzip" else -1] ^= 1
    return {
        "plain": (b'{"inputs": []}', "incorrect header check"),
        "cut": (packed[:-1], "it ends too early"),
        "longer": (packed + b"{}", "other bytes follow its end"),
        "damaged": (bytes(wrong), "incorrect data check"),
    }


@EACH_CODING
@pytest.mark.parametrize("path", [INFER, ATTENTION])
@pytest.mark.parametrize("fault", ["plain", "cut", "longer", "damaged"])
def test_a_broken_body_is_400_and_says_what_is_wrong(
    client: httpx.Client, path: str, coding: str, fault: str
) -> None:
    body, reason = break_body(coding)[fault]
    response = client.post(path, content=body, headers={"Content-Encoding": coding})
    text = f"the body cannot be inflated: {reason}; {BROKEN[coding]}"
    assert (response.status_code, response.json()) == (400, {"error": text})


@EACH_CODING
@pytest.mark.parametrize("path", [INFER, ATTENTION])
def test_a_body_that_inflates_beyond_the_bound_is_413(
    client: httpx.Client, path: str, coding: str
) -> None:
    body = COMPRESS[coding](bytes(LIMIT + 1))
    response = client.post(path, content=body, headers={"Content-Encoding": coding})
    text = (
        f"the request body is larger than allowed after inflating, expected at most {LIMIT} bytes "
        "(LIMELIGHT_MAX_REQUEST_BYTES)"
    )
    assert (response.status_code, response.json()) == (413, {"error": text})


def test_a_refused_body_does_not_spoil_its_connection(
    server_url: str, auth_headers: Mapping[str, str]
) -> None:
    limits = httpx.Limits(max_connections=1, max_keepalive_connections=1)
    bomb, (path, body, headers) = gzip.compress(bytes(2 * LIMIT)), REQUESTS["v2-binary"]
    with httpx.Client(base_url=server_url, headers=auth_headers, limits=limits) as client:
        for _ in range(2):
            response = client.post(path, content=bomb, headers={"Content-Encoding": "gzip"})
            assert response.status_code == 413
            check_close(
                read_answer(client.post(path, content=body, headers=headers)), expect(TENSORS)
            )


@EACH_CODING
@EACH_REQUEST
def test_an_answer_is_compressed_for_a_client_that_names_one_coding(
    client: httpx.Client, request_: Request, coding: str
) -> None:
    plain, wanted = fetch(client, request_, "identity")
    packed, content = fetch(client, request_, coding)
    assert INFLATE[coding](content) == wanted
    assert packed.headers["Content-Encoding"] == coding
    assert packed.headers["Vary"] == plain.headers["Vary"] == "Accept-Encoding"
    assert int(packed.headers["Content-Length"]) == len(content)
    assert packed.headers["Content-Type"] == plain.headers["Content-Type"]
    assert packed.headers.get(HEADER_LENGTH) == plain.headers.get(HEADER_LENGTH)
    assert {"Server-Timing", "Limelight-Graph", "X-Request-Id"} <= {
        name.title() for name in packed.headers
    }


@pytest.mark.parametrize("accept", ["gzip, deflate", "gzip, deflate, br, zstd", "*", "br", ""])
@EACH_REQUEST
def test_an_answer_is_sent_as_it_is_to_a_client_that_lists_what_it_knows(
    client: httpx.Client, request_: Request, accept: str
) -> None:
    response, _ = fetch(client, request_, accept)
    assert response.status_code == 200
    assert "Content-Encoding" not in response.headers


@EACH_CODING
def test_compressed_both_ways(client: httpx.Client, coding: str) -> None:
    path, body, headers = REQUESTS["v2-binary"]
    request = (path, COMPRESS[coding](body), headers)
    response, content = fetch(client, request, coding, **{"Content-Encoding": coding})
    check_close(read_inflated(response, content, coding), expect(TENSORS))


@pytest.mark.parametrize("body", [b"", b"{", b'{"inputs": []}'])
@pytest.mark.parametrize("path", [INFER, ATTENTION])
def test_errors_are_never_compressed(client: httpx.Client, path: str, body: bytes) -> None:
    response = client.post(path, content=body, headers={"Accept-Encoding": "gzip"})
    assert response.status_code == 400
    assert "Content-Encoding" not in response.headers


@pytest.mark.parametrize(
    "path",
    [
        "/v2",
        "/v2/models",
        "/v2/models/demo",
        "/v2/models/demo/config",
        "/v2/models/demo/ready",
        "/v2/models/demo/stats",
        "/v2/models/stats",
        "/v2/health/ready",
        "/v2/trace/setting",
        "/v2/logging",
        "/v2/systemsharedmemory/status",
    ],
)
def test_only_answers_to_inference_are_compressed(client: httpx.Client, path: str) -> None:
    response = client.get(path, headers={"Accept-Encoding": "gzip"})
    assert response.status_code == 200
    assert "Content-Encoding" not in response.headers


def test_a_large_body_and_answer_are_compressed_and_right(client: httpx.Client) -> None:
    tensors = draw_tokens(batch_size=64, query_length=128, key_length=64)
    body, headers = write_v2_binary(tensors, parameters={"binary_data_output": True})
    request = (INFER, gzip.compress(body, 1), headers)
    response, content = fetch(client, request, "gzip", **{"Content-Encoding": "gzip"})
    check_close(read_inflated(response, content, "gzip"), expect(tensors))
