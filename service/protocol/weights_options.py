"""The options `weights`, `heads` and `top_k`: the same rules at every door.

Lists are for JSON bodies; query strings and the parameters of V2, which hold no lists, have text.
"""

import re
from typing import Final

from service.errors import InvalidRequestError
from service.inference import WEIGHTS_FORMS, WantedWeights, WeightsForm
from service.protocol.options import show
from service.protocol.shapes import MAX_AXIS

HEADS_TEXT: Final = r"[0-9]{1,9}(,[0-9]{1,9})*"
TOP_K_TEXT: Final = r"[0-9]{1,10}"


def read_form(value: object) -> WeightsForm:
    """The form of the attention weights in the answer.

    Raises:
        InvalidRequestError: if `value` is not one of the forms.
    """
    for form in WEIGHTS_FORMS:
        if isinstance(value, str) and value == form:
            return form
    raise InvalidRequestError(
        f'parameter \'weights\' is {show(value)}, expected "none", "per_head", "mean" or "top_k"'
    )


def read_heads_list(value: object) -> tuple[int, ...]:
    """The numbers of heads in a list.

    Raises:
        InvalidRequestError: if it is no list, is empty, or holds a number twice or anything else.
    """
    if not isinstance(value, list) or not value:
        shown = "an empty list" if value == [] else show(value)
        raise InvalidRequestError(
            f"parameter 'heads' is {shown}, expected a list of the numbers of heads, as [0, 3]; "
            "leave it out for all of them"
        )
    for head in value:
        # A boolean is an int to Python, and 2.0 a float; neither is the number of a head.
        if type(head) is not int or not 0 <= head <= MAX_AXIS:
            raise InvalidRequestError(
                f"parameter 'heads' holds {show(head)}, expected whole numbers from 0 on, as [0, 3]"
            )
    return check_heads_once(value)


def read_heads_text(value: object) -> tuple[int, ...]:
    """The numbers of heads in a text, with commas between them.

    Raises:
        InvalidRequestError: if it is no such text, or has a number twice.
    """
    if not isinstance(value, str) or not re.fullmatch(HEADS_TEXT, value):
        raise InvalidRequestError(
            f"parameter 'heads' is {show(value)}, expected the numbers of heads with commas "
            'between them, as "0,3"; leave it out for all of them'
        )
    return check_heads_once([int(number) for number in value.split(",")])


def check_heads_once(heads: list[int]) -> tuple[int, ...]:
    """The same numbers, all different.

    Raises:
        InvalidRequestError: naming the first that comes twice.
    """
    seen: set[int] = set()
    for head in heads:
        if head in seen:
            raise InvalidRequestError(f"parameter 'heads' holds {head} twice, expected it once")
        seen.add(head)
    return tuple(heads)


def read_top_k(value: object) -> int:
    """How many keys of each row.

    Raises:
        InvalidRequestError: if it is not a whole number of at least 1.
    """
    if type(value) is not int or not 1 <= value <= MAX_AXIS:
        raise InvalidRequestError(
            f"parameter 'top_k' is {show(value)}, expected a whole number from 1 to {MAX_AXIS}"
        )
    return value


def read_top_k_text(text: str) -> int:
    """How many keys of each row, in decimal digits.

    Raises:
        InvalidRequestError: if it is not a whole number of at least 1.
    """
    return read_top_k(int(text) if re.fullmatch(TOP_K_TEXT, text) else text)


def choose_weights(
    form: WeightsForm, heads: tuple[int, ...] | None, top_k: int | None
) -> WantedWeights:
    """The weights that the three options ask for together.

    Args:
        form: as it was given, or the door's default.
        heads: if they were given.
        top_k: if it was given.

    Raises:
        InvalidRequestError: if one of them says what another does not.
    """
    if form == "none" and heads is not None:
        raise InvalidRequestError(
            "parameter 'heads' is given, but parameter 'weights' is \"none\", expected "
            '"per_head", "mean" or "top_k" beside it; change one of the two'
        )
    if form != "top_k" and top_k is not None:
        raise InvalidRequestError(
            f"parameter 'top_k' is given, but parameter 'weights' is \"{form}\", expected "
            '"top_k" beside it; change one of the two'
        )
    if form == "top_k" and top_k is None:
        raise InvalidRequestError(
            "parameter 'weights' is \"top_k\", but parameter 'top_k' is missing, expected how "
            "many keys of each row; change one of the two"
        )
    return WantedWeights(form, heads, top_k)
