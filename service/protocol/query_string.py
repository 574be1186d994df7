"""The options of /v1/attention in a query string."""

from collections.abc import Callable, Iterable
from typing import Any, Final

from service.errors import InvalidRequestError
from service.protocol.options import read_causal, show
from service.protocol.weights_options import read_form, read_heads_text, read_top_k_text

OPTIONS: Final = ("model", "version", "causal", "weights", "heads", "top_k")
QUERY_OPTIONS: Final = (*OPTIONS, "format")
CAUSAL_WORDS: Final = {"true": True, "false": False}
READERS: Final[dict[str, Callable[[str], object]]] = {
    "causal": lambda text: read_causal(CAUSAL_WORDS.get(text, text)),
    "weights": read_form,
    "heads": read_heads_text,
    "top_k": read_top_k_text,
}


def read_query_string(pairs: Iterable[tuple[str, str]]) -> dict[str, Any]:
    """The options, checked, each as its reader gives it.

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
    for name, read in READERS.items():
        if name in options:
            options[name] = read(options[name])
    return options
