"""Memory of bodies: its pages come back, and no more of them are kept than was said."""

import threading
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.http.buffer_pool import KEPT_BYTES, LEAST_BYTES, BufferPool, round_up

KIB = 2**10
MIB = 2**20
SIZE_BYTES = 300 * KIB + 7
BLOCK_BYTES = 320 * KIB


def find_address(buffer: memoryview) -> int:
    return np.frombuffer(buffer, np.uint8).ctypes.data


def fill(buffer: memoryview) -> None:
    """Write to every byte, as a body does."""
    buffer[:] = bytes(len(buffer))


def test_a_body_gets_the_pages_of_the_one_before() -> None:
    pool = BufferPool()
    first = pool.take(SIZE_BYTES)
    assert len(first) == SIZE_BYTES
    fill(first)
    address = find_address(first)
    del first
    assert pool.kept_bytes == BLOCK_BYTES
    again = pool.take(SIZE_BYTES + 5)
    assert (find_address(again), len(again)) == (address, SIZE_BYTES + 5)
    assert pool.kept_bytes == 0


def test_two_bodies_at_once_share_nothing() -> None:
    pool = BufferPool()
    first, second = pool.take(SIZE_BYTES), pool.take(SIZE_BYTES)
    fill(first)
    second[:] = b"\1" * SIZE_BYTES
    assert set(first) == {0}
    assert set(second) == {1}


@pytest.mark.parametrize(
    "view",
    [
        pytest.param(lambda body: body[8:], id="a part"),
        pytest.param(lambda body: np.frombuffer(body[8:16], np.float32), id="a tensor"),
        pytest.param(lambda body: np.frombuffer(body, np.uint8)[3:].reshape(2, -1)[1:], id="items"),
    ],
)
def test_what_points_at_a_body_keeps_it(view: Any) -> None:
    pool = BufferPool()
    body = pool.take(SIZE_BYTES)
    fill(body)
    tensor = view(body)
    del body
    other = pool.take(SIZE_BYTES)
    other[:] = b"\1" * SIZE_BYTES
    assert not np.asarray(tensor).any()
    del tensor
    assert pool.kept_bytes == BLOCK_BYTES


def test_a_small_body_is_the_c_librarys() -> None:
    pool = BufferPool()
    small = pool.take(LEAST_BYTES - 1)
    assert len(small) == LEAST_BYTES - 1
    del small
    assert pool.kept_bytes == 0


def test_no_more_is_kept_than_was_said() -> None:
    pool = BufferPool(lambda: 3 * BLOCK_BYTES)
    bodies = [pool.take(SIZE_BYTES) for _ in range(5)]
    bodies.clear()
    kept = pool.take(SIZE_BYTES)
    assert pool.kept_bytes == 2 * BLOCK_BYTES
    del kept
    assert pool.kept_bytes == 3 * BLOCK_BYTES
    assert BufferPool().kept_bytes == 0
    assert KEPT_BYTES == 64 * MIB


def test_a_size_that_is_new_takes_the_room_of_those_that_nobody_asks_for() -> None:
    pool = BufferPool(lambda: 2 * BLOCK_BYTES + MIB)
    old = [pool.take(SIZE_BYTES) for _ in range(2)]
    old.clear()
    recent = pool.take(MIB)
    del recent
    assert pool.kept_bytes == 2 * BLOCK_BYTES + MIB
    new = pool.take(500 * KIB)
    del new
    assert pool.kept_bytes == MIB + 512 * KIB, "the size that was asked for last has stayed"


def test_a_body_larger_than_all_that_may_be_kept_is_not() -> None:
    pool = BufferPool(lambda: BLOCK_BYTES)
    large = pool.take(MIB)
    fill(large)
    del large
    again = pool.take(MIB)
    assert len(again) == MIB
    assert pool.kept_bytes == 0


def test_when_nobody_asks_nothing_is_kept_and_what_is_lent_comes_back_later() -> None:
    pool = BufferPool()
    first, second = pool.take(SIZE_BYTES), pool.take(SIZE_BYTES)
    del first
    pool.clear()
    assert pool.kept_bytes == 0
    del second
    assert pool.kept_bytes == BLOCK_BYTES


def test_bodies_come_back_on_any_thread() -> None:
    pool = BufferPool()
    bodies = [pool.take(SIZE_BYTES) for _ in range(40)]

    def drop() -> None:
        for _ in range(10):
            bodies.pop()

    threads = [threading.Thread(target=drop) for _ in range(4)]
    for thread in threads:
        thread.start()
    taken = [pool.take(SIZE_BYTES) for _ in range(7)]
    for thread in threads:
        thread.join()
    addresses = {find_address(body) for body in taken}
    assert len(addresses) == 7
    taken.clear()
    assert pool.take(SIZE_BYTES)
    assert pool.kept_bytes % BLOCK_BYTES == 0
    assert 39 * BLOCK_BYTES <= pool.kept_bytes <= 46 * BLOCK_BYTES


def test_a_body_may_come_back_in_the_midst_of_a_call() -> None:
    bodies: list[memoryview] = []

    def find_room() -> int:
        bodies.clear()  # as the garbage collector may at any time
        return 2 * BLOCK_BYTES + MIB

    pool = BufferPool(find_room)
    bodies.append(pool.take(MIB))
    bodies.append(pool.take(SIZE_BYTES))
    assert pool.kept_bytes == MIB
    third = pool.take(SIZE_BYTES)
    assert len(third) == SIZE_BYTES
    assert pool.kept_bytes == MIB + BLOCK_BYTES


@given(st.integers(LEAST_BYTES, 2**40))
def test_blocks_are_whole_pages_and_an_eighth_larger_at_most(size_bytes: int) -> None:
    block_bytes = round_up(size_bytes)
    assert size_bytes <= block_bytes <= size_bytes * 9 / 8
    assert block_bytes % 4096 == 0
    assert round_up(block_bytes) == block_bytes
