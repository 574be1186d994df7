"""Requests to try a model with: on the first screen, and in the description of the API."""

from typing import Any

from model.contract import KEY, OUTPUT, QUERY, VALUE, WEIGHTS, AttentionSpec

EXAMPLE_TOKENS = 2


def find_widths(spec: AttentionSpec) -> dict[str, int]:
    """Widths of the tensors that a request must have; the others stand in for the rest."""
    widths = {QUERY: spec.d_model}
    if spec.kdim != spec.d_model:
        widths[KEY] = spec.kdim
    if spec.vdim != spec.kdim:
        widths[VALUE] = spec.vdim
    return widths


def make_tokens(width: int) -> list[list[int]]:
    """Tokens of `width` numbers, all 0 but a 1 in another place of each."""
    return [[int(column == row) for column in range(width)] for row in range(EXAMPLE_TOKENS)]


def make_attention_example(spec: AttentionSpec, model: str | None) -> dict[str, Any]:
    """A body of /v1/attention; `model` names one where several are served."""
    tensors = {name: make_tokens(width) for name, width in find_widths(spec).items()}
    named = {} if model is None else {"model": model}
    return {**tensors, "causal": True, "weights": "per_head", **named}


def make_infer_example(spec: AttentionSpec) -> dict[str, Any]:
    """A JSON request of the Open Inference Protocol V2."""
    inputs = [
        {
            "name": name,
            "shape": [1, EXAMPLE_TOKENS, width],
            "datatype": "FP32",
            "data": [number for token in make_tokens(width) for number in token],
        }
        for name, width in find_widths(spec).items()
    ]
    return {"inputs": inputs, "outputs": [{"name": OUTPUT}, {"name": WEIGHTS}]}
