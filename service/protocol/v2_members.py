"""Members that objects of the Open Inference Protocol V2 have in common."""

from typing import Any, Final

from service.errors import InvalidRequestError
from service.protocol.json_text import name_type

SHARED_MEMORY: Final = "shared_memory_region"


def read_parameters(owner: dict[str, Any], what: str) -> dict[str, Any]:
    """The parameters of a request, input or output; unknown ones are left alone.

    Raises:
        InvalidRequestError: if they are not an object of strings, numbers and booleans.
    """
    parameters = owner.get("parameters")
    if parameters is None:  # clients built on pydantic write null for what is absent
        return {}
    if not isinstance(parameters, dict):
        raise InvalidRequestError(
            f"'parameters' of {what} is {name_type(parameters)}, expected an object"
        )
    for name, value in parameters.items():
        if not isinstance(value, str | int | float):
            raise InvalidRequestError(
                f"parameter '{name}' of {what} is {name_type(value)}, "
                "expected a string, number or boolean"
            )
    return parameters


def read_list(root: dict[str, Any], member: str) -> list[Any]:
    """A list of objects that the request must have.

    Raises:
        InvalidRequestError: if it is absent, or not a list.
    """
    if member not in root:
        raise InvalidRequestError(f"'{member}' is missing, expected a list of objects")
    value = root[member]
    if not isinstance(value, list):
        raise InvalidRequestError(f"'{member}' is {name_type(value)}, expected a list of objects")
    return value


def read_entry(entry: object, kind: str) -> tuple[dict[str, Any], str]:
    """An input or output of a request, and its name.

    Raises:
        InvalidRequestError: if the entry is no object, or has no name.
    """
    if not isinstance(entry, dict):
        raise InvalidRequestError(f"an {kind} is {name_type(entry)}, expected an object")
    name = entry.get("name")
    if not isinstance(name, str) or not name:
        raise InvalidRequestError(f"an {kind} has no name, expected a string 'name'")
    return entry, name
