"""Requests of the model repository extension."""

from typing import Any, Final

from service.errors import InvalidRequestError, NotOfferedError
from service.protocol.json_text import name_type, parse_object
from service.protocol.v2_members import read_parameters

WHAT: Final = "the request"
CONFIG: Final = "config"
FILE: Final = "file:"


def decode_index(text: bytes) -> bool:
    """Whether a request for the index asks for models that serve alone.

    Args:
        text: a JSON object, or nothing.

    Raises:
        InvalidRequestError: if it is malformed.
    """
    return read_flag(decode(text), "ready")


def decode_load(text: bytes) -> None:
    """Accept a request to load a model, which has nothing to choose.

    Args:
        text: a JSON object, or nothing.

    Raises:
        InvalidRequestError: if it is malformed.
        NotOfferedError: if it brings a configuration or files.
    """
    parameters = read_parameters(decode(text), WHAT)
    for name in parameters:
        if name == CONFIG or name.startswith(FILE):
            raise NotOfferedError(
                f"parameter {name[:64]!a} is not offered: a model is loaded as it lies in the "
                "directory of models; put its files and its config.pbtxt there"
            )


def decode_unload(text: bytes) -> None:
    """Accept a request to unload a model; others do not depend on it, whatever it says of them.

    Args:
        text: a JSON object, or nothing.

    Raises:
        InvalidRequestError: if it is malformed.
    """
    read_parameters(decode(text), WHAT)


def decode(text: bytes) -> dict[str, Any]:
    """The object of a body; an empty one where there is none.

    Raises:
        InvalidRequestError: if it is malformed.
    """
    return parse_object(text, what=WHAT, non_finite=False) if text else {}


def read_flag(owner: dict[str, Any], name: str) -> bool:
    """A member that is true or false; false where it is absent.

    Raises:
        InvalidRequestError: if it is anything else.
    """
    value = owner.get(name)
    if value is not None and not isinstance(value, bool):
        raise InvalidRequestError(f"'{name}' is {name_type(value)}, expected true or false")
    return bool(value)
