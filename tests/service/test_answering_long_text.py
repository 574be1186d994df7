"""Where a request is read, by how much of it is text."""

import threading

import pytest

from service.answering import answer_v2
from service.errors import InvalidRequestError
from service.protocol import v2_request
from service.state import OFFLOAD_BINARY_BYTES, OFFLOAD_TEXT_BYTES, State


@pytest.mark.parametrize(
    ("text_bytes", "binary_bytes", "is_here"),
    [
        (OFFLOAD_TEXT_BYTES - 1, 0, True),
        (OFFLOAD_TEXT_BYTES, 0, False),
        (OFFLOAD_TEXT_BYTES - 1, 1, True),
        (OFFLOAD_TEXT_BYTES, 1, False),
        (500, OFFLOAD_BINARY_BYTES - 501, True),
        (500, OFFLOAD_BINARY_BYTES - 500, False),
    ],
)
@pytest.mark.parametrize("says_length", [True, False])
async def test_long_text_is_read_beside_the_event_loop_whatever_the_header_says(
    state: State,
    monkeypatch: pytest.MonkeyPatch,
    text_bytes: int,
    binary_bytes: int,
    is_here: bool,
    says_length: bool,
) -> None:
    """Load tools give its length where all is JSON: 8 MiB of that stopped the loop for seconds."""
    readers = []

    def note_thread(*_: object) -> None:
        readers.append(threading.current_thread())
        raise InvalidRequestError("it is not read")

    monkeypatch.setattr(v2_request, "decode_request", note_thread)
    body = bytes(text_bytes + binary_bytes)
    lengths = [str(text_bytes)] if says_length else []
    with pytest.raises(InvalidRequestError, match="it is not read"):
        await answer_v2(state, state.repository.get("demo"), body, lengths)
    is_text = len(body) >= OFFLOAD_TEXT_BYTES and not says_length
    assert (readers == [threading.current_thread()]) == (is_here and not is_text)
