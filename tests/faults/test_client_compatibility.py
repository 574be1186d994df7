"""Faults between clients and servers: names in URLs, parameters of their own, threads."""

import shutil
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any
from urllib.parse import quote

import httpx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from service.engine.directories import DEMO, find_models
from tests.integration.demo import MODEL, check_close, draw_tokens, expect
from tests.integration.doors import INFER, read_answer, write_v2_binary, write_v2_json

README = Path(__file__).parents[2] / "README.md"
TENSORS = draw_tokens()
SCALARS = st.text(max_size=5) | st.integers(-(2**53), 2**53) | st.booleans() | st.floats(
    allow_nan=False, allow_infinity=False
)  # fmt: skip
OURS = ("causal", "weights", "binary_data_output", "shared_memory_region")


@pytest.mark.parametrize(
    "parameters",
    [
        {"timeout": 60_000_000, "foo": 1},
        {"sequence_id": 0, "sequence_start": False, "sequence_end": False},
        {"priority": 0, "timeout": 60_000_000},
        {"headers": "x", "mine": True},
    ],
    ids=str,
)
@pytest.mark.parametrize("binary", [False, True], ids=["json", "binary"])
def test_parameters_of_a_client_are_tolerated(
    client: httpx.Client, binary: bool, parameters: dict[str, Any]
) -> None:
    """tritonclient sends timeout, priority, and what its caller adds."""
    if binary:
        body, headers = write_v2_binary(TENSORS, parameters=parameters)
        response = client.post(INFER, content=body, headers=headers)
    else:
        response = client.post(INFER, json=write_v2_json(TENSORS, parameters=parameters))
    check_close(read_answer(response), expect(TENSORS))


@given(
    parameters=st.dictionaries(
        st.text(max_size=8).filter(lambda name: name not in OURS), SCALARS, max_size=4
    )
)
@settings(max_examples=60)
def test_any_parameter_that_is_not_ours_changes_nothing(
    client: httpx.Client, parameters: dict[str, Any]
) -> None:
    body = write_v2_json(TENSORS, parameters=parameters)
    for entry in body["inputs"]:
        entry["parameters"] = parameters
    check_close(read_answer(client.post(INFER, json=body)), expect(TENSORS))


@pytest.mark.parametrize("name", ["d%65mo", "%64%65%6D%6F"])
def test_a_quoted_name_is_the_name_that_it_quotes(client: httpx.Client, name: str) -> None:
    """Clients quote the name of a model (tritonclient)."""
    assert client.get(f"/v2/models/{name}").json()["name"] == MODEL
    response = client.post(f"/v2/models/{name}/infer", json=write_v2_json(TENSORS))
    check_close(read_answer(response), expect(TENSORS))


@pytest.mark.parametrize("name", ["a b", "a/b", "é", "%", "?", "#", "demo/", "a\nb"])
def test_a_name_that_must_be_quoted_is_never_that_of_a_model(
    client: httpx.Client, name: str
) -> None:
    """No such model is exported or loaded, so the answer is 404 (tritonclient)."""
    quoted = quote(name, safe="")
    for response in (
        client.get(f"/v2/models/{quoted}"),
        client.post(f"/v2/models/{quoted}/infer", json=write_v2_json(TENSORS)),
    ):
        assert response.status_code == 404
        assert response.json()["error"]


@pytest.mark.parametrize("name", ["a b", "é", "a+b", "a%20b", "a?b", "-a"])
def test_a_directory_whose_name_must_be_quoted_is_not_loaded(tmp_path: Path, name: str) -> None:
    for folder in (name, "plain"):
        shutil.copytree(DEMO / "demo" / "1", tmp_path / folder / "1")
    assert find_models(tmp_path, demo=False).names == ["plain"]


def test_the_readme_says_that_threads_do_not_share_a_client() -> None:
    """triton-inference-server/server #6650, #4223, #2948."""
    assert "make one client for each thread" in README.read_text()


@pytest.mark.clients
def test_a_client_of_triton_in_each_thread_gets_its_own_answers(
    server_url: str, auth_headers: Mapping[str, str]
) -> None:
    """One client for all threads fails in greenlets: one for each does not.

    triton-inference-server/server #6650, #4223, #2948.
    """
    import tritonclient.http as triton

    def work(seed: int) -> None:
        client = triton.InferenceServerClient(server_url.partition("://")[2])
        for number in range(seed, seed + 5):
            tensors = draw_tokens(seed=number)
            inputs = []
            for name, array in tensors.items():
                inputs.append(triton.InferInput(name, list(array.shape), "FP32"))
                inputs[-1].set_data_from_numpy(array)
            result = client.infer(MODEL, inputs, headers=dict(auth_headers))
            got = {name: result.as_numpy(name) for name in ("output", "attention_weights")}
            check_close(got, expect(tensors))
        client.close()

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(work, range(0, 40, 10)))
