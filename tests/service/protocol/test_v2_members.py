"""Members that the objects of a V2 request have in common."""

from typing import Any

import pytest

from service.errors import InvalidRequestError
from service.protocol.v2_members import read_entry, read_list, read_parameters


@pytest.mark.parametrize("value", ["text", 1, -1.5, True])
def test_parameters_are_strings_numbers_and_booleans(value: object) -> None:
    assert read_parameters({"parameters": {"own": value}}, "it") == {"own": value}


def test_parameters_may_be_absent() -> None:
    assert read_parameters({}, "it") == {}
    assert read_parameters({"parameters": None}, "it") == {}


@pytest.mark.parametrize(("value", "kind"), [([], "a list"), ("a", "a string")])
def test_parameters_are_an_object(value: object, kind: str) -> None:
    with pytest.raises(InvalidRequestError) as caught:
        read_parameters({"parameters": value}, "input 'query'")
    assert str(caught.value) == (f"'parameters' of input 'query' is {kind}, expected an object")


@pytest.mark.parametrize(("value", "kind"), [(None, "null"), ([], "a list"), ({}, "an object")])
def test_other_values_of_parameters_are_refused(value: object, kind: str) -> None:
    with pytest.raises(InvalidRequestError) as caught:
        read_parameters({"parameters": {"own": value}}, "the request")
    assert str(caught.value) == (
        f"parameter 'own' of the request is {kind}, expected a string, number or boolean"
    )


@pytest.mark.parametrize(
    ("root", "said"),
    [
        ({}, "'inputs' is missing, expected a list of objects"),
        ({"inputs": None}, "'inputs' is null, expected a list of objects"),
        ({"inputs": {}}, "'inputs' is an object, expected a list of objects"),
    ],
)
def test_a_list_must_come(root: dict[str, Any], said: str) -> None:
    with pytest.raises(InvalidRequestError) as caught:
        read_list(root, "inputs")
    assert str(caught.value) == said


@pytest.mark.parametrize(
    ("entry", "said"),
    [
        ("query", "an input is a string, expected an object"),
        (None, "an input is null, expected an object"),
        ({}, "an input has no name, expected a string 'name'"),
        ({"name": ""}, "an input has no name, expected a string 'name'"),
        ({"name": 1}, "an input has no name, expected a string 'name'"),
    ],
)
def test_an_entry_is_an_object_with_a_name(entry: object, said: str) -> None:
    with pytest.raises(InvalidRequestError) as caught:
        read_entry(entry, "input")
    assert str(caught.value) == said


def test_unknown_members_of_an_entry_are_left_alone() -> None:
    entry = {"name": "output", "mine": 1}
    assert read_entry(entry, "output") == (entry, "output")
