"""The forms of /v1/attention: what goes in, what comes out, and who chooses."""

import io
import json
from typing import Any

import httpx
import numpy as np
import pytest

from tests.integration.demo import B, D, H, L, S, check_close, draw_mask, draw_tokens, expect
from tests.integration.doors import (
    ATTENTION,
    DOORS,
    JSON,
    NPZ,
    SAFETENSORS,
    V1_DOORS,
    ask,
    read_answer,
    read_safetensors,
    write_nested,
    write_npz,
    write_safetensors,
)

TENSORS = draw_tokens() | {"mask": draw_mask(B, 1, L, S)}
BODIES = {
    JSON: json.dumps(write_nested(TENSORS)).encode(),
    NPZ: write_npz(TENSORS),
    SAFETENSORS: write_safetensors(TENSORS),
}
FORMATS = {"json": JSON, "npz": NPZ, "safetensors": SAFETENSORS}


def post(client: httpx.Client, body: bytes, query: str = "", **headers: str) -> httpx.Response:
    """Post to the friendly door; underscores in header names stand for dashes."""
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return client.post(ATTENTION + query, content=body, headers=named)


@pytest.mark.parametrize("door", V1_DOORS)
def test_each_form_is_answered_in_its_own(client: httpx.Client, door: str) -> None:
    response = DOORS[door](client, TENSORS)
    assert response.headers["Content-Type"] == FORMATS[door.removeprefix("v1-")]
    check_close(read_answer(response), expect(TENSORS, weights="none"))


@pytest.mark.parametrize("door", V1_DOORS)
def test_weights_come_where_they_are_asked_for(client: httpx.Client, door: str) -> None:
    check_close(ask(client, door, TENSORS), expect(TENSORS))


def test_a_json_answer_is_nested_and_names_model_and_graph(client: httpx.Client) -> None:
    answer = DOORS["v1-json"](client, TENSORS, weights="per_head").json()
    assert np.shape(answer["output"]) == (B, L, D)
    assert np.shape(answer["attention_weights"]) == (B, H, L, S)
    assert (answer["model_name"], answer["model_version"]) == ("demo", "1")
    assert answer["graph"]


@pytest.mark.parametrize("wanted", FORMATS)
@pytest.mark.parametrize("given", BODIES)
def test_the_query_string_chooses_the_form_of_the_answer(
    client: httpx.Client, given: str, wanted: str
) -> None:
    query = f"?format={wanted}"
    response = post(client, BODIES[given], query, Content_Type=given, Accept=JSON)
    assert response.headers["Content-Type"] == FORMATS[wanted]
    check_close(read_answer(response), expect(TENSORS, weights="none"))


@pytest.mark.parametrize(
    ("accept", "wanted"),
    [
        (NPZ, NPZ),
        (SAFETENSORS, SAFETENSORS),
        (JSON, JSON),
        ("*/*", JSON),
        ("application/*", JSON),
        (f"{NPZ};q=0.5, {SAFETENSORS}", SAFETENSORS),
        (f"text/html, {NPZ};q=0.9, */*;q=0.1", NPZ),
        (f"{JSON};q=0, {NPZ}", NPZ),
        (NPZ.upper(), NPZ),
    ],
)
def test_accept_chooses_the_form_of_the_answer(
    client: httpx.Client, accept: str, wanted: str
) -> None:
    response = post(client, BODIES[JSON], Content_Type=JSON, Accept=accept)
    assert response.status_code == 200, response.text
    assert response.headers["Content-Type"] == wanted


def test_a_form_that_is_not_written_is_refused(client: httpx.Client) -> None:
    response = post(client, BODIES[JSON], Accept="image/png")
    assert response.status_code in {406, 415}
    assert "expected one of application/json, application/x-npz" in response.json()["error"]
    response = post(client, BODIES[JSON], "?format=png")
    assert (response.status_code, response.json()) == (
        400,
        {"error": "parameter 'format' is \"png\", expected one of json, npz, safetensors"},
    )


@pytest.mark.parametrize("body", BODIES.values(), ids=BODIES)
@pytest.mark.parametrize(
    "headers",
    [{}, {"Content_Type": "application/octet-stream"}],
    ids=["no-content-type", "octet-stream"],
)
def test_bytes_without_a_media_type_are_told_apart(
    client: httpx.Client, body: bytes, headers: dict[str, str]
) -> None:
    check_close(read_answer(post(client, body, **headers)), expect(TENSORS, weights="none"))


def test_what_curl_calls_a_form_is_read_as_json(client: httpx.Client) -> None:
    """`curl -d` says so of every body."""
    form = "application/x-www-form-urlencoded"
    response = post(client, BODIES[JSON], Content_Type=form, Accept="*/*")
    check_close(read_answer(response), expect(TENSORS, weights="none"))


@pytest.mark.parametrize("content_type", ["application/json; charset=utf-8", "Application/JSON"])
def test_parameters_and_case_of_a_media_type_do_not_matter(
    client: httpx.Client, content_type: str
) -> None:
    response = post(client, BODIES[JSON], Content_Type=content_type)
    check_close(read_answer(response), expect(TENSORS, weights="none"))


@pytest.mark.parametrize("content_type", ["text/csv", "multipart/form-data; boundary=x"])
def test_another_media_type_is_415_with_those_that_are_read(
    client: httpx.Client, content_type: str
) -> None:
    response = post(client, BODIES[JSON], Content_Type=content_type)
    name = content_type.partition(";")[0]
    assert (response.status_code, response.json()) == (
        415,
        {
            "error": f'Content-Type is "{name}", expected one of application/json, '
            "application/x-npz, application/x-safetensors"
        },
    )


def test_compressed_archives_are_read(client: httpx.Client) -> None:
    stream = io.BytesIO()
    np.savez_compressed(stream, **TENSORS)  # type: ignore[arg-type] # its options are keywords too
    response = post(client, stream.getvalue(), Content_Type=NPZ)
    check_close(read_answer(response), expect(TENSORS, weights="none"))


def test_other_byte_orders_and_layouts_give_the_right_numbers(client: httpx.Client) -> None:
    odd: dict[str, Any] = {
        "query": TENSORS["query"].astype(">f4"),
        "key": np.asfortranarray(TENSORS["key"]),
        "value": np.asfortranarray(TENSORS["value"].astype(">f4")),
        "mask": np.asfortranarray(TENSORS["mask"]),
    }
    response = post(client, write_npz(odd), Content_Type=NPZ)
    check_close(read_answer(response), expect(TENSORS, weights="none"))


def test_metadata_in_a_safetensors_header_is_ignored(client: httpx.Client) -> None:
    body = BODIES[SAFETENSORS]
    length = int.from_bytes(body[:8], "little")
    header = {"__metadata__": {"by": "hand"}} | json.loads(body[8 : 8 + length])
    text = json.dumps(header).encode().ljust(length + 64)
    sent = len(text).to_bytes(8, "little") + text + body[8 + length :]
    response = post(client, sent, Content_Type=SAFETENSORS)
    check_close(read_answer(response), expect(TENSORS, weights="none"))


def test_the_library_of_safetensors_reads_the_answer(client: httpx.Client) -> None:
    library = pytest.importorskip("safetensors.numpy")
    response = DOORS["v1-safetensors"](client, TENSORS, weights="per_head")
    loaded = library.load(response.content)
    check_close(loaded, expect(TENSORS))
    for name, array in read_safetensors(response.content).items():
        np.testing.assert_array_equal(array, loaded[name])


def test_null_is_an_absent_tensor(client: httpx.Client) -> None:
    body = write_nested(TENSORS) | {"bias": None, "key_mask": None, "causal": None}
    response = client.post(ATTENTION, json=body)
    check_close(read_answer(response), expect(TENSORS, weights="none"))
