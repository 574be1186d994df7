"""Every family: a network of the library it comes from is exported, served, and answers the same.

The parameters are random and the networks small; what is compared is the library's own attention,
output and weights, with what the server answers.
"""

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest
import torch
from torch import Tensor

from export.checkpoints.checkpoint import open_checkpoint
from export.checkpoints.detect import find_layers
from export.layers import export_layers
from tests.families import timm_networks, torch_networks, transformers_networks
from tests.families.network import Attend, B, D, L, Network, S
from tests.integration.doors import ask
from tests.integration.server_process import start_server

pytestmark = pytest.mark.families

BUILDERS: dict[str, Callable[[], Network]] = {
    **torch_networks.NETWORKS,
    **transformers_networks.NETWORKS,
    **timm_networks.NETWORKS,
}
TOLERANCE = 2e-5
TIMEOUT_S = 60
DOOR = "v2-binary"


@pytest.fixture(scope="module", name="networks")
def build_networks() -> Mapping[str, Network]:
    """All networks, by name."""
    return {name: build() for name, build in BUILDERS.items()}


@pytest.fixture(scope="module", name="models")
def export_networks(
    networks: Mapping[str, Network], tmp_path_factory: pytest.TempPathFactory
) -> Path:
    """A repository of every layer of every network."""
    models = tmp_path_factory.mktemp("models")
    for name, network in networks.items():
        file = network.save(tmp_path_factory.mktemp("checkpoint"))
        wanted = {*network.self_attention, *network.cross_attention}
        with open_checkpoint(file, network.num_heads) as checkpoint:
            layers = [
                (name_model(name, found.layer), found, checkpoint.look_at(found)[0])
                for found in find_layers(checkpoint.tensors)
                if found.layer in wanted
            ]
            assert len(layers) == len(wanted)
            export_layers(checkpoint, layers, models, lambda _: None)
    return models


def name_model(network: str, layer: str) -> str:
    """The name of a layer among the models."""
    return f"{network} {layer}".strip().replace(" ", "_")


@pytest.fixture(scope="module", name="served")
def serve(models: Path) -> Iterator[httpx.Client]:
    """A client of one server of all layers."""
    with (
        start_server(LIMELIGHT_MODELS=str(models)) as server,
        httpx.Client(base_url=server.url, timeout=TIMEOUT_S) as client,
    ):
        yield client


def draw(length: int, seed: int) -> Tensor:
    """Tokens ``[B, length, D]``."""
    return torch.randn(B, length, D, generator=torch.Generator().manual_seed(seed))


def see(length: int, keys: int, *, padded: bool, causal: bool) -> Tensor:
    """Bool ``[B, 1, length, keys]``: what is visible."""
    visible = torch.ones(B, 1, length, keys, dtype=torch.bool)
    if padded:
        visible &= torch.from_numpy(pad(keys))[:, None, None]
    return visible.tril(keys - length) if causal else visible


def pad(keys: int) -> Any:
    """Bool ``[B, keys]``: the last two keys of the second item are padding."""
    return np.arange(keys) < np.array([[keys], [keys - 2]])


def check(
    client: httpx.Client, model: str, attend: Attend, query: Tensor, key: Tensor, **hiding: bool
) -> None:
    """Compare the answer of a model with that of the library's layer."""
    output, weights = attend(query, key, see(query.shape[1], key.shape[1], **hiding))
    tensors = {"query": query.numpy()}
    if key is not query:
        tensors["key"] = key.numpy()
    if hiding["padded"]:
        tensors["key_mask"] = pad(key.shape[1])
    causal: Any = "bottom_right" if hiding["causal"] else False
    got = ask(client, DOOR, tensors, model=model, causal=causal)
    wanted = {"output": output, "attention_weights": weights}
    for name, right in wanted.items():
        np.testing.assert_allclose(
            got[name], right.numpy(), rtol=0, atol=TOLERANCE, err_msg=f"{name} of {model}"
        )


def record(attention: Any, calls: list[tuple[Tensor, Any]]) -> Any:
    """Keep what a layer takes and gives, each time that its network calls it."""
    return attention.register_forward_hook(
        lambda _, tokens, given: calls.append((tokens[0], given))
    )


def test_gpt_2_hides_later_keys_as_its_network_does_unless_the_request_says_otherwise(
    served: httpx.Client,
) -> None:
    network, calls = transformers_networks.make_gpt2(), list[tuple[Tensor, Any]]()
    tokens, model = draw(S, 5), name_model("GPT-2", "h.0.attn")
    with record(network.h[0].attn, calls):
        cache = transformers_networks.make_cache(network)
        for part in (tokens[:, : S - 2], tokens[:, S - 2 :]):
            network(inputs_embeds=part, cache=cache)
    (past, past_answer), (query, answer) = calls
    key = torch.cat([past, query], dim=1)
    for asked, given in (
        ({"query": past}, past_answer),
        ({"query": query, "key": key}, answer),
    ):
        got = ask(
            served, DOOR, {name: tensor.numpy() for name, tensor in asked.items()}, model=model
        )
        for name, right in zip(("output", "attention_weights"), given, strict=True):
            np.testing.assert_allclose(got[name], right.numpy(), rtol=0, atol=TOLERANCE)
    # The last key is hidden from the first of the two queries that came with a past.
    assert not got["attention_weights"][..., 0, -1].any()


@pytest.mark.parametrize("causal", [False, True], ids=["all-keys", "causal"])
@pytest.mark.parametrize("padded", [False, True], ids=["whole", "padded"])
@pytest.mark.parametrize("name", BUILDERS)
def test_every_layer_answers_as_its_library_does(
    served: httpx.Client, networks: Mapping[str, Network], name: str, padded: bool, causal: bool
) -> None:
    network, hiding = networks[name], {"padded": padded, "causal": causal}
    tokens = draw(L, 3)
    for layer, attend in network.self_attention.items():
        check(served, name_model(name, layer), attend, tokens, tokens, **hiding)
    for layer, attend in network.cross_attention.items():
        check(served, name_model(name, layer), attend, tokens, draw(S, 4), **hiding)
