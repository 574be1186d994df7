"""The option `causal`: the same words and rules at every door."""

import json

from model.contract import CAUSAL_FORMS, Causal
from service.errors import InvalidRequestError


def read_causal(value: object) -> Causal | None:
    """True means "top_left", as in torch's SDPA and ONNX; nothing said is left to the model.

    Raises:
        InvalidRequestError: if `value` is not one of the forms.
    """
    if value is True:
        return "top_left"
    if value is None:
        return None
    if value is False:
        return False
    for form in CAUSAL_FORMS:
        if value == form:
            return form
    raise InvalidRequestError(
        f"parameter 'causal' is {show(value)}, expected true, false, "
        '"top_left" (as true) or "bottom_right"'
    )


def show(value: object) -> str:
    """A value of the client's, short and in JSON's spelling, for a message."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, dict | list):
        return "an object" if isinstance(value, dict) else "a list"
    # Cut first: the text of a client may be as long as a body.
    text = json.dumps(value[:64], ensure_ascii=False) if isinstance(value, str) else str(value)
    return text if len(text) <= 64 else f"{text[:61]}..."
