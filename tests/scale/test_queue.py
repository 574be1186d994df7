"""The queue's formulas, against the textbook's special cases and a simulation."""

import heapq
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.scale.queue import Replica, wait_share


@given(st.floats(0.01, 0.99))
def test_with_one_server_as_many_wait_as_it_is_busy(busy: float) -> None:
    assert wait_share(1, busy) == pytest.approx(busy)


def test_the_share_that_waits_is_that_of_the_formula_as_a_sum() -> None:
    """Erlang's C, written out, for 3 servers of which 2 are busy: 4/9."""
    terms = [2**k / math.factorial(k) for k in range(3)]
    last = 2**3 / math.factorial(3) * 3 / (3 - 2)
    assert last / (sum(terms) + last) == pytest.approx(4 / 9)
    assert wait_share(3, 2) == pytest.approx(4 / 9)


def test_times_that_vary_as_much_as_their_mean_wait_as_in_the_textbook() -> None:
    """M/M/1: the wait is over t with the share that is busy times exp(-(mu - lambda) t)."""
    replica = Replica(cores=1, request_ms=10, variation=1)
    wait_ms = replica.predict_ms(70, 0.99) - 10
    assert 0.7 * math.exp(-(100 - 70) * wait_ms / 1000) == pytest.approx(0.01)


def simulate(cores: int, request_ms: float, per_second: float, quantile: float) -> float:
    """The time of answers to 200,000 requests that are all alike."""
    due_ms = np.cumsum(np.random.default_rng(0).exponential(1000 / per_second, 200_000))
    free_ms = [0.0] * cores
    latencies_ms = []
    for now_ms in due_ms.tolist():
        end_ms = max(now_ms, heapq.heappop(free_ms)) + request_ms
        heapq.heappush(free_ms, end_ms)
        latencies_ms.append(end_ms - now_ms)
    return float(np.quantile(latencies_ms, quantile))


@pytest.mark.parametrize("cores", [1, 2, 5])
@pytest.mark.parametrize("load", [0.3, 0.6, 0.9])
def test_the_prediction_is_near_what_a_simulation_finds(cores: int, load: float) -> None:
    replica = Replica(cores, request_ms=8)
    per_second = load * replica.most_per_second
    found_ms = simulate(cores, 8, per_second, 0.99)
    assert replica.predict_ms(per_second) == pytest.approx(found_ms, rel=0.25)


def test_more_than_a_replica_can_do_never_ends() -> None:
    replica = Replica(cores=2, request_ms=10)
    assert replica.most_per_second == 200
    assert replica.predict_ms(200) == math.inf


@given(st.floats(1, 5000), st.floats(1.05, 50))
def test_the_replicas_counted_are_enough_and_one_less_is_not(
    per_second: float, factor: float
) -> None:
    replica = Replica(cores=2, request_ms=10)
    limit_ms = 10 * factor
    count = replica.count(per_second, limit_ms)
    assert replica.predict_ms(per_second / count) <= limit_ms
    assert count == 1 or replica.predict_ms(per_second / (count - 1)) > limit_ms


def test_a_limit_below_one_request_is_refused() -> None:
    with pytest.raises(ValueError, match="takes 12 ms by itself") as caught:
        Replica(cores=2, request_ms=12).count(5, limit_ms=11)
    assert str(caught.value) == (
        "a request takes 12 ms by itself, expected at most the limit of 11 ms; more replicas do "
        "not help, shorter requests do"
    )
