"""The names of the inputs, and what to do with names that people carry over from elsewhere."""

from collections.abc import Iterable
from typing import Final

from model.contract import BIAS, KEY, KEY_MASK, MASK, QUERY, VALUE
from service.errors import InvalidRequestError

INPUTS: Final = (QUERY, KEY, VALUE, MASK, KEY_MASK, BIAS)

FOREIGN_NAMES: Final = {
    "attn_mask": "send 'mask', where true means visible; in nn.MultiheadAttention's attn_mask "
    "true means hidden, so invert it; a float attn_mask goes into 'bias'",
    "key_padding_mask": "send 'key_mask', where true means a real key; in "
    "nn.MultiheadAttention's key_padding_mask true means padding, so invert it",
    "attention_mask": "send 'key_mask' [batch_size, key_length]; the attention_mask of a "
    "tokenizer has the same sense, 1 = a real key",
}


def check_input_names(names: Iterable[str]) -> None:
    """Refuse unknown inputs, with a translation of names from other libraries.

    Raises:
        InvalidRequestError: if an input is unknown, or the query is missing.
    """
    given = list(names)
    for name in given:
        if name in FOREIGN_NAMES:
            raise InvalidRequestError(f"input '{name}' is not known here: {FOREIGN_NAMES[name]}")
        if name not in INPUTS:
            raise InvalidRequestError(
                f"input '{name}' is unknown, expected some of {', '.join(INPUTS)}"
            )
    if QUERY not in given:
        raise InvalidRequestError("input 'query' is missing")
