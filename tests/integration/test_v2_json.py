"""V2 requests whose tensors are JSON."""

import json
from typing import Any

import httpx
import numpy as np
import pytest

from tests.integration.demo import MODEL, B, D, H, L, S, check_close, draw_mask, draw_tokens, expect
from tests.integration.doors import INFER, JSON, read_answer, write_v2_json

TENSORS = draw_tokens()
MASKED = TENSORS | {"mask": draw_mask(B, 1, L, S)}


def post(client: httpx.Client, body: dict[str, Any], **headers: str) -> httpx.Response:
    """Post a V2 request."""
    return client.post(INFER, content=json.dumps(body), headers=headers)


@pytest.mark.parametrize("nested", [False, True], ids=["flat", "nested"])
def test_data_may_be_flat_or_nested(client: httpx.Client, nested: bool) -> None:
    response = post(client, write_v2_json(MASKED, nested=nested))
    check_close(read_answer(response), expect(MASKED))


def test_data_of_another_nesting_is_read_in_row_major_order(client: httpx.Client) -> None:
    body = write_v2_json(TENSORS)
    body["inputs"][0]["data"] = TENSORS["query"].reshape(B * L, D).tolist()
    check_close(read_answer(post(client, body)), expect(TENSORS))


def test_whole_numbers_are_numbers(client: httpx.Client) -> None:
    ones = {name: np.ones_like(array) for name, array in TENSORS.items()}
    body = write_v2_json({name: array.astype(np.int64) for name, array in ones.items()})
    for entry in body["inputs"]:
        entry["datatype"] = "FP32"
    check_close(read_answer(post(client, body)), expect(ones))


def test_the_answer_names_the_model_and_describes_each_output(client: httpx.Client) -> None:
    response = post(client, write_v2_json(TENSORS))
    answer = response.json()
    assert response.headers["Content-Type"] == JSON
    assert (answer["model_name"], answer["model_version"]) == (MODEL, "1")
    described = [(o["name"], o["datatype"], o["shape"]) for o in answer["outputs"]]
    assert described == [
        ("output", "FP32", [B, L, D]),
        ("attention_weights", "FP32", [B, H, L, S]),
    ]
    assert [set(o) for o in answer["outputs"]] == [{"name", "datatype", "shape", "data"}] * 2


def test_a_version_may_be_named(client: httpx.Client) -> None:
    body = json.dumps(write_v2_json(TENSORS))
    response = client.post(f"/v2/models/{MODEL}/versions/1/infer", content=body)
    check_close(read_answer(response), expect(TENSORS))


@pytest.mark.parametrize("given", ["7", "a b/ü", "x" * 300])
def test_an_id_is_echoed(client: httpx.Client, given: str) -> None:
    assert post(client, write_v2_json(TENSORS, id=given)).json()["id"] == given


@pytest.mark.parametrize("members", [{}, {"id": ""}], ids=["none", "empty"])
def test_an_id_that_was_not_given_is_not_echoed(
    client: httpx.Client, members: dict[str, Any]
) -> None:
    assert "id" not in post(client, write_v2_json(TENSORS, **members)).json()


def test_unknown_members_and_parameters_are_tolerated(client: httpx.Client) -> None:
    body = write_v2_json(
        TENSORS,
        model_name="x",
        parameters={"timeout": 5000, "priority": 1, "foo": "x", "rate": 0.5, "flag": True},
        extra={"deep": [1, None]},
    )
    body["inputs"][0] |= {"note": None, "parameters": {"foo": 1}}
    body["outputs"] = [{"name": "output", "parameters": {"foo": 1.5}, "note": []}]
    wanted = expect(TENSORS, weights="none")
    check_close(read_answer(post(client, body)), wanted)


@pytest.mark.parametrize(
    "content_type",
    [
        "application/octet-stream",
        "application/x-www-form-urlencoded",
        "multipart/form-data; boundary=x",
        "text/plain",
        "nonsense",
    ],
)
def test_the_content_type_does_not_matter(client: httpx.Client, content_type: str) -> None:
    response = post(client, write_v2_json(TENSORS), **{"Content-Type": content_type})
    check_close(read_answer(response), expect(TENSORS))


def test_a_body_without_content_type_is_read(client: httpx.Client) -> None:
    response = post(client, write_v2_json(TENSORS))
    assert "Content-Type" not in response.request.headers
    check_close(read_answer(response), expect(TENSORS))


def test_a_chunked_body_is_read(client: httpx.Client) -> None:
    text = json.dumps(write_v2_json(TENSORS)).encode()
    parts = (text[start : start + 1000] for start in range(0, len(text), 1000))
    response = client.post(INFER, content=parts)
    assert response.request.headers["Transfer-Encoding"] == "chunked"
    check_close(read_answer(response), expect(TENSORS))


@pytest.mark.parametrize("values", [[True, False], [1, 0]], ids=["booleans", "numbers"])
def test_a_mask_takes_true_and_false_or_1_and_0(client: httpx.Client, values: list[Any]) -> None:
    body = write_v2_json(MASKED)
    body["inputs"][3]["data"] = [values[0] if x else values[1] for x in MASKED["mask"].flat]
    check_close(read_answer(post(client, body)), expect(MASKED))


def test_every_json_number_gives_the_float32_back(client: httpx.Client) -> None:
    """The shortest digits of a float32 name it exactly."""
    answer = post(client, write_v2_json(TENSORS)).json()
    for output in answer["outputs"]:
        numbers = np.array(output["data"], np.float64)
        shortest = [float(str(number)) for number in numbers.astype(np.float32)]
        np.testing.assert_array_equal(numbers, shortest)
