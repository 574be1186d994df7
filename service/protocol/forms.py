"""The three forms of /v1/attention, told apart by media type or by the first bytes."""

import re
from collections.abc import Mapping
from typing import Final, Literal

from service.errors import InvalidRequestError, UnsupportedMediaError
from service.protocol.options import show

Form = Literal["json", "npz", "safetensors"]

MEDIA_TYPES: Final[dict[Form, str]] = {
    "json": "application/json",
    "npz": "application/x-npz",
    "safetensors": "application/x-safetensors",
}
# Said by clients that say nothing: curl -d, and libraries that post bytes.
SILENT_TYPES: Final = ("", "application/octet-stream", "application/x-www-form-urlencoded")
ZIP_MAGIC: Final = b"PK\x03\x04"
JSON_SPACE: Final = b" \t\r\n"


def choose_request_form(content_type: str, body: bytes | memoryview) -> Form:
    """The form of a request body.

    Raises:
        UnsupportedMediaError: if the media type is another.
    """
    media_type = content_type.partition(";")[0].strip().lower()
    for form, name in MEDIA_TYPES.items():
        if media_type == name:
            return form
    if media_type not in SILENT_TYPES:
        raise UnsupportedMediaError(
            f"Content-Type is {show(media_type)}, expected one of {', '.join(MEDIA_TYPES.values())}"
        )
    head = bytes(body[:9])
    if head.startswith(ZIP_MAGIC):
        return "npz"
    # Byte 8 of safetensors opens its JSON header; JSON text has no NUL among its first bytes.
    if head[8:] == b"{" and b"\0" in head[:8]:
        return "safetensors"
    return "json"


def choose_answer_form(wish: str | None, accept: str, request_form: Form) -> Form:
    """The form of the answer: `?format=`, else the Accept header, else that of the request.

    Raises:
        InvalidRequestError: if `wish` is no form.
        UnsupportedMediaError: if Accept names none of the media types.
    """
    if wish is not None:
        for form in MEDIA_TYPES:
            if wish == form:
                return form
        raise InvalidRequestError(
            f"parameter 'format' is {show(wish)}, expected one of {', '.join(MEDIA_TYPES)}"
        )
    ranges = dict(read_range(part) for part in accept.split(",") if part.strip())
    if not ranges:
        return request_form
    # At equal quality the form of the request wins, else the order of the table.
    qualities = {form: find_quality(ranges, name) for form, name in MEDIA_TYPES.items()}
    best = max(qualities, key=lambda form: (qualities[form], form == request_form))
    if qualities[best] == 0:
        raise UnsupportedMediaError(
            f"Accept is {show(accept)}, expected one of {', '.join(MEDIA_TYPES.values())} or */*"
        )
    return best


def find_quality(ranges: Mapping[str, float], media_type: str) -> float:
    """How much a media type is wanted, by the most specific range that matches it."""
    kind = media_type.partition("/")[0]
    matches = [ranges[name] for name in (media_type, f"{kind}/*", "*/*") if name in ranges]
    return matches[0] if matches else 0.0


def read_range(part: str) -> tuple[str, float]:
    """Media range and quality of one part of an Accept header (RFC 9110, 12.5.1)."""
    media_range, *parameters = (piece.strip().lower() for piece in part.split(";"))
    for parameter in parameters:
        match = re.fullmatch(r"q=([01](?:\.[0-9]{0,3})?)", parameter)
        if match:
            return media_range, float(match[1])
    return media_range, 1.0
