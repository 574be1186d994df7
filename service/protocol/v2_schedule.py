"""How a V2 request wants to wait, and the parameters that are reserved beside that.

Triton's extensions schedule_policy, sequence and parameters:
https://github.com/triton-inference-server/server/tree/main/docs/protocol
"""

from collections.abc import Mapping
from typing import Any, Final

from service.errors import InvalidRequestError, NotOfferedError
from service.inference import Schedule
from service.protocol.options import show

TIMEOUT: Final = "timeout"
PRIORITY: Final = "priority"
MAX_TIMEOUT_US: Final = 2**63 - 1  # int64 in Triton
MAX_PRIORITY: Final = 2**64 - 1  # uint64
SEQUENCE: Final = ("sequence_id", "sequence_start", "sequence_end")
RESERVED_PREFIX: Final = "triton_"


def read_schedule(parameters: Mapping[str, Any]) -> Schedule:
    """How a request wants to wait; a timeout of 0 is none, as clients write it.

    Args:
        parameters: of the request.

    Raises:
        InvalidRequestError: if a parameter does not fit, or is reserved.
        NotOfferedError: if the request belongs to a sequence.
    """
    check_reserved(parameters)
    timeout_us = read_whole(parameters, TIMEOUT, MAX_TIMEOUT_US, "number of microseconds")
    priority = read_whole(parameters, PRIORITY, MAX_PRIORITY, "number")
    return Schedule(priority, timeout_us or None)


def read_whole(parameters: Mapping[str, Any], name: str, most: int, what: str) -> int:
    """A parameter that is a whole number; 0 where it is absent.

    Raises:
        InvalidRequestError: if it is none, or is not between 0 and `most`.
    """
    value = parameters.get(name, 0)
    if type(value) is not int or not 0 <= value <= most:
        raise InvalidRequestError(
            f"parameter '{name}' is {show(value)}, expected a whole {what} from 0 to {most}"
        )
    return value


def check_reserved(parameters: Mapping[str, Any]) -> None:
    """Refuse parameters that ask for what would be ignored.

    Raises:
        NotOfferedError: for a request of a sequence: every request is answered for itself.
        InvalidRequestError: for names that Triton keeps to itself, and refuses too.
    """
    for name in SEQUENCE:
        # Clients write 0, false or an empty name for no sequence.
        if parameters.get(name) not in (None, 0, ""):
            raise NotOfferedError(
                f"parameter '{name}' is {show(parameters[name])}, but sequences are not offered: "
                "every request is answered for itself; leave it out"
            )
    for name in parameters:
        if name.startswith(RESERVED_PREFIX):
            raise InvalidRequestError(
                f"parameter {show(name)} is reserved, as all that begin with {RESERVED_PREFIX}; "
                "leave it out"
            )
