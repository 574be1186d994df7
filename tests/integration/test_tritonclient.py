"""Unmodified tritonclient: reads the metadata, gets right numbers in JSON and binary."""

from collections.abc import AsyncIterator, Iterator, Mapping
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from tests.integration.demo import (
    MODEL,
    Arrays,
    B,
    D,
    H,
    L,
    S,
    check_close,
    draw_bias,
    draw_mask,
    draw_tokens,
    expect,
)
from tests.integration.doors import DATATYPES, OUTPUTS, name_dtype

pytestmark = pytest.mark.clients

TENSORS = draw_tokens()
MASKED = TENSORS | {
    "mask": draw_mask(B, H, L, S),
    "key_mask": np.arange(S) < np.array([7, 2, 4, 6])[:, None],
    "bias": draw_bias(1, 1, L, S),
}
BOTH = pytest.mark.parametrize("binary", [False, True], ids=["json", "binary"])


@pytest.fixture(scope="module", name="http")
def import_client() -> ModuleType:
    """The module of the client; it may be absent where these tests are skipped."""
    import tritonclient.http

    return tritonclient.http  # type: ignore[no-any-return]


@pytest.fixture(scope="module", name="authorize")
def make_plugin(http: Any, auth_headers: Mapping[str, str]) -> Any:
    """A plugin of the client that adds the key, where the server wants one."""

    class Authorize(http.InferenceServerClientPlugin):  # type: ignore[misc] # untyped
        def __call__(self, request: Any) -> None:
            request.headers.update(auth_headers)

    return Authorize()


@pytest.fixture(scope="module", name="triton")
def connect(http: Any, server_url: str, authorize: Any) -> Iterator[Any]:
    """A client that waits for its answers."""
    client = http.InferenceServerClient(server_url.partition("://")[2])
    client.register_plugin(authorize)
    yield client
    client.close()


@pytest.fixture(name="aio")
async def connect_aio(server_url: str, authorize: Any) -> AsyncIterator[Any]:
    """A client for an event loop."""
    import tritonclient.http.aio

    client = tritonclient.http.aio.InferenceServerClient(server_url.partition("://")[2])
    client.register_plugin(authorize)
    yield client
    await client.close()


def write_inputs(http: Any, tensors: Arrays, *, binary: bool) -> list[Any]:
    """Tensors as inputs of the client."""
    inputs = []
    for name, array in tensors.items():
        given = http.InferInput(name, list(array.shape), name_dtype(array, DATATYPES))
        given.set_data_from_numpy(array, binary_data=binary)
        inputs.append(given)
    return inputs


def write_outputs(http: Any, *names: str, binary: bool) -> list[Any]:
    """Outputs that are asked for."""
    return [http.InferRequestedOutput(name, binary_data=binary) for name in names]


def read_outputs(result: Any) -> Arrays:
    """The outputs of a result by name."""
    names = [output["name"] for output in result.get_response()["outputs"]]
    return {name: result.as_numpy(name) for name in names}


def test_server_and_model_are_live_and_ready(triton: Any) -> None:
    assert triton.is_server_live()
    assert triton.is_server_ready()
    assert triton.is_model_ready(MODEL)
    assert triton.is_model_ready(MODEL, "1")
    assert not triton.is_model_ready("other")


def test_the_metadata_can_be_read(triton: Any) -> None:
    assert triton.get_server_metadata()["name"] == "limelight"
    metadata = triton.get_model_metadata(MODEL)
    assert [tensor["name"] for tensor in metadata["outputs"]] == list(OUTPUTS)
    assert metadata["inputs"][0]["shape"] == [-1, -1, D]
    assert metadata["inputs"][3]["shape"] == [-1, 1, -1, -1]


@BOTH
def test_both_outputs_of_a_full_request(http: Any, triton: Any, binary: bool) -> None:
    result = triton.infer(
        MODEL,
        write_inputs(http, MASKED, binary=binary),
        outputs=write_outputs(http, *OUTPUTS, binary=binary),
    )
    check_close(read_outputs(result), expect(MASKED))


@BOTH
def test_a_subset_of_the_outputs(http: Any, triton: Any, binary: bool) -> None:
    for name in OUTPUTS:
        result = triton.infer(
            MODEL,
            write_inputs(http, MASKED, binary=binary),
            outputs=write_outputs(http, name, binary=binary),
        )
        check_close(read_outputs(result), {name: expect(MASKED)[name]})


@BOTH
def test_optional_inputs_may_be_left_out(http: Any, triton: Any, binary: bool) -> None:
    query = {"query": TENSORS["query"]}
    for tensors in (query, TENSORS, query | {"key": TENSORS["key"]}):
        result = triton.infer(MODEL, write_inputs(http, tensors, binary=binary))
        check_close(read_outputs(result), expect(tensors))


def test_inputs_and_outputs_may_be_mixed(http: Any, triton: Any) -> None:
    as_json = {name: TENSORS[name] for name in ("query", "value")}
    inputs = write_inputs(http, as_json, binary=False)
    inputs += write_inputs(http, {"key": TENSORS["key"]}, binary=True)
    outputs = write_outputs(http, "output", binary=True)
    outputs += write_outputs(http, "attention_weights", binary=False)
    check_close(read_outputs(triton.infer(MODEL, inputs, outputs=outputs)), expect(TENSORS))


def test_parameters_reach_the_model(http: Any, triton: Any) -> None:
    result = triton.infer(
        MODEL,
        write_inputs(http, TENSORS, binary=True),
        parameters={"causal": "bottom_right", "weights": "mean", "foo": 1},
        timeout=1_000_000,
        priority=1,
        request_id="seven",
    )
    assert result.get_response()["id"] == "seven"
    check_close(read_outputs(result), expect(TENSORS, causal="bottom_right", weights="mean"))


def test_the_text_of_an_error_is_shown(http: Any, triton: Any) -> None:
    narrow = {"query": TENSORS["query"][:, :, :-1].copy()}
    with pytest.raises(http.InferenceServerException) as caught:
        triton.infer(MODEL, write_inputs(http, narrow, binary=True))
    assert caught.value.message() == (
        f"input 'query' has shape [{B}, {L}, {D - 1}], expected [batch_size, query_length, {D}]"
    )
    assert caught.value.status() == "400"


def test_an_unknown_model_is_an_error_of_the_client(http: Any, triton: Any) -> None:
    text = "model 'other' is not served here; served: demo"
    with pytest.raises(http.InferenceServerException) as caught:
        triton.get_model_metadata("other")
    assert caught.value.message() == text
    with pytest.raises(http.InferenceServerException) as caught:
        triton.infer("other", write_inputs(http, TENSORS, binary=True))
    assert caught.value.message() == text


@BOTH
async def test_the_client_for_event_loops(http: Any, aio: Any, binary: bool) -> None:
    assert await aio.is_server_ready()
    assert (await aio.get_model_metadata(MODEL))["name"] == MODEL
    result = await aio.infer(
        MODEL,
        write_inputs(http, MASKED, binary=binary),
        outputs=write_outputs(http, *OUTPUTS, binary=binary),
    )
    check_close(read_outputs(result), expect(MASKED))


async def test_the_client_for_event_loops_shows_the_text_of_an_error(http: Any, aio: Any) -> None:
    with pytest.raises(http.InferenceServerException) as caught:
        await aio.infer("other", write_inputs(http, TENSORS, binary=False))
    assert caught.value.message() == "model 'other' is not served here; served: demo"


def test_requests_of_the_client_in_threads_of_its_own(
    http: Any, server_url: str, authorize: Any
) -> None:
    client = http.InferenceServerClient(server_url.partition("://")[2], concurrency=4)
    client.register_plugin(authorize)
    many = [draw_tokens(seed=seed) for seed in range(12)]
    waiting = [client.async_infer(MODEL, write_inputs(http, t, binary=True)) for t in many]
    for tensors, pending in zip(many, waiting, strict=True):
        check_close(read_outputs(pending.get_result()), expect(tensors))
    client.close()
