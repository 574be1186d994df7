"""Requests and answers in the words of tritonclient."""

from collections.abc import Mapping
from typing import Any

from tests.clients.cases import Case, Fault, Form
from tests.integration.demo import Arrays
from tests.integration.doors import DATATYPES, name_dtype


def write_inputs(http: Any, tensors: Arrays, form: Form) -> list[Any]:
    """Tensors as inputs of the client."""
    inputs = []
    for name, array in tensors.items():
        given = http.InferInput(name, list(array.shape), name_dtype(array, DATATYPES))
        given.set_data_from_numpy(array, binary_data=name in form)
        inputs.append(given)
    return inputs


def write_request(http: Any, case: Case | Fault, form: Form) -> Mapping[str, Any]:
    """The arguments of `infer` but for the model."""
    request: dict[str, Any] = {
        "inputs": write_inputs(http, case.tensors, form),
        "parameters": dict(case.parameters),
    }
    if case.asked is not None:
        request["outputs"] = [
            http.InferRequestedOutput(name, binary_data=name in form) for name in case.asked
        ]
    return request


def read_outputs(result: Any) -> Arrays:
    """The outputs of a result by name."""
    names = [output["name"] for output in result.get_response()["outputs"]]
    return {name: result.as_numpy(name) for name in names}
