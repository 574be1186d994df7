"""The weights of some heads alone, and the largest of each row."""

from typing import Any

import httpx
import numpy as np
import pytest

from tests.integration.demo import (
    Arrays,
    B,
    H,
    L,
    S,
    check_close,
    check_same,
    draw_mask,
    draw_tokens,
    expect,
)
from tests.integration.doors import DOORS, INFER, JSON, V1_DOORS, ask, read_answer, write_v2_json

TENSORS = draw_tokens() | {"mask": draw_mask(B, H, L, S)}
HEADS = [[2, 0], [1], [1, 2, 0]]
TOP: dict[str, Any] = {"weights": "top_k", "top_k": 3}
RANGE = "parameter 'heads' holds 3, expected numbers from 0 to 2: the model has 3 heads"
REFUSALS = [
    ({"weights": "per_head", "heads": [0, 3]}, RANGE),
    ({"weights": "mean", "heads": [3]}, RANGE),
    ({**TOP, "heads": [3]}, RANGE),
    (
        {"weights": "mean", "heads": [2, 0, 2]},
        "parameter 'heads' holds 2 twice, expected it once",
    ),
    (
        {"weights": "none", "heads": [0]},
        "parameter 'heads' is given, but parameter 'weights' is \"none\", expected \"per_head\", "
        '"mean" or "top_k" beside it; change one of the two',
    ),
    (
        {"weights": "mean", "top_k": 2},
        "parameter 'top_k' is given, but parameter 'weights' is \"mean\", expected \"top_k\" "
        "beside it; change one of the two",
    ),
    (
        {"weights": "top_k"},
        "parameter 'weights' is \"top_k\", but parameter 'top_k' is missing, expected how many "
        "keys of each row; change one of the two",
    ),
    (
        {"weights": "top_k", "top_k": 0},
        "parameter 'top_k' is 0, expected a whole number from 1 to 2147483647",
    ),
]


def drop_batch(tensors: Arrays) -> Arrays:
    """The first item, without a batch axis."""
    return {name: array[0] for name, array in tensors.items()}


@pytest.mark.parametrize("heads", HEADS, ids=str)
@pytest.mark.parametrize("weights", ["per_head", "mean"])
@pytest.mark.parametrize("door", DOORS)
def test_the_weights_of_some_heads_come_in_the_order_asked_for(
    client: httpx.Client, door: str, weights: str, heads: list[int]
) -> None:
    got = ask(client, door, TENSORS, weights=weights, heads=heads)
    check_close(got, expect(TENSORS, weights=weights, heads=heads))


@pytest.mark.parametrize("options", [{}, {"heads": [2, 0]}], ids=["all heads", "two heads"])
@pytest.mark.parametrize("count", [1, 3, S, 1000])
@pytest.mark.parametrize("door", DOORS)
def test_the_largest_weights_of_each_row_and_their_keys(
    client: httpx.Client, door: str, count: int, options: dict[str, Any]
) -> None:
    got = ask(client, door, TENSORS, weights="top_k", top_k=count, **options)
    heads = len(options.get("heads", range(H)))
    assert got["top_k_keys"].shape == (B, heads, L, min(count, S))
    check_close(got, expect(TENSORS, weights="top_k", top_k=count, **options))


@pytest.mark.parametrize("form", ["json", "npz", "safetensors"])
@pytest.mark.parametrize("door", V1_DOORS)
def test_tensors_without_a_batch_axis_get_the_largest_without_one(
    client: httpx.Client, door: str, form: str
) -> None:
    right = expect({name: array[:1] for name, array in TENSORS.items()}, heads=[2, 1], **TOP)
    wanted = drop_batch(right)
    check_close(ask(client, "v1-json", drop_batch(TENSORS), heads=[2, 1], **TOP), wanted)
    if door != "v1-json":  # whose options stand in the body, the form of the answer does not
        check_close(
            ask(client, door, drop_batch(TENSORS), heads=[2, 1], format=form, **TOP), wanted
        )


def test_equal_weights_are_in_the_order_of_their_keys(client: httpx.Client) -> None:
    blind = draw_tokens() | {"mask": np.zeros((1, S), bool)}
    got = ask(client, "v1-npz", blind, **TOP)
    assert (got["top_k_keys"] == [0, 1, 2]).all()
    assert (got["top_k_weights"] == np.float32(1) / np.float32(S)).all()


@pytest.mark.parametrize("door", DOORS)
def test_what_is_kept_has_the_bits_of_the_weights_of_every_head(
    client: httpx.Client, door: str
) -> None:
    every = ask(client, "v2-binary", TENSORS)
    some = ask(client, door, TENSORS, heads=[2, 0])
    check_same(some, every | {"attention_weights": every["attention_weights"][:, [2, 0]]})
    best = ask(client, door, TENSORS, **TOP)
    assert best["output"].tobytes() == every["output"].tobytes()
    taken = np.take_along_axis(every["attention_weights"], best["top_k_keys"], axis=-1)
    assert best["top_k_weights"].tobytes() == taken.tobytes()


@pytest.mark.parametrize("heads", [[2, 0], [0, 2]], ids=str)
def test_the_order_of_heads_does_not_count_in_their_mean(
    client: httpx.Client, heads: list[int]
) -> None:
    got = ask(client, "v2-binary", TENSORS, weights="mean", heads=heads)
    check_same(got, ask(client, "v1-npz", TENSORS, weights="mean", heads=[2, 0]))


def test_a_row_that_is_not_a_number_has_its_first_keys(client: httpx.Client) -> None:
    query = TENSORS["query"].copy()
    query[1, 3] = np.nan
    got = ask(client, "v2-binary", TENSORS | {"query": query}, **TOP)
    assert (got["top_k_keys"][1, :, 3] == [0, 1, 2]).all()
    assert np.isnan(got["top_k_weights"][1, :, 3]).all()
    assert np.isnan(got["top_k_weights"]).sum() == 3 * H


@pytest.mark.parametrize(("options", "text"), REFUSALS)
@pytest.mark.parametrize("door", DOORS)
def test_options_that_do_not_fit_are_refused(
    client: httpx.Client, door: str, options: dict[str, Any], text: str
) -> None:
    response = DOORS[door](client, TENSORS, **options)
    assert (response.status_code, response.json()) == (400, {"error": text})


@pytest.mark.parametrize("heads", ["0,3", [], [1.5], [True], ["1"], 0], ids=str)
def test_what_is_no_list_of_heads_is_refused_in_json(client: httpx.Client, heads: Any) -> None:
    body = {name: array.tolist() for name, array in TENSORS.items()}
    response = client.post("/v1/attention", json=body | {"weights": "mean", "heads": heads})
    assert response.status_code == 400
    assert response.json()["error"].startswith("parameter 'heads' ")
    assert "as [0, 3]" in response.json()["error"]


@pytest.mark.parametrize("heads", ["", "1_2", "0,", "0 1", "1.5", "true", "[0]"])
@pytest.mark.parametrize("door", ["v2-json", "v2-binary", "v1-npz", "v1-safetensors"])
def test_what_is_no_text_of_heads_is_refused(client: httpx.Client, door: str, heads: str) -> None:
    response = DOORS[door](client, TENSORS, weights="mean", heads=heads)
    assert response.status_code == 400
    assert response.json()["error"] == (
        f"parameter 'heads' is \"{heads}\", expected the numbers of heads with commas between "
        'them, as "0,3"; leave it out for all of them'
    )


@pytest.mark.parametrize(
    "names",
    [["top_k_keys"], ["top_k_keys", "top_k_weights"], ["top_k_weights", "output", "top_k_keys"]],
    ids="-".join,
)
@pytest.mark.parametrize("binary", [[], ["top_k_keys"], ["top_k_weights", "top_k_keys"]], ids=str)
def test_v2_sends_the_outputs_that_are_listed_each_in_its_form(
    client: httpx.Client, names: list[str], binary: list[str]
) -> None:
    outputs = [{"name": n, "parameters": {"binary_data": n in binary}} for n in names]
    response = client.post(INFER, json=write_v2_json(TENSORS, parameters=TOP, outputs=outputs))
    wanted = expect(TENSORS, **TOP)
    got = read_answer(response)
    assert list(got) == names
    check_close(got, {name: wanted[name] for name in names})
    is_json = response.headers["Content-Type"] == JSON
    assert is_json != any(name in binary for name in names)


def test_v2_says_the_datatypes_of_its_outputs(client: httpx.Client) -> None:
    answer = client.post(INFER, json=write_v2_json(TENSORS, parameters=TOP)).json()
    assert [(each["name"], each["datatype"], each["shape"]) for each in answer["outputs"]] == [
        ("output", "FP32", [B, L, 6]),
        ("top_k_weights", "FP32", [B, H, L, 3]),
        ("top_k_keys", "INT32", [B, H, L, 3]),
    ]
    assert all(type(key) is int for key in answer["outputs"][2]["data"])


@pytest.mark.parametrize("name", ["top_k_weights", "top_k_keys"])
def test_outputs_of_another_form_are_refused(client: httpx.Client, name: str) -> None:
    for listed, parameters, names in (
        (name, {}, "output, attention_weights"),
        ("attention_weights", TOP, "output, top_k_weights, top_k_keys"),
    ):
        body = write_v2_json(TENSORS, parameters=parameters, outputs=[{"name": listed}])
        response = client.post(INFER, json=body)
        form = parameters.get("weights", "per_head")
        assert response.status_code == 400
        assert response.json()["error"] == (
            f"parameter 'weights' is \"{form}\", but the output '{listed}' is asked for, expected "
            f"some of {names}; change one of the two"
        )


def test_metadata_lists_the_outputs_of_a_request_without_parameters(client: httpx.Client) -> None:
    """Load tools ask for every output that is listed."""
    outputs = client.get("/v2/models/demo").json()["outputs"]
    assert [output["name"] for output in outputs] == ["output", "attention_weights"]
