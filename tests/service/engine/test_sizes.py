"""The bounds that the settings put on one request."""

import pytest

from service.engine.sizes import Limits, Sizes, check_limits, check_output
from service.errors import InvalidRequestError, RequestTooLargeError
from service.inference import WeightsForm

B, H, L, S = 4, 3, 5, 7
SIZES = Sizes(B, H, L, S)
EXACT = {"max_batch_size": 4, "max_tokens": 48, "max_score_bytes": 1680, "max_output_bytes": 480}


def test_a_request_may_reach_every_bound() -> None:
    check_limits(Limits(**EXACT), SIZES)


def test_a_larger_batch_is_refused() -> None:
    with pytest.raises(InvalidRequestError) as caught:
        check_limits(Limits(**EXACT | {"max_batch_size": 3}), SIZES)
    assert str(caught.value) == ("batch size is 4, expected at most 3 (LIMELIGHT_MAX_BATCH_SIZE)")


def test_more_tokens_are_refused() -> None:
    with pytest.raises(RequestTooLargeError) as caught:
        check_limits(Limits(**EXACT | {"max_tokens": 47}), SIZES)
    assert str(caught.value) == (
        "the request has 48 query and key tokens, expected at most 47 (LIMELIGHT_MAX_TOKENS)"
    )


def test_a_larger_score_matrix_is_refused() -> None:
    with pytest.raises(RequestTooLargeError) as caught:
        check_limits(Limits(**EXACT | {"max_score_bytes": 1679}), SIZES)
    assert str(caught.value) == (
        "the score matrix [4, 3, 5, 7] takes 1680 bytes, expected at most 1679 "
        "(LIMELIGHT_MAX_SCORE_BYTES)"
    )


# 4 items of 5 queries of 6 numbers, and as many rows of 7 weights: none, 3 heads, or their mean.
@pytest.mark.parametrize(
    ("weights", "output_bytes"), [("none", 480), ("per_head", 480 + 1680), ("mean", 480 + 560)]
)
def test_an_answer_is_bounded_by_what_is_asked_for(weights: WeightsForm, output_bytes: int) -> None:
    check_output(Limits(**EXACT | {"max_output_bytes": output_bytes}), SIZES, 6, weights)
    with pytest.raises(RequestTooLargeError) as caught:
        check_output(Limits(**EXACT | {"max_output_bytes": output_bytes - 1}), SIZES, 6, weights)
    assert str(caught.value) == (
        f"the answer would take {output_bytes} bytes, expected at most {output_bytes - 1} "
        "(LIMELIGHT_MAX_OUTPUT_BYTES); send fewer tokens, or ask for fewer weights"
    )
