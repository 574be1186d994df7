"""The promise: on the CPU nothing around a request changes a bit of its answer."""

from concurrent.futures import ThreadPoolExecutor

import httpx
import numpy as np
import pytest

from tests.integration.demo import Arrays, B, H, L, S, check_same, draw_bias, draw_mask, draw_tokens
from tests.integration.doors import DOORS, ask, read_answer

LENGTHS = np.array([7, 2, 4, 6])
TENSORS = draw_tokens()
CASES: dict[str, Arrays] = {
    "plain": TENSORS,
    "mask": TENSORS | {"mask": draw_mask(B, H, L, S)},
    "key_mask": TENSORS | {"key_mask": np.arange(S) < LENGTHS[:, None]},
    "bias": TENSORS | {"bias": draw_bias(B, H, L, S)},
    "rows-without-keys": TENSORS
    | {"mask": np.ones((B, 1, L, S), bool) & (np.arange(L) > 1)[:, None]},
    "one-query": draw_tokens(B, 1, S),
    "long": draw_tokens(B, 67, 131),
}


@pytest.fixture(autouse=True)
def on_the_cpu(provider: str) -> None:
    """On CUDA the promise is a tolerance."""
    if provider != "cpu":
        pytest.skip("the promise of equal bits holds on the CPU")


def take(tensors: Arrays, item: int) -> Arrays:
    """One item of a batch, as a batch of one."""
    return {name: array[item : item + 1] for name, array in tensors.items()}


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("door", DOORS)
def test_every_door_gives_the_same_bits(client: httpx.Client, door: str, case: str) -> None:
    check_same(ask(client, door, CASES[case]), ask(client, "v2-binary", CASES[case]))


@pytest.mark.parametrize("form", ["json", "npz", "safetensors"])
@pytest.mark.parametrize("door", ["v1-npz", "v1-safetensors"])
def test_every_form_of_the_answer_holds_the_same_bits(
    client: httpx.Client, door: str, form: str
) -> None:
    got = ask(client, door, CASES["mask"], format=form)
    check_same(got, ask(client, "v2-binary", CASES["mask"]))


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("door", DOORS)
def test_the_same_request_gives_the_same_body(client: httpx.Client, door: str, case: str) -> None:
    bodies = {DOORS[door](client, CASES[case], weights="per_head").content for _ in range(4)}
    assert len(bodies) == 1


@pytest.mark.parametrize("case", CASES)
def test_an_item_alone_is_the_item_of_a_batch(client: httpx.Client, case: str) -> None:
    whole = ask(client, "v2-binary", CASES[case])
    for item in range(B):
        alone = ask(client, "v2-binary", take(CASES[case], item))
        check_same(alone, take(whole, item))


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("weights", ["none", "mean"])
def test_the_output_is_the_same_with_and_without_weights(
    client: httpx.Client, case: str, weights: str
) -> None:
    with_weights = ask(client, "v1-npz", CASES[case])
    got = ask(client, "v1-npz", CASES[case], weights=weights)
    check_same({"output": got["output"]}, {"output": with_weights["output"]})


@pytest.mark.parametrize("query_length", [2, L])
@pytest.mark.parametrize("weights", ["none", "per_head"])
def test_padding_that_is_hidden_by_key_mask_changes_nothing(
    client: httpx.Client, query_length: int, weights: str
) -> None:
    """Holds for more than one query; a single one takes another way through the runtime."""
    padded = draw_tokens(B, query_length, S)
    padded["key_mask"] = np.arange(S) < LENGTHS[:, None]
    whole = ask(client, "v2-binary", padded, weights=weights)
    for item, length in enumerate(LENGTHS):
        plain = {
            "query": padded["query"][item : item + 1],
            "key": padded["key"][item : item + 1, :length],
            "value": padded["value"][item : item + 1, :length],
        }
        right = ask(client, "v2-binary", plain, weights=weights)
        got = take(whole, item)
        if "attention_weights" in got:
            assert (got["attention_weights"][..., length:] == 0).all()
            got["attention_weights"] = got["attention_weights"][..., :length]
        check_same(got, right)


def test_padding_of_a_single_query_changes_less_than_a_millionth(client: httpx.Client) -> None:
    padded = draw_tokens(1, 1, S) | {"key_mask": np.arange(S)[None] < 4}
    plain = {name: padded[name][:, : 4 if name != "query" else 1] for name in TENSORS}
    got, right = (ask(client, "v2-binary", t, weights="none") for t in (padded, plain))
    np.testing.assert_allclose(got["output"], right["output"], rtol=0, atol=1e-6)


def test_what_is_padded_does_not_matter(client: httpx.Client) -> None:
    padded = draw_tokens() | {"key_mask": np.arange(S) < LENGTHS[:, None]}
    other = {name: array.copy() for name, array in padded.items()}
    for name in ("key", "value"):
        other[name][~padded["key_mask"]] = 1e6
    check_same(ask(client, "v2-binary", other), ask(client, "v2-binary", padded))


def test_requests_at_the_same_time_do_not_change_each_other(client: httpx.Client) -> None:
    requests = [draw_tokens(1 + seed % 3, 2 + seed % 4, 3 + seed % 5, seed) for seed in range(24)]
    alone = [ask(client, "v2-binary", tensors) for tensors in requests]
    with ThreadPoolExecutor(8) as pool:
        together = list(pool.map(lambda tensors: ask(client, "v2-binary", tensors), requests))
    for got, right in zip(together, alone, strict=True):
        check_same(got, right)


def test_neighbours_with_nan_or_errors_change_nothing(client: httpx.Client) -> None:
    right = ask(client, "v1-npz", TENSORS)
    bad = TENSORS | {"query": np.full_like(TENSORS["query"], np.nan)}
    wrong = TENSORS | {"key": TENSORS["key"][:, :, :-1]}
    post = DOORS["v1-npz"]
    with ThreadPoolExecutor(8) as pool:
        answers = list(
            pool.map(lambda sent: post(client, sent, weights="per_head"), [TENSORS, bad, wrong] * 8)
        )
    for response in answers[::3]:
        check_same(read_answer(response), right)
    assert [response.status_code for response in answers[2::3]] == [400] * 8
