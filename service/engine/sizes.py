"""The sizes of one request, and the bounds that the settings put on them."""

from dataclasses import dataclass, replace
from typing import Final, NamedTuple, Self

from service.errors import InvalidRequestError, RequestTooLargeError
from service.inference import WantedWeights

WHOLE_SCORE_BYTES: Final = 128 * 2**20
"""Most scores of a run without weights; a request that has more is computed in slices.

1x2048 with 8 heads has as many, and would take 1.4 times as long in slices (measured)."""

LEAST_ROWS: Final = 3
"""Query rows of a slice, at least. An axis cut evenly into parts of 3 or more has none of 1:
onnxruntime multiplies a single row in another way, with other last bits."""


class Sizes(NamedTuple):
    """B, H, L and S of one request."""

    batch_size: int
    num_heads: int
    query_length: int
    key_length: int


@dataclass(frozen=True, slots=True)
class Limits:
    """Bounds of one request.

    Attributes:
        max_batch_size: of sequences.
        max_tokens: of query and key tokens, all sequences together.
        max_score_bytes: of the scores in float32 that are held at once.
        max_output_bytes: of the tensors of the answer; their JSON text takes about three times
            as much.
        batch_size_setting: what says `max_batch_size`.
    """

    max_batch_size: int
    max_tokens: int
    max_score_bytes: int
    max_output_bytes: int
    batch_size_setting: str = "LIMELIGHT_MAX_BATCH_SIZE"

    def lower_batch_size(self, config_size: int | None) -> Self:
        """These limits with the batch size of a model's config, where it is the lower one.

        Args:
            config_size: nothing where the config is silent; 0 bounds nothing.
        """
        if not config_size or config_size >= self.max_batch_size:
            return self
        setting = "max_batch_size in the model's config.pbtxt"
        return replace(self, max_batch_size=config_size, batch_size_setting=setting)


def check_limits(limits: Limits, sizes: Sizes, weights: WantedWeights) -> None:
    """Hold the request's sizes against the settings.

    Args:
        limits: of one request.
        sizes: of the request.
        weights: form in which the weights are asked for; without them slices of the scores do.

    Raises:
        InvalidRequestError: if the batch is too large.
        RequestTooLargeError: if tokens or scores are too many.
    """
    if sizes.batch_size > limits.max_batch_size:
        raise InvalidRequestError(
            f"batch size is {sizes.batch_size}, expected at most {limits.max_batch_size} "
            f"({limits.batch_size_setting})"
        )
    tokens = count_tokens(sizes)
    if tokens > limits.max_tokens:
        raise RequestTooLargeError(
            f"the request has {tokens} query and key tokens, expected at most "
            f"{limits.max_tokens} (LIMELIGHT_MAX_TOKENS)"
        )
    check_scores(limits, sizes, weights)


def check_scores(limits: Limits, sizes: Sizes, weights: WantedWeights) -> None:
    """Hold the scores that a run must hold at once, at least, against the setting.

    Raises:
        RequestTooLargeError: if they are too many.
    """
    held, what = sizes, "the score matrix"
    if weights.form == "none":
        rows = min(sizes.query_length, LEAST_ROWS)
        held, what = sizes._replace(batch_size=1, query_length=rows), "a slice of the score matrix"
    score_bytes = count_score_bytes(held)
    if score_bytes > limits.max_score_bytes:
        raise RequestTooLargeError(
            f"{what} {list(held)} takes {score_bytes} bytes, expected at most "
            f"{limits.max_score_bytes} (LIMELIGHT_MAX_SCORE_BYTES)"
        )


def check_output(limits: Limits, sizes: Sizes, d_model: int, weights: WantedWeights) -> int:
    """Hold the answer's size against the settings, before anything is computed.

    Returns:
        Memory that its tensors will take, in bytes.

    Raises:
        RequestTooLargeError: if the answer would be too large.
    """
    output_bytes = count_output_bytes(sizes, d_model, weights)
    if output_bytes > limits.max_output_bytes:
        raise RequestTooLargeError(
            f"the answer would take {output_bytes} bytes, expected at most "
            f"{limits.max_output_bytes} (LIMELIGHT_MAX_OUTPUT_BYTES); send fewer tokens, or ask "
            "for fewer weights"
        )
    return output_bytes


def limit_rows(limits: Limits, sizes: Sizes, d_model: int, weights: WantedWeights) -> int:
    """The most rows of a run that keeps the bounds of one request; 1 at least.

    Args:
        limits: of one request.
        sizes: of a request of one row.
        d_model: D.
        weights: those that are asked for.
    """
    score_bytes = limits.max_score_bytes
    if weights.form == "none":
        score_bytes = min(score_bytes, WHOLE_SCORE_BYTES)
    return min(
        limits.max_batch_size,
        max(1, limits.max_tokens // count_tokens(sizes)),
        max(1, score_bytes // count_score_bytes(sizes)),
        max(1, limits.max_output_bytes // count_output_bytes(sizes, d_model, weights)),
    )


def count_tokens(sizes: Sizes) -> int:
    """Query and key tokens of all sequences."""
    return sizes.batch_size * (sizes.query_length + sizes.key_length)


def count_score_bytes(sizes: Sizes) -> int:
    """Size of the score matrix ``[B, H, L, S]`` in float32."""
    batch, heads, length, keys = sizes
    return 4 * batch * heads * length * keys


def count_output_bytes(sizes: Sizes, d_model: int, weights: WantedWeights) -> int:
    """Size of the tensors of the answer, whose numbers have four bytes."""
    batch, heads, length, keys = sizes
    return 4 * batch * length * (d_model + weights.count_numbers(heads, keys))
