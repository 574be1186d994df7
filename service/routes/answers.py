"""What every answer of a model carries, whatever its door."""

from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache
from typing import Final

from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from service.inference import Answer

Pairs = Iterable[tuple[bytes, bytes]]
Parts = tuple[bytes | memoryview, ...]
# uvicorn's high-water mark: of more, the transport keeps what the client does not take.
BUFFERED_BYTES: Final = 65536
MAX_NAMES: Final = 32


class AnswerResponse(Response):
    """A response that says when its client has taken it.

    Starlette's own constructor costs more than the answer of a small model is worth.

    Args:
        parts: of its body.
        headers: of it, but for its length.

    Attributes:
        parts: of its body; the arrays of the answer are among them as they are.
        size_bytes: of its body.
        on_taken: called when no more than `BUFFERED_BYTES` of it are left to send, or none ever
            will be.
    """

    on_taken: Callable[[], None] = staticmethod(lambda: None)
    status_code = 200
    background = None
    body = b""

    def __init__(self, parts: Parts, headers: Mapping[str, str]) -> None:
        self.parts = parts
        self.size_bytes = sum(map(len, parts))
        pairs = [(write_name(name), value.encode("latin-1")) for name, value in headers.items()]
        self.raw_headers = [(b"content-length", b"%d" % self.size_bytes), *pairs]

    async def __call__(self, _: Scope, __: Receive, send: Send) -> None:
        """Send it as ASGI wants."""
        start = {"type": "http.response.start", "status": 200, "headers": self.raw_headers}
        try:
            await send(start)
            for part in self.parts:
                await send({"type": "http.response.body", "body": part, "more_body": True})
            # Returns once the transport has room again.
            await send({"type": "http.response.body", "body": b"", "more_body": False})
        finally:
            self.on_taken()


@lru_cache(MAX_NAMES)
def write_name(name: str) -> bytes:
    """The name of a header as ASGI has it; there are few."""
    return name.lower().encode()


def get_parts(response: Response) -> Parts:
    """The body of a response that is whole, an answer or an error."""
    return response.parts if isinstance(response, AnswerResponse) else (response.body,)


def respond(content: Parts, headers: dict[str, str], answer: Answer) -> AnswerResponse:
    """A response with the times and the graph of its answer.

    https://www.w3.org/TR/server-timing/: durations are in milliseconds.
    """
    timing = f"queue;dur={answer.queue_ms:.3f}, compute;dur={answer.compute_ms:.3f}"
    marks = {"Server-Timing": timing, "Limelight-Graph": answer.graph}
    return AnswerResponse(content, headers | marks)
