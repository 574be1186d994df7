"""A model that is causal by itself: it hides later keys unless a request says otherwise."""

import json
import shutil
from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from service.engine.directories import DEMO
from tests.integration.demo import B, L, S, check_close, draw_tokens, expect
from tests.integration.doors import DOORS, ask
from tests.integration.server_process import start_server


@pytest.fixture(scope="module", name="causal")
def serve_causal_model(tmp_path_factory: pytest.TempPathFactory) -> Iterator[httpx.Client]:
    """A client of the demo model, whose manifest says that it is causal."""
    models = tmp_path_factory.mktemp("models")
    shutil.copytree(DEMO / "demo", models / "demo")
    file = models / "demo" / "1" / "manifest.json"
    manifest = json.loads(file.read_text())
    manifest["attention"]["causal"] = "bottom_right"
    file.write_text(json.dumps(manifest))
    with (
        start_server(LIMELIGHT_MODELS=str(models)) as server,
        httpx.Client(base_url=server.url) as client,
    ):
        yield client


@pytest.mark.parametrize("asked", [{}, {"causal": False}, {"causal": "top_left"}], ids=str)
@pytest.mark.parametrize("lengths", [(L, S), (S, L), (L, L)], ids=str)
@pytest.mark.parametrize("door", DOORS)
def test_a_causal_model_hides_later_keys_unless_the_request_says_otherwise(
    causal: httpx.Client, door: str, lengths: tuple[int, int], asked: dict[str, Any]
) -> None:
    tensors = draw_tokens(B, *lengths)
    right = {"causal": "bottom_right"} | asked
    check_close(ask(causal, door, tensors, **asked), expect(tensors, **right))
    check_close(
        ask(causal, door, tensors, **asked, weights="none"),
        expect(tensors, **right, weights="none"),
    )


def test_the_metadata_say_that_a_model_is_causal(
    causal: httpx.Client, client: httpx.Client
) -> None:
    assert causal.get("/v2/models/demo").json()["properties"]["causal"] == "bottom_right"
    assert "causal" not in client.get("/v2/models/demo").json()["properties"]
