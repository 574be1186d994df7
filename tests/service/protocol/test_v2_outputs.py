"""The outputs that a V2 request asks for."""

from typing import Any

import pytest

from service.errors import InvalidRequestError, NotOfferedError
from service.inference import WeightsForm
from service.protocol.v2_outputs import WantedOutput, read_outputs

OUTPUT, WEIGHTS = "output", "attention_weights"


def read(
    *entries: Any, form: WeightsForm = "per_head", **parameters: Any
) -> list[tuple[str, bool]]:
    found = read_outputs({"outputs": list(entries)}, parameters, form)
    return [(output.name, output.binary) for output in found]


def refuse(*entries: Any, **parameters: Any) -> str:
    with pytest.raises(InvalidRequestError) as caught:
        read(*entries, **parameters)
    return str(caught.value)


@pytest.mark.parametrize("root", [{}, {"outputs": None}, {"outputs": []}])
def test_without_a_list_all_outputs_are_asked_for(root: dict[str, Any]) -> None:
    assert read_outputs(root, {}, "per_head") == (
        WantedOutput(OUTPUT, binary=False),
        WantedOutput(WEIGHTS, binary=False),
    )


def test_without_a_list_weights_of_form_none_are_left_out() -> None:
    assert read(form="none") == [(OUTPUT, False)]


def test_the_largest_weights_are_two_outputs_each_binary_or_not() -> None:
    assert read(form="top_k", binary_data_output=True) == [
        (OUTPUT, True), ("top_k_weights", True), ("top_k_keys", True),
    ]  # fmt: skip
    keys = {"name": "top_k_keys", "parameters": {"binary_data": True}}
    assert read(keys, {"name": "top_k_weights"}, form="top_k") == [
        ("top_k_keys", True), ("top_k_weights", False),
    ]  # fmt: skip


def test_a_list_is_answered_in_its_order() -> None:
    assert read({"name": WEIGHTS}, {"name": OUTPUT}) == [(WEIGHTS, False), (OUTPUT, False)]


def test_each_output_may_be_binary() -> None:
    entries = [{"name": OUTPUT, "parameters": {"binary_data": True}}, {"name": WEIGHTS}]
    assert read(*entries) == [(OUTPUT, True), (WEIGHTS, False)]


def test_one_parameter_makes_all_binary_but_those_that_say_otherwise() -> None:
    entries = [{"name": OUTPUT, "parameters": {"binary_data": False}}, {"name": WEIGHTS}]
    assert read(*entries, binary_data_output=True) == [(OUTPUT, False), (WEIGHTS, True)]
    assert read(binary_data_output=True) == [(OUTPUT, True), (WEIGHTS, True)]


def test_unknown_parameters_are_left_alone() -> None:
    assert read({"name": OUTPUT, "parameters": {"mine": 1}}, timeout=5000) == [(OUTPUT, False)]


def test_an_unknown_output_is_refused() -> None:
    assert refuse({"name": "weights"}) == (
        "output 'weights' is unknown, expected some of output, attention_weights, top_k_weights, "
        "top_k_keys"
    )


@pytest.mark.parametrize(
    ("form", "name", "names"),
    [
        ("none", WEIGHTS, "output"),
        ("top_k", WEIGHTS, "output, top_k_weights, top_k_keys"),
        ("per_head", "top_k_keys", "output, attention_weights"),
        ("mean", "top_k_weights", "output, attention_weights"),
        ("none", "top_k_keys", "output"),
    ],
)
def test_an_output_that_the_form_of_the_weights_does_not_have_is_refused(
    form: WeightsForm, name: str, names: str
) -> None:
    with pytest.raises(InvalidRequestError) as caught:
        read({"name": OUTPUT}, {"name": name}, form=form)
    assert str(caught.value) == (
        f"parameter 'weights' is \"{form}\", but the output '{name}' is asked for, expected some "
        f"of {names}; change one of the two"
    )


def test_an_output_comes_once() -> None:
    assert (
        refuse({"name": OUTPUT}, {"name": OUTPUT}) == "output 'output' comes twice, expected once"
    )


def test_an_output_is_an_object() -> None:
    assert refuse("output") == "an output is a string, expected an object"


def test_the_list_is_a_list() -> None:
    with pytest.raises(InvalidRequestError) as caught:
        read_outputs({"outputs": {}}, {}, "none")
    assert str(caught.value) == "'outputs' is an object, expected a list of objects"


def test_whether_data_is_binary_is_true_or_false() -> None:
    assert refuse({"name": OUTPUT, "parameters": {"binary_data": 1}}) == (
        "parameter 'binary_data' of output 'output' is 1, expected true or false"
    )
    assert refuse(binary_data_output="yes") == (
        "parameter 'binary_data_output' is \"yes\", expected true or false"
    )


@pytest.mark.parametrize("parameter", ["shared_memory_region", "classification"])
def test_other_ways_to_answer_are_not_offered(parameter: str) -> None:
    with pytest.raises(NotOfferedError) as caught:
        read({"name": OUTPUT, "parameters": {parameter: 1}})
    assert str(caught.value) == (
        f"output 'output' asks for {parameter}, which is not offered; leave it out"
    )
