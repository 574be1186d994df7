"""Errors the service answers with.

    ServiceError                    500  a fault of ours
    ├── InvalidRequestError         400  the request breaks the protocol or the tensor contract
    │   └── ClientLeftError              nobody is there to read this answer
    ├── NotFoundError               404  no such model or version
    ├── RequestTimeoutError         408  a body that comes too slowly
    ├── RequestTooLargeError        413  body, tokens, scores or answer beyond a setting
    ├── UnsupportedMediaError       415  a media type that is not read or written
    │   └── UnsupportedEncodingError     a content coding that is not read
    ├── NotOfferedError             501  a part of the protocol that is not offered
    └── UnavailableError            503  try again later
        └── DeviceMemoryError            the GPU has no memory left

    StartError                      the server cannot start; ends the process with one line

Raise them anywhere in `service`; `app` alone turns them into answers, ``{"error": text}``. A text
says which tensor or setting, what came, what was expected and how to mend it.
"""

from collections.abc import Mapping
from typing import ClassVar


class ServiceError(Exception):
    """Base of all errors with an HTTP status and a text written for the client."""

    status: ClassVar[int] = 500
    headers: ClassVar[Mapping[str, str]] = {}


class InvalidRequestError(ServiceError):
    """The request breaks the protocol or the tensor contract."""

    status = 400


class ClientLeftError(InvalidRequestError):
    """The client left before its request was whole; nobody reads the answer."""


class NotFoundError(ServiceError):
    """No such model or version."""

    status = 404


class RequestTimeoutError(ServiceError):
    """A body that did not come in time; the rest of it is not waited for."""

    status = 408
    headers: ClassVar[Mapping[str, str]] = {"Connection": "close"}


class RequestTooLargeError(ServiceError):
    """A bound of the settings is passed; the text names the setting."""

    status = 413


class UnsupportedMediaError(ServiceError):
    """A media type that the server does not read or write."""

    status = 415


class UnsupportedEncodingError(UnsupportedMediaError):
    """A content coding that the server does not read."""

    # RFC 9110, 12.5.3: tells the client which content codings a request may have.
    headers: ClassVar[Mapping[str, str]] = {"Accept-Encoding": "gzip, deflate"}


class NotOfferedError(ServiceError):
    """A part of the protocol that the server does not offer."""

    status = 501


class UnavailableError(ServiceError):
    """The server is busy, starting or stopping."""

    status = 503
    headers: ClassVar[Mapping[str, str]] = {"Retry-After": "1"}


class DeviceMemoryError(UnavailableError):
    """The GPU has no memory left for a request; smaller ones go on."""


class StartError(Exception):
    """The server cannot start; the text says what to change."""
