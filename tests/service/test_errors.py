"""The tree of errors: each has the status that the documents promise."""

from collections.abc import Iterator

import pytest

from service.errors import (
    ClientLeftError,
    DeviceMemoryError,
    InvalidRequestError,
    NotFoundError,
    NotOfferedError,
    RequestTimeoutError,
    RequestTooLargeError,
    ServiceError,
    StartError,
    UnavailableError,
    UnsupportedEncodingError,
    UnsupportedMediaError,
)

STATUSES = {
    ServiceError: 500,
    InvalidRequestError: 400,
    ClientLeftError: 400,
    NotFoundError: 404,
    RequestTimeoutError: 408,
    RequestTooLargeError: 413,
    UnsupportedMediaError: 415,
    UnsupportedEncodingError: 415,
    NotOfferedError: 501,
    UnavailableError: 503,
    DeviceMemoryError: 503,
}


def walk(base: type[ServiceError]) -> Iterator[type[ServiceError]]:
    yield base
    for child in base.__subclasses__():
        yield from walk(child)


def test_every_error_of_the_tree_has_its_status() -> None:
    assert {error: error.status for error in walk(ServiceError)} == STATUSES


def test_an_overloaded_server_says_when_to_try_again() -> None:
    assert UnavailableError.headers == DeviceMemoryError.headers == {"Retry-After": "1"}


def test_a_content_coding_is_answered_with_those_that_are_read() -> None:
    assert UnsupportedEncodingError.headers == {"Accept-Encoding": "gzip, deflate"}


def test_a_body_that_is_not_waited_for_ends_its_connection() -> None:
    assert RequestTimeoutError.headers == {"Connection": "close"}


WITH_HEADERS = (UnavailableError, DeviceMemoryError, UnsupportedEncodingError, RequestTimeoutError)


@pytest.mark.parametrize("error", [e for e in STATUSES if e not in WITH_HEADERS])
def test_no_other_error_has_headers(error: type[ServiceError]) -> None:
    assert error.headers == {}


def test_a_failed_start_is_no_answer_to_a_client() -> None:
    assert not issubclass(StartError, ServiceError)
