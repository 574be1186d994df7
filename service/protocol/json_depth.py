"""How deep the lists and objects of a JSON text stand in each other."""

from typing import Any, Final, NoReturn

from service.errors import InvalidRequestError

DEFAULT_DEPTH: Final = 64
MAX_DEPTH: Final = 1024  # orjson's own
CONTAINERS: Final = frozenset((list, dict))


def check_depth(value: object, text: bytes | bytearray, what: str, max_depth: int) -> None:
    """Refuse a value that is nested too deeply.

    Args:
        value: what `text` was parsed to.
        text: valid JSON.
        what: the name of the text in the message.
        max_depth: of lists and objects in each other; a number alone has depth 0.

    Raises:
        InvalidRequestError: naming the setting.
    """
    # Without so many brackets it cannot be; looking at every value takes longer.
    if text.count(b"[") + text.count(b"{") > max_depth and is_deeper(value, max_depth):
        refuse_depth(what, max_depth)


def refuse_depth(what: str, max_depth: int) -> NoReturn:
    """Say that a text is nested too deeply.

    Raises:
        InvalidRequestError: always.
    """
    raise InvalidRequestError(
        f"{what} is nested too deeply: expected at most {max_depth} lists and objects in each "
        "other (LIMELIGHT_MAX_JSON_DEPTH)"
    ) from None


def is_deeper(value: object, depth: int) -> bool:
    """Whether more than `depth` lists and objects stand in each other."""
    level = list_containers([value])
    for _ in range(depth):
        if not level:
            return False
        level = [
            inner
            for outer in level
            for inner in list_containers(outer.values() if isinstance(outer, dict) else outer)
        ]
    return bool(level)


def list_containers(values: Any) -> list[Any]:  # noqa: ANN401 - a list, or values of an object
    """The lists and objects among values; lists of numbers cost no loop."""
    if CONTAINERS.isdisjoint(map(type, values)):
        return []
    return [value for value in values if type(value) in CONTAINERS]
