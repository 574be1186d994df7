"""The cost model counts operations as the textbooks do, and finds the rates that made its data."""

import itertools

import pytest

from benchmarks.scale.cost import Cost, Size

RATES = {
    "request": 0.3,
    "megabyte": 0.5,
    "weights_megabyte": 0.04,
    "projection_gigaflop": 4.0,
    "score_gigaflop": 7.0,
}
SIZES = [
    Size(batch_size, length, d_model)
    for batch_size, length, d_model in itertools.product((1, 5), (7, 48, 300), (64, 192, 512))
]


def test_the_work_of_a_request_is_counted() -> None:
    work = Size(batch_size=2, length=3, d_model=5).work
    assert work == {
        "request": 1,
        "megabyte": pytest.approx(2 * 3 * 5 * 4 * 2 / 1e6),
        "weights_megabyte": pytest.approx(4 * 5 * 5 * 4 / 1e6),
        "projection_gigaflop": pytest.approx(4 * (2 * 2 * 3 * 5 * 5) / 1e9),
        "score_gigaflop": pytest.approx(2 * (2 * 2 * 3 * 3 * 5) / 1e9),
    }


def test_the_rates_that_made_the_times_are_found() -> None:
    made = Cost(RATES)
    fitted = Cost.fit({size: made.predict_ms(size) for size in SIZES})
    assert fitted.rates_ms == pytest.approx(RATES, rel=1e-6)


def test_a_rate_is_never_negative() -> None:
    made = Cost(RATES | {"megabyte": -0.01})
    fitted = Cost.fit({size: made.predict_ms(size) for size in SIZES})
    assert "megabyte" not in fitted.rates_ms
    assert all(rate >= 0 for rate in fitted.rates_ms.values())


@pytest.mark.parametrize(
    ("size", "twice", "factor"),
    [
        (Size(1, 4096, 64), Size(1, 8192, 64), 4),  # scores grow with the square of the length
        (Size(1, 64, 4096), Size(1, 64, 8192), 4),  # projections with the square of d_model
        (Size(1, 64, 64), Size(1024, 64, 64), 1024),
    ],
)
def test_where_one_part_of_the_work_is_nearly_all_the_cost_grows_with_it(
    size: Size, twice: Size, factor: float
) -> None:
    cost = Cost({"projection_gigaflop": 4.0, "score_gigaflop": 7.0})
    assert cost.predict_ms(twice) / cost.predict_ms(size) == pytest.approx(factor, rel=0.05)
