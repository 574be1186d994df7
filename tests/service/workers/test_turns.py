"""Whose turn it is to take a connection."""

from service.workers.turns import Seat, Turns


def seat(turns: Turns, place: int, connections: int | None = None) -> Seat:
    """A worker, with some connections."""
    made = Seat(turns, place, is_late=False)
    if connections is not None:
        made.write(connections)
    return made


def test_a_worker_leaves_the_next_connection_to_one_that_has_fewer() -> None:
    turns = Turns(3)
    many, few = seat(turns, 0, 5), seat(turns, 2, 4)
    assert not many.is_next()
    assert few.is_next()


def test_of_workers_that_have_the_same_number_any_may_take_it() -> None:
    turns = Turns(2)
    assert [each.is_next() for each in (seat(turns, 0, 3), seat(turns, 1, 3))] == [True, True]


def test_workers_that_take_none_are_not_waited_for() -> None:
    turns = Turns(3)
    many, few = seat(turns, 0, 5), seat(turns, 1, 4)
    few.leave()
    seat(turns, 2)  # has not begun
    assert many.is_next()
