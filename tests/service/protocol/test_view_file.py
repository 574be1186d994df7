"""A view is read as io.BytesIO reads its copy."""

import io
import tracemalloc

import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.protocol.view_file import ViewFile

STEPS = st.one_of(
    st.tuples(st.just("read"), st.integers(-1, 20)),
    st.tuples(st.just("seek"), st.integers(-20, 20), st.integers(0, 2)),
    st.tuples(st.just("tell")),
)


def do(file: io.BufferedIOBase | io.RawIOBase, step: tuple[str | int, ...]) -> object:
    """What a step gives, or that it is refused."""
    name, *arguments = step
    try:
        return getattr(file, str(name))(*arguments)
    except (ValueError, OSError):
        return "refused"


@given(st.binary(max_size=16), st.lists(STEPS, max_size=8))
def test_every_way_of_reading_gives_the_bytes_of_the_view(
    data: bytes, steps: list[tuple[str | int, ...]]
) -> None:
    file, wanted = ViewFile(memoryview(data)), io.BytesIO(data)
    for step in steps:
        bases = (0, wanted.tell(), len(data))
        if step[0] == "seek" and bases[int(step[2])] + int(step[1]) < 0:
            assert do(file, step) == "refused", "io.BytesIO may go to the first byte instead"
        else:
            assert do(file, step) == do(wanted, step)


def test_a_place_before_the_first_byte_is_refused() -> None:
    with pytest.raises(OSError, match=r"^place -1 lies before the first byte$"):
        ViewFile(b"12345").seek(-6, io.SEEK_END)


def test_nothing_is_copied_before_it_is_read() -> None:
    view = memoryview(bytearray(2**22))
    tracemalloc.start()
    try:
        file = io.BufferedReader(ViewFile(view))
        file.seek(-7, io.SEEK_END)
        assert len(file.read()) == 7
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 2**20
