"""The bounds that the settings put on one request."""

from dataclasses import replace
from typing import Any

import pytest

from service.engine.sizes import Limits, Sizes, check_limits, check_output, limit_rows
from service.errors import InvalidRequestError, RequestTooLargeError
from service.inference import NO_WEIGHTS, WantedWeights

B, H, L, S = 4, 3, 5, 7
SIZES = Sizes(B, H, L, S)
ONE = SIZES._replace(batch_size=1)
EXACT = Limits(max_batch_size=4, max_tokens=48, max_score_bytes=1680, max_output_bytes=480)
LOOSE = Limits(2**30, 2**30, 2**30, 2**30)
BOUNDS = ["max_batch_size", "max_tokens", "max_score_bytes", "max_output_bytes"]


def test_a_request_may_reach_every_bound() -> None:
    check_limits(EXACT, SIZES, WantedWeights("per_head"))


def test_a_larger_batch_is_refused() -> None:
    with pytest.raises(InvalidRequestError) as caught:
        check_limits(replace(EXACT, max_batch_size=3), SIZES, NO_WEIGHTS)
    assert str(caught.value) == ("batch size is 4, expected at most 3 (LIMELIGHT_MAX_BATCH_SIZE)")


def test_more_tokens_are_refused() -> None:
    with pytest.raises(RequestTooLargeError) as caught:
        check_limits(replace(EXACT, max_tokens=47), SIZES, NO_WEIGHTS)
    assert str(caught.value) == (
        "the request has 48 query and key tokens, expected at most 47 (LIMELIGHT_MAX_TOKENS)"
    )


@pytest.mark.parametrize("weights", [WantedWeights("per_head"), WantedWeights("mean")])
def test_a_larger_score_matrix_is_refused_where_it_is_asked_for(weights: WantedWeights) -> None:
    with pytest.raises(RequestTooLargeError) as caught:
        check_limits(replace(EXACT, max_score_bytes=1679), SIZES, weights)
    assert str(caught.value) == (
        "the score matrix [4, 3, 5, 7] takes 1680 bytes, expected at most 1679 "
        "(LIMELIGHT_MAX_SCORE_BYTES)"
    )


def test_without_weights_three_rows_of_it_must_fit() -> None:
    check_limits(replace(EXACT, max_score_bytes=252), SIZES, NO_WEIGHTS)
    with pytest.raises(RequestTooLargeError) as caught:
        check_limits(replace(EXACT, max_score_bytes=251), SIZES, NO_WEIGHTS)
    assert str(caught.value) == (
        "a slice of the score matrix [1, 3, 3, 7] takes 252 bytes, expected at most 251 "
        "(LIMELIGHT_MAX_SCORE_BYTES)"
    )
    check_limits(replace(EXACT, max_score_bytes=168), SIZES._replace(query_length=2), NO_WEIGHTS)


# 4 items of 5 queries of 6 numbers, and for each of the 20 queries what is asked for of weights.
@pytest.mark.parametrize(
    ("weights", "output_bytes"),
    [
        pytest.param(NO_WEIGHTS, 480, id="none"),
        pytest.param(WantedWeights("per_head"), 480 + 80 * 3 * 7, id="all heads"),
        pytest.param(WantedWeights("per_head", (2, 0)), 480 + 80 * 2 * 7, id="two heads"),
        pytest.param(WantedWeights("mean"), 480 + 80 * 7, id="mean"),
        pytest.param(WantedWeights("mean", (2, 0)), 480 + 80 * 7, id="mean of two"),
        pytest.param(WantedWeights("top_k", top_k=5), 480 + 80 * 3 * 5 * 2, id="five keys"),
        pytest.param(WantedWeights("top_k", (1,), 5), 480 + 80 * 5 * 2, id="five keys of a head"),
        pytest.param(WantedWeights("top_k", top_k=99), 480 + 80 * 3 * 7 * 2, id="more than all"),
    ],
)
def test_an_answer_is_bounded_by_what_is_asked_for(
    weights: WantedWeights, output_bytes: int
) -> None:
    check_output(replace(EXACT, max_output_bytes=output_bytes), SIZES, 6, weights)
    with pytest.raises(RequestTooLargeError) as caught:
        check_output(replace(EXACT, max_output_bytes=output_bytes - 1), SIZES, 6, weights)
    assert str(caught.value) == (
        f"the answer would take {output_bytes} bytes, expected at most {output_bytes - 1} "
        "(LIMELIGHT_MAX_OUTPUT_BYTES); send fewer tokens, or ask for fewer weights"
    )


@pytest.mark.parametrize("config_size", [None, 0, 4, 5])
def test_a_config_that_bounds_no_batch_below_the_setting_changes_nothing(
    config_size: int | None,
) -> None:
    assert EXACT.lower_batch_size(config_size) == EXACT


def test_the_lower_batch_size_of_a_config_holds_and_is_named() -> None:
    with pytest.raises(InvalidRequestError) as caught:
        check_limits(EXACT.lower_batch_size(3), SIZES, NO_WEIGHTS)
    assert str(caught.value) == (
        "batch size is 4, expected at most 3 (max_batch_size in the model's config.pbtxt)"
    )


@pytest.mark.parametrize("bound", BOUNDS)
def test_a_joined_run_keeps_every_bound_of_a_request(bound: str) -> None:
    reached: dict[str, Any] = {bound: getattr(EXACT, bound)}
    passed: dict[str, Any] = {bound: getattr(EXACT, bound) - 1}
    assert limit_rows(replace(LOOSE, **reached), ONE, 6, NO_WEIGHTS) == B
    assert limit_rows(replace(LOOSE, **passed), ONE, 6, NO_WEIGHTS) == B - 1


def test_the_weights_count_in_a_joined_run() -> None:
    limits = replace(LOOSE, max_output_bytes=4 * (120 + 420))
    assert limit_rows(limits, ONE, 6, WantedWeights("per_head")) == 4
    assert limit_rows(limits, ONE, 6, WantedWeights("mean")) == 8


def test_a_joined_run_without_weights_is_never_one_for_slices() -> None:
    long = Sizes(1, 8, 1024, 1024)
    limits = replace(LOOSE, max_output_bytes=2**40)
    assert limit_rows(limits, long, 6, NO_WEIGHTS) == 4
    assert limit_rows(limits, long, 6, WantedWeights("per_head")) == 32


def test_a_request_that_reaches_a_bound_runs_alone() -> None:
    assert limit_rows(Limits(256, 1, 1, 1), ONE, 6, NO_WEIGHTS) == 1
