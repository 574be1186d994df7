"""Unmodified clients choose versions, and load and unload models."""

import asyncio
import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.clients.cases import BINARY, MAY_DROP_ANSWERS, TENSORS, Case
from tests.clients.conftest import Connect
from tests.clients.triton_tensors import read_outputs, write_request
from tests.clients.versions import FACTORS, expect_of, write_repository, write_version
from tests.integration.demo import MODEL, check_close
from tests.integration.server_process import start_server

pytestmark = [
    pytest.mark.clients,
    pytest.mark.skipif("LIMELIGHT_TEST_URL" in os.environ, reason="a deployed server is tested"),
]
CASE = Case(TENSORS)


@pytest.fixture(scope="module", name="repository")
def make_repository(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A repository of `demo` and `spare`."""
    return write_repository(tmp_path_factory.mktemp("models"))


@pytest.fixture(scope="module", name="url")
def serve_explicitly(repository: Path) -> Iterator[str]:
    """A server that loads and unloads on request."""
    with start_server(
        LIMELIGHT_MODELS=str(repository), LIMELIGHT_MODEL_CONTROL="explicit"
    ) as server:
        yield server.url


def ask(http: Any, client: Any, name: str, version: str = "") -> tuple[str, Any]:
    """The version that answered, and the outputs."""
    result = client.infer(name, **write_request(http, CASE, BINARY), model_version=version)
    return result.get_response()["model_version"], read_outputs(result)


@pytest.mark.parametrize(("name", "version"), FACTORS)
def test_each_version_answers_with_its_own_weights(
    http: Any, connect: Connect, url: str, name: str, version: str
) -> None:
    client = connect(url)
    client.load_model(name)
    answered, outputs = ask(http, client, name, version)
    assert answered == version
    check_close(outputs, expect_of(name, version, TENSORS))
    assert client.get_model_metadata(name, version)["name"] == name
    assert client.get_model_config(name, version)["name"] == name
    (statistics,) = client.get_inference_statistics(name, version)["model_stats"]
    assert statistics["version"] == version


def test_the_highest_version_answers_unless_one_is_named(
    http: Any, connect: Connect, url: str
) -> None:
    """10 is higher than 2, which comes later in the alphabet."""
    client = connect(url)
    client.load_model(MODEL)
    answered, outputs = ask(http, client, MODEL)
    assert answered == "10"
    check_close(outputs, expect_of(MODEL, "10", TENSORS))
    assert client.get_model_metadata(MODEL)["versions"] == ["2", "10"]
    assert "model_repository" in client.get_server_metadata()["extensions"]
    versions = [entry["version"] for entry in client.get_inference_statistics(MODEL)["model_stats"]]
    assert sorted(versions) == ["10", "2"]


def test_a_model_is_unloaded_and_loaded_again(http: Any, connect: Connect, url: str) -> None:
    client = connect(url)
    client.load_model("spare")
    for _ in range(3):
        client.unload_model("spare")
        assert not client.is_model_ready("spare")
        assert client.is_server_ready()
        assert find_state(client, "spare") == "UNAVAILABLE"
        with pytest.raises(http.InferenceServerException) as caught:
            ask(http, client, "spare")
        assert "'spare'" in caught.value.message()
        assert caught.value.status() == "404"
        assert ask(http, client, MODEL)[0] == "10"
        client.load_model("spare")
        assert client.is_model_ready("spare")
        assert find_state(client, "spare") == "READY"
        check_close(ask(http, client, "spare")[1], expect_of("spare", "3", TENSORS))


def find_state(client: Any, name: str) -> str:
    """The state of the only version of a model, as the index has it."""
    (entry,) = [entry for entry in client.get_model_repository_index() if entry["name"] == name]
    return str(entry["state"])


def test_a_model_that_is_not_there_cannot_be_loaded(http: Any, connect: Connect, url: str) -> None:
    client = connect(url)
    for name in ("other", "../demo", "."):
        for call in (client.load_model, client.unload_model):
            with pytest.raises(http.InferenceServerException) as caught:
                call(name)
            assert caught.value.status() in {"400", "404"}
            assert caught.value.message()


def test_what_a_load_would_bring_along_is_refused(http: Any, connect: Connect, url: str) -> None:
    client = connect(url)
    overrides: dict[str, dict[str, Any]] = {
        "config": {"config": '{"max_batch_size": 4}'},
        "file:1/model.onnx": {"files": {"file:1/model.onnx": b"onnx"}},
    }
    for words, options in overrides.items():
        with pytest.raises(http.InferenceServerException) as caught:
            client.load_model(MODEL, **options)
        assert words in caught.value.message()
        assert caught.value.status() in {"400", "501"}
    assert ask(http, client, MODEL)[0] == "10"


def test_a_version_that_is_broken_leaves_the_old_one(
    http: Any, connect: Connect, tmp_path: Path
) -> None:
    write_version(tmp_path / "spare" / "3", FACTORS["spare", "3"])
    with start_server(LIMELIGHT_MODELS=str(tmp_path), LIMELIGHT_MODEL_CONTROL="explicit") as server:
        client = connect(server.url)
        shutil.copytree(tmp_path / "spare" / "3", tmp_path / "spare" / "4")
        (tmp_path / "spare" / "4" / "weights.bin").write_bytes(b"half")
        with pytest.raises(http.InferenceServerException) as caught:
            client.load_model("spare")
        assert "weights.bin" in caught.value.message()
        assert str(tmp_path) not in caught.value.message()
        answered, outputs = ask(http, client, "spare")
        assert answered == "3"
        check_close(outputs, expect_of("spare", "3", TENSORS))
        index = {entry["version"]: entry for entry in client.get_model_repository_index()}
        assert index["3"]["state"] == "READY"
        assert index["4"]["state"] == "UNAVAILABLE"
        assert "weights.bin" in index["4"]["reason"]


def test_without_model_control_the_setting_is_named(http: Any, triton: Any) -> None:
    for call in (triton.load_model, triton.unload_model):
        with pytest.raises(http.InferenceServerException) as caught:
            call(MODEL)
        assert "LIMELIGHT_MODEL_CONTROL" in caught.value.message()
    assert triton.is_model_ready(MODEL)


@MAY_DROP_ANSWERS
async def test_an_event_loop_reloads_a_model_while_it_answers(
    http: Any, connect_aio: Connect, url: str
) -> None:
    client, wanted = connect_aio(url), expect_of("spare", "3", TENSORS)
    await client.load_model("spare")
    for _ in range(4):
        requests = [client.infer("spare", **write_request(http, CASE, BINARY)) for _ in range(8)]
        results = await asyncio.gather(*requests, client.load_model("spare"))
        for result in results[:-1]:
            check_close(read_outputs(result), wanted)
    await client.unload_model("spare")
    assert not await client.is_model_ready("spare")
    with pytest.raises(http.InferenceServerException) as caught:
        await client.infer("spare", **write_request(http, CASE, BINARY))
    assert caught.value.status() == "404"
    index = await client.get_model_repository_index()
    assert {entry["name"] for entry in index} == {"demo", "spare"}


@pytest.mark.kserve
async def test_kserve_sees_that_a_model_is_unloaded(rest: Any, connect: Connect, url: str) -> None:
    client = connect(url)
    client.load_model("spare")
    assert await rest.is_model_ready(url, "spare") is True
    client.unload_model("spare")
    assert await rest.is_model_ready(url, "spare") is False
    assert await rest.is_server_ready(url) is True
