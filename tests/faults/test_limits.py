"""Faults of bounds: bodies that fill the memory of a server, refused or answered."""

import os
import socket
import struct
import zlib
from collections.abc import Callable, Iterator
from urllib.parse import urlsplit

import httpx
import numpy as np
import pytest

from tests.faults.process_facts import MIB, measure_peak, needs_linux
from tests.integration.demo import Arrays, D, check_close, draw_tokens, expect
from tests.integration.doors import (
    ATTENTION,
    INFER,
    NPZ,
    SAFETENSORS,
    ask,
    read_answer,
    write_npz,
    write_safetensors,
    write_v2_binary,
)
from tests.integration.server_process import ServerProcess, start_server

pytestmark = [
    pytest.mark.skipif("LIMELIGHT_TEST_URL" in os.environ, reason="a deployed server is tested"),
    needs_linux,
]
TIMEOUT_S = 60
LIMIT = 8 * MIB
SLACK = 4 * MIB
TIMES = 32
LARGE = 64 * MIB


@pytest.fixture(scope="module", name="small")
def start_small() -> Iterator[ServerProcess]:
    """A server whose bodies are bounded at `LIMIT`."""
    with start_server(LIMELIGHT_MAX_REQUEST_BYTES=str(LIMIT)) as server:
        yield server


@pytest.fixture(scope="module", name="client")
def connect(small: ServerProcess) -> Iterator[httpx.Client]:
    """A client of it; the first requests of a process cost memory of their own."""
    with httpx.Client(base_url=small.url, timeout=TIMEOUT_S) as client:
        for weights in ("none", "per_head"):
            ask(client, "v2-binary", draw_tokens(), weights=weights)
        for path in (INFER, ATTENTION):
            client.post(path, content=bytes(LIMIT))
        yield client


def write_bomb(coding: str, size_bytes: int) -> bytes:
    """Zeros, compressed a thousandfold in one valid stream that is quick to make."""
    block = bytes(16 * MIB)
    packer = zlib.compressobj(9, zlib.DEFLATED, -zlib.MAX_WBITS)
    first = packer.compress(block) + packer.flush(zlib.Z_FULL_FLUSH)
    again = packer.compress(block) + packer.flush(zlib.Z_FULL_FLUSH)
    count = size_bytes // len(block)
    deflated = first + again * (count - 1) + packer.flush(zlib.Z_FINISH)
    if coding == "deflate":  # Adler-32 of zeros: 1, and how many there are (RFC 1950, 8.2)
        return b"\x78\xda" + deflated + struct.pack(">HH", size_bytes % 65521, 1)
    check = 0
    for _ in range(count):
        check = zlib.crc32(block, check)
    head = b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\xff"
    return head + deflated + struct.pack("<II", check, size_bytes % 2**32)


def test_the_bomb_is_what_it_says() -> None:
    for coding, wbits in (("gzip", 31), ("deflate", 15)):
        bomb = write_bomb(coding, 64 * MIB)
        assert len(bomb) < MIB // 8
        assert zlib.decompress(bomb, wbits) == bytes(64 * MIB)


@pytest.mark.parametrize("path", [INFER, ATTENTION])
@pytest.mark.parametrize("coding", ["gzip", "deflate"])
def test_a_body_that_inflates_to_a_gibibyte_is_refused_and_costs_no_memory(
    small: ServerProcess, client: httpx.Client, coding: str, path: str
) -> None:
    """triton-inference-server/server #2736; Kludex/starlette #2155."""
    bomb = write_bomb(coding, 1024 * MIB)
    assert len(bomb) < 2 * MIB
    with measure_peak(small.process.pid) as peak:
        response = client.post(path, content=bomb, headers={"Content-Encoding": coding})
    text = (
        f"the request body is larger than allowed after inflating, expected at most {LIMIT} bytes "
        "(LIMELIGHT_MAX_REQUEST_BYTES)"
    )
    assert (response.status_code, response.json()) == (413, {"error": text})
    assert peak.bytes < LIMIT + SLACK


def send_endlessly(url: str, path: str, head: str, part: bytes) -> bytes:
    """Send `TIMES` times the bound, or until the server hangs up; what it answered."""
    address = urlsplit(url)
    lines = [f"POST {path} HTTP/1.1", "Host: x", head, "", ""]
    with socket.create_connection((address.hostname, address.port), TIMEOUT_S) as connection:
        connection.sendall("\r\n".join(lines).encode())
        try:
            for _ in range(TIMES * LIMIT // len(part)):
                connection.sendall(part)
        except (BrokenPipeError, ConnectionResetError):
            pass  # that is a way to refuse, too
        return connection.recv(65536)


@pytest.mark.parametrize("path", [INFER, ATTENTION])
@pytest.mark.parametrize("length", ["Content-Length: 10737418240", "Transfer-Encoding: chunked"])
def test_a_body_without_end_is_refused_at_the_bound_and_costs_no_more_memory(
    small: ServerProcess, client: httpx.Client, length: str, path: str
) -> None:
    """fastapi/fastapi #1181; Kludex/starlette #890, #2155, #3431; openlegion-ai/openlegion #993."""
    part = bytes(65536)
    chunk = b"10000\r\n" + part + b"\r\n" if "chunked" in length else part
    with measure_peak(small.process.pid) as peak:
        answer = send_endlessly(small.url, path, length, chunk)
    assert answer.startswith(b"HTTP/1.1 413 ")
    announced = "10737418240 bytes" if "Length" in length else "larger than allowed"
    assert (
        f'{{"error":"the request body is {announced}, expected at most {LIMIT} bytes '
        '(LIMELIGHT_MAX_REQUEST_BYTES)"}'
    ).encode() in answer
    assert peak.bytes < LIMIT + SLACK


def test_memory_stays_flat_however_often_a_body_is_refused(
    small: ServerProcess, client: httpx.Client
) -> None:
    """fastapi/fastapi #1181; openlegion-ai/openlegion #993."""
    with measure_peak(small.process.pid) as peak:
        for _ in range(TIMES):
            for path in (INFER, ATTENTION):
                assert client.post(path, content=iter([bytes(LIMIT), b"1"])).status_code == 413
    assert peak.bytes < 2 * LIMIT + SLACK


@pytest.mark.parametrize("claim", ["1", "100", "0"])
def test_a_length_that_says_less_than_comes_is_no_way_past_the_bound(
    small: ServerProcess, client: httpx.Client, claim: str
) -> None:
    """What follows is read as the next request (Kludex/starlette #3431)."""
    with measure_peak(small.process.pid) as peak:
        answer = send_endlessly(small.url, INFER, f"Content-Length: {claim}", b"x" * 65536)
    assert b" 400 " in answer.splitlines()[0]
    assert peak.bytes < LIMIT + SLACK
    check_close(ask(client, "v2-binary", draw_tokens()), expect(draw_tokens()))


def draw_large() -> Arrays:
    """Close to 64 MiB of keys and values for one query, whose answer is small."""
    keys = (LARGE - MIB) // (4 * D)
    generator = np.random.default_rng(1)
    lengths = {"query": 1, "key": keys // 2, "value": keys // 2}
    return {n: generator.standard_normal((1, t, D), np.float32) for n, t in lengths.items()}


FORMS: dict[str, Callable[[Arrays], tuple[str, bytes, dict[str, str]]]] = {
    "v2-binary": lambda tensors: (INFER, *write_v2_binary(tensors)),
    "v1-npz": lambda tensors: (ATTENTION, write_npz(tensors), {"Content-Type": NPZ}),
    "v1-safetensors": lambda tensors: (
        ATTENTION,
        write_safetensors(tensors),
        {"Content-Type": SAFETENSORS},
    ),
}


@pytest.mark.parametrize("door", FORMS)
def test_a_body_of_64_mebibytes_takes_less_than_three_times_its_size(door: str) -> None:
    """Read, viewed and refused by its last tensor: nothing but the body is held.

    triton-inference-server/server #1190.
    """
    tensors = draw_large() | {"mask": np.ones((3, 3), bool)}
    path, body, headers = FORMS[door](tensors)
    with (
        start_server(LIMELIGHT_MAX_TOKENS=str(2**23)) as server,
        measure_peak(server.process.pid) as peak,
    ):
        response = httpx.post(server.url + path, content=body, headers=headers, timeout=TIMEOUT_S)
    assert response.json()["error"].startswith("input 'mask' has shape [3, 3], expected ")
    assert peak.bytes < 3 * len(body)


def test_a_body_of_64_mebibytes_is_answered_within_three_times_its_size() -> None:
    """The projected keys and values are in it too (triton-inference-server/server #1190)."""
    tensors = draw_large()
    body, headers = write_v2_binary(tensors, parameters={"weights": "none"})
    with (
        start_server(LIMELIGHT_MAX_TOKENS=str(2**23)) as server,
        measure_peak(server.process.pid) as peak,
    ):
        response = httpx.post(server.url + INFER, content=body, headers=headers, timeout=TIMEOUT_S)
    check_close(read_answer(response), expect(tensors, weights="none"))
    assert peak.bytes < 3 * len(body)
