"""An answer in one call is, byte for byte, what uvicorn's own `send` writes."""

import asyncio
import logging
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from uvicorn.protocols.http.flow_control import FlowControl
from uvicorn.protocols.http.httptools_impl import RequestResponseCycle

from service.http.outlet import CLOSING, STATE, Outlet, get_outlet

Headers = list[tuple[bytes, bytes]]
LENGTH = b"content-length"


class Line:
    """Stands for a transport: notes what is written, and in how many calls."""

    def __init__(self) -> None:
        self.calls: list[bytes] = []
        self.is_closed = False

    @property
    def written(self) -> bytes:
        return b"".join(self.calls)

    def write(self, data: bytes) -> None:
        self.calls.append(data)

    def write_all(self, parts: tuple[bytes | memoryview, ...]) -> None:
        self.calls.append(b"".join(parts))

    def close(self) -> None:
        self.is_closed = True

    def pause_reading(self) -> None: ...

    def resume_reading(self) -> None: ...


class Desk:
    """A request that waits for its answer."""

    def __init__(self, *, keep_alive: bool = True, default_headers: Headers | None = None) -> None:
        self.line, self.ends = Line(), 0
        line: Any = self.line
        self.flow = FlowControl(line)
        self.cycle = RequestResponseCycle(
            scope={"type": "http", "method": "POST"},  # type: ignore[typeddict-item] # enough
            transport=line,
            flow=self.flow,
            logger=logging.getLogger("nobody"),
            access_logger=logging.getLogger("nobody"),
            access_log=False,
            default_headers=default_headers or [],
            message_event=asyncio.Event(),
            expect_100_continue=False,
            keep_alive=keep_alive,
            on_response=self._end,
        )
        self.outlet = Outlet(self.cycle, line)

    def _end(self) -> None:
        self.ends += 1

    async def send(self, status: int, headers: Headers, body: bytes) -> None:
        """Answer as ASGI does."""
        await self.cycle.send({"type": "http.response.start", "status": status, "headers": headers})
        await self.cycle.send({"type": "http.response.body", "body": body, "more_body": False})

    def tell(self) -> tuple[Any, ...]:
        """All that an answer leaves behind."""
        cycle = self.cycle
        marks = cycle.response_started, cycle.response_complete, cycle.keep_alive
        return (
            self.line.written,
            self.line.is_closed,
            self.ends,
            marks,
            cycle.message_event.is_set(),
        )


def write_length(parts: list[bytes]) -> tuple[bytes, bytes]:
    return LENGTH, b"%d" % sum(map(len, parts))


PARTS = st.lists(st.binary(max_size=30), min_size=1, max_size=4)
NAMES = st.sampled_from([b"content-type", b"server-timing", b"x-request-id"])


@given(
    st.sampled_from([200, 400, 401, 404, 413, 500, 503]),
    st.lists(st.tuples(NAMES, st.sampled_from([b"a", b"a, b", b"caf\xe9"])), max_size=3),
    PARTS,
    st.booleans(),
    st.lists(st.sampled_from([(b"server", b"x"), CLOSING]), max_size=2),
)
async def test_it_writes_and_leaves_what_uvicorn_does(
    status: int, headers: Headers, parts: list[bytes], keep_alive: bool, default_headers: Headers
) -> None:
    headers = [write_length(parts), *headers]
    theirs, ours, large = (
        Desk(keep_alive=keep_alive, default_headers=default_headers) for _ in range(3)
    )
    await theirs.send(status, headers, b"".join(parts))
    ours.outlet.answer(status, headers, parts)
    await large.outlet.answer_large(status, headers, parts)
    assert ours.tell() == large.tell() == theirs.tell()
    assert len(ours.line.calls) == len(large.line.calls) == 1


async def test_a_client_that_left_is_written_nothing() -> None:
    desk = Desk()
    desk.cycle.disconnected = True
    before = desk.tell()
    desk.outlet.answer(200, [(LENGTH, b"4")], (b"text",))
    await desk.outlet.answer_large(200, [(LENGTH, b"4")], (b"text",))
    assert desk.tell() == before


async def test_a_large_answer_is_over_when_the_client_has_taken_it() -> None:
    desk = Desk()
    assert desk.outlet.has_room()
    desk.flow.pause_writing()
    assert not desk.outlet.has_room()
    answering = asyncio.create_task(desk.outlet.answer_large(200, [(LENGTH, b"4")], (b"text",)))
    await asyncio.sleep(0)
    assert desk.line.written.endswith(b"\r\n\r\ntext")
    assert (desk.ends, desk.cycle.response_complete) == (0, False)
    desk.flow.resume_writing()
    await answering
    assert (desk.ends, desk.cycle.response_complete) == (1, True)


async def test_a_client_that_leaves_before_it_has_taken_all_ends_no_response() -> None:
    desk = Desk()
    desk.flow.pause_writing()
    answering = asyncio.create_task(desk.outlet.answer_large(200, [(LENGTH, b"4")], (b"text",)))
    await asyncio.sleep(0)
    desk.cycle.disconnected = True
    desk.flow.resume_writing()
    await answering
    assert (desk.ends, desk.cycle.response_complete) == (0, False)


@pytest.mark.parametrize("state", [{}, {STATE: "another"}])
def test_a_request_may_have_no_outlet(state: dict[str, Any]) -> None:
    assert get_outlet({"state": state}) is None


async def test_a_request_has_the_outlet_that_its_connection_gave_it() -> None:
    outlet = Desk().outlet
    assert get_outlet({"state": {STATE: outlet}}) is outlet
