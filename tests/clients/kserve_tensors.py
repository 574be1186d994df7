"""Requests and answers in the words of KServe's SDK."""

from typing import Any

from tests.clients.cases import Case, Fault, Form
from tests.integration.demo import MODEL, Arrays
from tests.integration.doors import DATATYPES, name_dtype


def write_inputs(kserve: Any, tensors: Arrays, form: Form) -> list[Any]:
    """Tensors as inputs of the client."""
    inputs = []
    for name, array in tensors.items():
        given = kserve.InferInput(name, list(array.shape), name_dtype(array, DATATYPES))
        given.set_data_from_numpy(array, binary_data=name in form)
        inputs.append(given)
    return inputs


def write_request(kserve: Any, case: Case | Fault, form: Form, **parameters: Any) -> Any:
    """A request; its outputs are listed where the case lists them."""
    from kserve.protocol.infer_type import RequestedOutput

    asked = case.asked or ()
    return kserve.InferRequest(
        case.model if isinstance(case, Fault) else MODEL,
        write_inputs(kserve, case.tensors, form),
        parameters={**case.parameters, **parameters},
        request_outputs=[RequestedOutput(name, {"binary_data": name in form}) for name in asked],
    )


def read_outputs(response: Any) -> Arrays:
    """The outputs of a response by name."""
    return {output.name: output.as_numpy() for output in response.outputs}
