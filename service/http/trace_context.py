"""The header `traceparent`: which trace of a distributed system a request belongs to."""

import re
from typing import Final

# https://www.w3.org/TR/trace-context/#traceparent-header: version, trace id, parent id, flags. An
# id of zeros alone is none, version ff is forbidden, and versions after 00 may add fields.
TRACEPARENT: Final = re.compile(
    r"(?!ff)(?P<version>[0-9a-f]{2})-(?!0{32})(?P<trace>[0-9a-f]{32})-(?!0{16})[0-9a-f]{16}"
    r"-[0-9a-f]{2}(?P<more>-.*)?"
)


def read_trace_id(traceparent: str) -> str | None:
    """The trace id of a header, 32 hexadecimal digits; none if the header is not valid."""
    found = TRACEPARENT.fullmatch(traceparent)
    if not found or (found["version"] == "00" and found["more"] is not None):
        return None
    return found["trace"]
