"""The outputs that a V2 request asks for."""

from dataclasses import dataclass
from typing import Any, Final

from model.contract import OUTPUT, TOP_K_KEYS, TOP_K_WEIGHTS, WEIGHTS
from service.errors import InvalidRequestError, NotOfferedError
from service.inference import WeightsForm
from service.protocol.options import show
from service.protocol.v2_members import SHARED_MEMORY, read_entry, read_list, read_parameters

OUTPUTS: Final[dict[WeightsForm, tuple[str, ...]]] = {
    "none": (OUTPUT,),
    "per_head": (OUTPUT, WEIGHTS),
    "mean": (OUTPUT, WEIGHTS),
    "top_k": (OUTPUT, TOP_K_WEIGHTS, TOP_K_KEYS),
}
"""The outputs of an answer, by the form of its weights."""


@dataclass(frozen=True, slots=True)
class WantedOutput:
    """One output that the client asked for, and whether as binary data."""

    name: str
    binary: bool


def read_outputs(
    root: dict[str, Any], parameters: dict[str, Any], form: WeightsForm
) -> tuple[WantedOutput, ...]:
    """The outputs asked for; without a list all those of the form of the weights.

    Raises:
        InvalidRequestError: if one is unknown, malformed, comes twice, or is not of the form.
    """
    by_default = parameters.get("binary_data_output", False)
    if type(by_default) is not bool:
        raise InvalidRequestError(
            f"parameter 'binary_data_output' is {show(by_default)}, expected true or false"
        )
    entries = read_list(root, "outputs") if root.get("outputs") is not None else []
    if not entries:
        return tuple(WantedOutput(name, by_default) for name in OUTPUTS[form])
    wanted = tuple(read_output(entry, binary=by_default) for entry in entries)
    for index, output in enumerate(wanted):
        if output.name in [earlier.name for earlier in wanted[:index]]:
            raise InvalidRequestError(f"output '{output.name}' comes twice, expected once")
        check_form(output.name, form)
    return wanted


def check_form(name: str, form: WeightsForm) -> None:
    """Refuse an output that weights of this form do not have.

    Raises:
        InvalidRequestError: naming the output and the parameter.
    """
    if name not in OUTPUTS[form]:
        raise InvalidRequestError(
            f"parameter 'weights' is \"{form}\", but the output '{name}' is asked for, expected "
            f"some of {', '.join(OUTPUTS[form])}; change one of the two"
        )


def read_output(item: object, *, binary: bool) -> WantedOutput:
    """One entry of the list of outputs.

    Raises:
        InvalidRequestError: if it is unknown or malformed.
        NotOfferedError: for shared memory and classification.
    """
    entry, name = read_entry(item, "output")
    if not any(name in names for names in OUTPUTS.values()):
        known = dict.fromkeys(name for names in OUTPUTS.values() for name in names)
        raise InvalidRequestError(
            f"output '{name}' is unknown, expected some of {', '.join(known)}"
        )
    parameters = read_parameters(entry, f"output '{name}'")
    for unoffered in (SHARED_MEMORY, "classification"):
        if unoffered in parameters:
            raise NotOfferedError(
                f"output '{name}' asks for {unoffered}, which is not offered; leave it out"
            )
    chosen = parameters.get("binary_data", binary)
    if type(chosen) is not bool:
        raise InvalidRequestError(
            f"parameter 'binary_data' of output '{name}' is {show(chosen)}, expected true or false"
        )
    return WantedOutput(name, chosen)
