"""A head that a parser takes may still be none that is answered."""

from http import HTTPStatus

import pytest

from service.http.heads import find_fault

HOST, OTHER = (b"host", b"x"), (b"x-host", b"y")
CODING = b"transfer-encoding"


@pytest.mark.parametrize(
    ("version", "headers"),
    [
        ("1.1", [HOST]),
        ("1.1", [OTHER, (b"host", b"")]),
        ("1.0", []),
        ("1.0", [OTHER]),
        ("1.0", [HOST]),
    ],
)
def test_one_host_is_right_and_before_http_1_1_none_as_well(
    version: str, headers: list[tuple[bytes, bytes]]
) -> None:
    assert find_fault(version, headers) is None


@pytest.mark.parametrize(
    ("version", "headers", "count"),
    [("1.1", [], 0), ("1.1", [OTHER], 0), ("1.1", [HOST, HOST], 2), ("1.0", [HOST] * 3, 3)],
)
def test_none_or_several_are_told(
    version: str, headers: list[tuple[bytes, bytes]], count: int
) -> None:
    assert find_fault(version, headers) == (
        HTTPStatus.BAD_REQUEST,
        f"the request has {count} headers 'Host', expected one",
    )


def test_too_many_requests_ahead_of_their_answers_are_told() -> None:
    assert find_fault("1.1", [HOST], 63) is None
    assert find_fault("1.1", [HOST], 64) == (
        HTTPStatus.BAD_REQUEST,
        "more than 64 requests were sent ahead of their answers, expected fewer: read the "
        "answers, or open more connections",
    )


@pytest.mark.parametrize("value", [b"chunked", b"Chunked", b" chunked\t"])
def test_a_chunked_body_is_taken(value: bytes) -> None:
    assert find_fault("1.1", [HOST, (CODING, value)]) is None


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (b"gzip, chunked", "'gzip, chunked'"),
        (b"chunked, chunked", "'chunked, chunked'"),
        (b"\xff\x1b", r"'\xff\x1b'"),
        (b"x" * 65, repr("x" * 64)),
    ],
)
def test_another_transfer_coding_is_not_offered(value: bytes, shown: str) -> None:
    assert find_fault("1.1", [(CODING, value), HOST]) == (
        HTTPStatus.NOT_IMPLEMENTED,
        f"header Transfer-Encoding is {shown}, expected chunked alone; compress with "
        "Content-Encoding",
    )
