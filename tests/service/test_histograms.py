"""Histograms are shown, number by number, as those of prometheus_client."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client import CollectorRegistry, Histogram, generate_latest

from service.histograms import Histograms, Series

BOUNDS = (0.0002, 0.005, 0.1, 1.0, 2.0, 10.0)
NAME, TEXT = "limelight_x_seconds", "Time spent."
NUMBERS = st.one_of(
    st.sampled_from(BOUNDS),  # equal to one
    st.floats(0, 20),
    st.sampled_from([0.0, -1.0, 1e300, float("inf")]),
)


def show(registry: CollectorRegistry) -> list[str]:
    """What Prometheus reads, but for the times at which series began."""
    lines = generate_latest(registry).decode().splitlines()
    return [line for line in lines if not line.startswith(f"{NAME}_created{{")]


@given(
    st.lists(st.tuples(st.sampled_from(["a", 'b"\\', "\N{GRINNING FACE}"]), NUMBERS), max_size=30)
)
def test_they_show_what_the_original_shows(observed: list[tuple[str, float]]) -> None:
    ours, theirs = CollectorRegistry(), CollectorRegistry()
    histograms = Histograms(ours, NAME, TEXT, BOUNDS)
    original = Histogram(NAME, TEXT, ["model", "version"], registry=theirs, buckets=BOUNDS)
    for model, number in observed:
        labels = {"model": model, "version": "1"}
        histograms.open(labels).observe(number)
        original.labels(**labels).observe(number)
    assert show(ours) == show(theirs)


def test_a_series_without_numbers_is_shown_with_zeros() -> None:
    ours, theirs = CollectorRegistry(), CollectorRegistry()
    Histograms(ours, NAME, TEXT, BOUNDS).open({"model": "demo"})
    Histogram(NAME, TEXT, ["model"], registry=theirs, buckets=BOUNDS).labels("demo")
    assert show(ours) == show(theirs)


def test_the_time_at_which_a_series_began_is_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("time.time", lambda: 1234.5)
    registry = CollectorRegistry()
    Histograms(registry, NAME, TEXT, BOUNDS).open({"model": "demo"})
    assert f'{NAME}_created{{model="demo"}} 1234.5' in generate_latest(registry).decode()


def test_a_series_that_is_open_goes_on_and_one_that_was_removed_begins_anew() -> None:
    registry = CollectorRegistry()
    histograms = Histograms(registry, NAME, TEXT, BOUNDS)
    first = histograms.open({"model": "demo"})
    assert histograms.open({"model": "demo"}) is first
    first.observe(0.5)
    histograms.remove({"model": "demo"})
    histograms.remove({"model": "other"})
    assert show(registry) == show_nothing()
    assert histograms.open({"model": "demo"}).counts == [0] * (len(BOUNDS) + 1)


def show_nothing() -> list[str]:
    """What is shown of a histogram without series."""
    registry = CollectorRegistry()
    Histogram(NAME, TEXT, ["model"], registry=registry, buckets=BOUNDS)
    return show(registry)


@pytest.mark.parametrize(
    ("number", "place"), [(0.0, 0), (0.0002, 0), (0.00021, 1), (10.0, 5), (10.01, 6)]
)
def test_what_is_equal_to_a_bound_counts_in_its_bucket(number: float, place: int) -> None:
    series = Series(BOUNDS)
    series.observe(number)
    assert (series.counts.index(1), sum(series.counts), series.sum) == (place, 1, number)
