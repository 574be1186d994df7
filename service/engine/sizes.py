"""The sizes of one request, and the bounds that the settings put on them."""

from dataclasses import astuple, dataclass

from service.errors import InvalidRequestError, RequestTooLargeError
from service.inference import WeightsForm


@dataclass(frozen=True, slots=True)
class Sizes:
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
        max_score_bytes: of the score matrix in float32.
        max_output_bytes: of the tensors of the answer; their JSON text takes about three times
            as much.
    """

    max_batch_size: int
    max_tokens: int
    max_score_bytes: int
    max_output_bytes: int


def check_limits(limits: Limits, sizes: Sizes) -> None:
    """Hold the request's sizes against the settings.

    Raises:
        InvalidRequestError: if the batch is too large.
        RequestTooLargeError: if tokens or scores are too many.
    """
    batch, heads, length, keys = astuple(sizes)
    if batch > limits.max_batch_size:
        raise InvalidRequestError(
            f"batch size is {batch}, expected at most {limits.max_batch_size} "
            "(LIMELIGHT_MAX_BATCH_SIZE)"
        )
    tokens = batch * (length + keys)
    if tokens > limits.max_tokens:
        raise RequestTooLargeError(
            f"the request has {tokens} query and key tokens, expected at most "
            f"{limits.max_tokens} (LIMELIGHT_MAX_TOKENS)"
        )
    score_bytes = 4 * batch * heads * length * keys
    if score_bytes > limits.max_score_bytes:
        raise RequestTooLargeError(
            f"the score matrix [{batch}, {heads}, {length}, {keys}] takes {score_bytes} bytes, "
            f"expected at most {limits.max_score_bytes} (LIMELIGHT_MAX_SCORE_BYTES)"
        )


def check_output(limits: Limits, sizes: Sizes, d_model: int, weights: WeightsForm) -> None:
    """Hold the answer's size against the settings, before anything is computed.

    Raises:
        RequestTooLargeError: if the answer would be too large.
    """
    batch, heads, length, keys = astuple(sizes)
    planes = {"none": 0, "mean": 1, "per_head": heads}[weights]
    output_bytes = 4 * batch * length * (d_model + planes * keys)
    if output_bytes > limits.max_output_bytes:
        raise RequestTooLargeError(
            f"the answer would take {output_bytes} bytes, expected at most "
            f"{limits.max_output_bytes} (LIMELIGHT_MAX_OUTPUT_BYTES); send fewer tokens, or ask "
            "for fewer weights"
        )
