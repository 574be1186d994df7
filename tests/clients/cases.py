"""Requests for every client, the answers that are right, and the refusals that they must show.

They speak of tensors and parameters only; how a client writes them is its own affair.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
import pytest

from tests.integration.demo import (
    MODEL,
    Arrays,
    B,
    D,
    H,
    L,
    S,
    draw_bias,
    draw_mask,
    draw_tokens,
    expect,
)
from tests.integration.doors import NESTED_OUTPUTS, OUTPUTS

TENSORS: Final = draw_tokens()
QUERY: Final = {"query": TENSORS["query"]}
KEY_MASK: Final = np.arange(S) < np.array([7, 2, 4, 6])[:, None]
MASKED: Final = TENSORS | {
    "mask": draw_mask(B, H, L, S),
    "key_mask": KEY_MASK,
    "bias": draw_bias(1, 1, L, S),
}

# Which tensors travel as bytes behind the JSON; all others are numbers in the JSON.
Form = frozenset[str]
FORMS: Final[Mapping[str, Form]] = {
    "json": frozenset(),
    "binary": frozenset({*MASKED, *NESTED_OUTPUTS}),
    "mixed": frozenset({"key", "mask", "bias", "output"}),
    "mixed-otherwise": frozenset({"query", "value", "key_mask", "attention_weights", "top_k_keys"}),
}


@dataclass(frozen=True)
class Case:
    """A request that is answered.

    Attributes:
        tensors: by name.
        parameters: of the request.
        asked: names of the outputs; None sends no list of outputs.
    """

    tensors: Arrays
    parameters: Mapping[str, Any] = field(default_factory=dict)
    asked: tuple[str, ...] | None = OUTPUTS

    def find_answer(self) -> Arrays:
        """The right outputs, in float64."""
        options = dict(self.parameters)
        if "heads" in options:
            options["heads"] = [int(head) for head in options["heads"].split(",")]
        outputs = expect(self.tensors, **options)
        return outputs if self.asked is None else {name: outputs[name] for name in self.asked}


CASES: Final[Mapping[str, Case]] = {
    "all-inputs": Case(MASKED),
    "query-alone": Case(QUERY),
    "no-value": Case(QUERY | {"key": TENSORS["key"]}),
    "no-mask": Case(TENSORS),
    "mask-alone": Case(TENSORS | {"mask": draw_mask(L, S)}),
    "key-mask-of-a-tokenizer": Case(TENSORS | {"key_mask": KEY_MASK.astype(np.int64)}),
    "no-list-of-outputs": Case(MASKED, asked=None),
    "output-alone": Case(MASKED, asked=("output",)),
    "weights-alone": Case(MASKED, asked=("attention_weights",)),
    "outputs-the-other-way-round": Case(MASKED, asked=("attention_weights", "output")),
    "causal": Case(TENSORS, {"causal": True}),
    "causal-from-the-end": Case(MASKED, {"causal": "bottom_right"}),
    "mean-of-the-heads": Case(MASKED, {"weights": "mean"}),
    "some-heads": Case(MASKED, {"heads": "2,0"}),
    "largest-weights": Case(MASKED, {"weights": "top_k", "top_k": 3}, asked=None),
    "keys-of-the-largest": Case(
        MASKED,
        {"weights": "top_k", "top_k": 2, "heads": "1"},
        asked=("top_k_keys", "top_k_weights"),
    ),
    "no-weights": Case(TENSORS, {"weights": "none", "causal": True}, asked=None),
}


@dataclass(frozen=True)
class Fault:
    """A request that is refused.

    Attributes:
        status: of the answer.
        text: that the client must show.
        tensors: by name.
        parameters: of the request.
        asked: names of the outputs; None sends no list of outputs.
        model: that is asked.
        version: of the model; "" leaves it to the server.
    """

    status: int
    text: str
    tensors: Arrays = field(default_factory=lambda: dict(TENSORS))
    parameters: Mapping[str, Any] = field(default_factory=dict)
    asked: tuple[str, ...] | None = None
    model: str = MODEL
    version: str = ""


NARROW: Final = TENSORS["query"][:, :, :-1].copy()
FAULTS: Final[Mapping[str, Fault]] = {
    "unknown-model": Fault(404, "model 'other' is not served here; served: demo", model="other"),
    "unknown-version": Fault(
        404, "model 'demo' has no version '9', expected one of 1", version="9"
    ),
    "wrong-shape": Fault(
        400,
        f"input 'query' has shape [{B}, {L}, {D - 1}], expected [batch_size, query_length, {D}]",
        TENSORS | {"query": NARROW},
    ),
    "wrong-datatype": Fault(
        400,
        "input 'query' has datatype FP64, expected FP32: convert it before sending "
        "(/v1/attention converts FP16 and FP64 itself)",
        TENSORS | {"query": TENSORS["query"].astype(np.float64)},
    ),
    "no-query": Fault(400, "input 'query' is missing", {"key": TENSORS["key"]}),
    "name-of-another-library": Fault(
        400,
        "input 'attn_mask' is not known here: send 'mask', where true means visible; in "
        "nn.MultiheadAttention's attn_mask true means hidden, so invert it; a float attn_mask goes "
        "into 'bias'",
        TENSORS | {"attn_mask": MASKED["mask"]},
    ),
    "unknown-output": Fault(
        400,
        "output 'logits' is unknown, expected some of output, attention_weights, "
        "top_k_weights, top_k_keys",
        asked=("logits",),
    ),
    "unknown-value-of-a-parameter": Fault(
        400,
        'parameter \'causal\' is "left", expected true, false, "top_left" (as true) or '
        '"bottom_right"',
        parameters={"causal": "left"},
    ),
    "neither-0-nor-1": Fault(
        400,
        "input 'key_mask' holds 2 at [0, 0], expected 0 or 1",
        TENSORS | {"key_mask": np.full((B, S), 2, np.int32)},
    ),
}

# Of several MiB: 3 of the query and 12 of the weights in binary, 2 and 8 of text in JSON.
LARGE: Final[Mapping[str, Case]] = {
    "json": Case(draw_tokens(2, 9_001, 11, seed=4)),
    "binary": Case(draw_tokens(2, 70_001, 7, seed=5)),
}
PLAIN: Final = CASES["all-inputs"]
BINARY: Final = FORMS["binary"]
CONCURRENCIES: Final = (1, 3, 16)
REQUESTS_EACH: Final = 4
EXPIRY_TRIES: Final = 50
"""A budget of 1 µs is over before a thread wakes up; by chance it may once not be."""


def draw_many(count: int) -> list[Case]:
    """Requests of which no two have the same numbers, nor neighbours the same length."""
    return [Case(draw_tokens(2, 3 + number % 4, 8, seed=100 + number)) for number in range(count)]


EACH_CASE: Final = pytest.mark.parametrize("case", CASES.values(), ids=CASES)
EACH_FAULT: Final = pytest.mark.parametrize("fault", FAULTS.values(), ids=FAULTS)
EACH_FORM: Final = pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
JSON_AND_BINARY: Final = pytest.mark.parametrize(
    "form", [FORMS["json"], FORMS["binary"]], ids=["json", "binary"]
)
CODING: Final = pytest.mark.parametrize("coding", ["gzip", "deflate"])
LARGE_FORM: Final = pytest.mark.parametrize("form", LARGE)
CONCURRENCY: Final = pytest.mark.parametrize("concurrency", CONCURRENCIES)
# tritonclient's aio client drops some answers unread (readiness, load, unregister), and aiohttp
# then warns unless the whole answer came with its head.
MAY_DROP_ANSWERS: Final = pytest.mark.filterwarnings("ignore:Unclosed connection:ResourceWarning")
