"""Which outputs a V2 request gets, in which order and in which form."""

import json
from typing import Any

import httpx
import pytest

from tests.integration.demo import B, L, S, check_close, draw_tokens, expect
from tests.integration.doors import INFER, read_answer, split_v2, write_v2_json

TENSORS = draw_tokens()


def post(client: httpx.Client, **members: Any) -> httpx.Response:
    """Post a V2 request with these members."""
    return client.post(INFER, content=json.dumps(write_v2_json(TENSORS, **members)))


def name_outputs(response: httpx.Response) -> list[str]:
    """The outputs of an answer, in its order."""
    return [output["name"] for output in split_v2(response)[0]["outputs"]]


@pytest.mark.parametrize("members", [{}, {"outputs": []}], ids=["absent", "empty"])
def test_without_a_list_all_outputs_come(client: httpx.Client, members: dict[str, Any]) -> None:
    response = post(client, **members)
    assert name_outputs(response) == ["output", "attention_weights"]
    check_close(read_answer(response), expect(TENSORS))


@pytest.mark.parametrize(
    "names",
    [["output"], ["attention_weights"], ["attention_weights", "output"]],
    ids="-".join,
)
@pytest.mark.parametrize("binary", [False, True], ids=["json", "binary"])
def test_only_listed_outputs_come_in_the_listed_order(
    client: httpx.Client, names: list[str], binary: bool
) -> None:
    outputs = [{"name": name, "parameters": {"binary_data": binary}} for name in names]
    response = post(client, outputs=outputs)
    assert name_outputs(response) == names
    right = expect(TENSORS)
    check_close(read_answer(response), {name: right[name] for name in names})


def test_binary_data_output_is_the_default_of_all_outputs(client: httpx.Client) -> None:
    response = post(client, parameters={"binary_data_output": True})
    assert all("data" not in output for output in split_v2(response)[0]["outputs"])
    check_close(read_answer(response), expect(TENSORS))


def test_binary_data_output_is_the_default_of_listed_outputs_that_do_not_say(
    client: httpx.Client,
) -> None:
    outputs = [
        {"name": "attention_weights"},
        {"name": "output", "parameters": {"binary_data": False}},
    ]
    response = post(client, outputs=outputs, parameters={"binary_data_output": True})
    head, _ = split_v2(response)
    assert ["data" in output for output in head["outputs"]] == [False, True]
    check_close(read_answer(response), expect(TENSORS))


def test_parameter_weights_none_leaves_the_weights_out(client: httpx.Client) -> None:
    response = post(client, parameters={"weights": "none"})
    check_close(read_answer(response), expect(TENSORS, weights="none"))


def test_parameter_weights_mean_gives_their_mean_over_the_heads(client: httpx.Client) -> None:
    response = post(client, parameters={"weights": "mean"})
    assert split_v2(response)[0]["outputs"][1]["shape"] == [B, L, S]
    check_close(read_answer(response), expect(TENSORS, weights="mean"))


def test_weights_none_beside_a_wish_for_them_is_refused(client: httpx.Client) -> None:
    response = post(client, parameters={"weights": "none"}, outputs=[{"name": "attention_weights"}])
    assert response.status_code == 400
    assert response.json()["error"] == (
        "parameter 'weights' is \"none\", but the output 'attention_weights' is asked for, "
        "expected some of output; change one of the two"
    )
