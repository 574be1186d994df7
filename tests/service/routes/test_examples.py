"""Examples that models bring with them."""

import shutil
from pathlib import Path

import httpx
import pytest
from safetensors.numpy import load

from model.contract import EXAMPLE_FILE, AttentionSpec
from service.engine.directories import DEMO
from service.engine.model import Model
from service.engine.session import Session
from service.engine.sizes import Limits
from service.routes.examples import MAX_BYTES
from service.state import State

FILE = DEMO / "demo" / "1" / EXAMPLE_FILE


def open_nothing(_: Path) -> Session:
    raise NotImplementedError


@pytest.fixture
def directory(state: State, limits: Limits, tmp_path: Path) -> Path:
    """The directory of a model without an example."""
    directory = tmp_path / "layer" / "2"
    directory.mkdir(parents=True)
    state.repository.add(Model(directory, AttentionSpec(6, 3), "cpu", open_nothing, limits))
    return directory


@pytest.mark.parametrize("path", ["demo", "demo/versions/1"])
async def test_the_demo_brings_one_that_can_be_posted(client: httpx.AsyncClient, path: str) -> None:
    example = await client.get(f"/v1/models/{path}/example")
    assert (example.status_code, example.headers["content-type"]) == (
        200,
        "application/x-safetensors",
    )
    assert example.content == FILE.read_bytes()
    assert load(example.content)["query"].shape == (13, 6)


@pytest.mark.parametrize("path", ["layer", "layer/versions/2"])
async def test_a_model_without_one_has_no_content(
    client: httpx.AsyncClient, directory: Path, path: str
) -> None:
    answer = await client.get(f"/v1/models/{path}/example")
    assert (answer.status_code, answer.content) == (204, b"")


async def test_a_file_that_is_no_example_is_none(
    client: httpx.AsyncClient, directory: Path
) -> None:
    (directory / EXAMPLE_FILE).mkdir()
    assert (await client.get("/v1/models/layer/example")).status_code == 204
    (directory / EXAMPLE_FILE).rmdir()
    with (directory / EXAMPLE_FILE).open("wb") as stream:
        stream.truncate(MAX_BYTES + 1)
    assert (await client.get("/v1/models/layer/example")).status_code == 204


async def test_an_example_that_is_put_there_later_is_found(
    client: httpx.AsyncClient, directory: Path
) -> None:
    shutil.copy(FILE, directory)
    assert (await client.get("/v1/models/layer/example")).content == FILE.read_bytes()


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("other", "model 'other' is not served here; served: demo"),
        ("demo/versions/7", "model 'demo' has no version '7', expected one of 1"),
    ],
)
async def test_what_is_not_served_has_none(client: httpx.AsyncClient, path: str, text: str) -> None:
    answer = await client.get(f"/v1/models/{path}/example")
    assert (answer.status_code, answer.json()) == (404, {"error": text})
