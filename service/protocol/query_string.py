"""The options of /v1/attention in a query string."""

from collections.abc import Iterable
from typing import Any, Final

from service.errors import InvalidRequestError
from service.protocol.options import read_causal, read_weights, show

OPTIONS: Final = ("model", "version", "causal", "weights")
QUERY_OPTIONS: Final = (*OPTIONS, "format")
CAUSAL_WORDS: Final = {"true": True, "false": False}


def read_query_string(pairs: Iterable[tuple[str, str]]) -> dict[str, Any]:
    """The options, checked; `causal` in the words of JSON.

    Raises:
        InvalidRequestError: if an option is unknown, comes twice, or has another value.
    """
    options: dict[str, Any] = {}
    for name, text in pairs:
        if name not in QUERY_OPTIONS:
            raise InvalidRequestError(
                f"option {show(name)} of the query string is unknown, expected some of "
                f"{', '.join(QUERY_OPTIONS)}"
            )
        if name in options:
            raise InvalidRequestError(f"option '{name}' comes twice, expected once")
        options[name] = text
    if "causal" in options:
        options["causal"] = read_causal(CAUSAL_WORDS.get(options["causal"], options["causal"]))
    if "weights" in options:
        options["weights"] = read_weights(options["weights"])
    return options
