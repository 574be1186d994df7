"""Requests of many kinds for one model, as bytes."""

import json
from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np

from benchmarks.client import Connection
from benchmarks.raw import Tensors
from benchmarks.wire import describe, encode_safetensors, encode_v1_json, render_post

SHARE_VISIBLE: Final = 0.8


def draw(
    seed: int, batch_size: int, query_length: int, d_model: int, key_length: int | None = None
) -> Tensors:
    """A query [B,L,D] and, where `key_length` is given, a key and a value [B,S,D] unlike it."""
    generator = np.random.default_rng(seed)
    shape = (batch_size, query_length, d_model)
    tensors: Tensors = {"query": generator.standard_normal(shape, np.float32)}
    if key_length is not None:
        for name in ("key", "value"):
            shape = (batch_size, key_length, d_model)
            tensors[name] = generator.standard_normal(shape, np.float32)
    return tensors


def draw_mask(seed: int, *shape: int) -> Tensors:
    """A mask in which most keys may be seen."""
    return {"mask": np.random.default_rng(seed).random(shape) < SHARE_VISIBLE}


def render_infer(
    url: str,
    model: str,
    tensors: Tensors,
    parameters: Mapping[str, Any] | None = None,
    outputs: Sequence[str] = ("output",),
    request_id: str | None = None,
) -> bytes:
    """A V2 request with binary tensor data."""
    inputs = [
        describe(name, array) | {"parameters": {"binary_data_size": array.nbytes}}
        for name, array in tensors.items()
    ]
    wanted = [{"name": name, "parameters": {"binary_data": True}} for name in outputs]
    root: dict[str, Any] = {"inputs": inputs, "outputs": wanted, "parameters": parameters or {}}
    if request_id is not None:
        root["id"] = request_id
    text = json.dumps(root).encode()
    body = b"".join([text, *(np.ascontiguousarray(each).tobytes() for each in tensors.values())])
    headers = {"Inference-Header-Content-Length": str(len(text))}
    return render_post(url, f"/v2/models/{model}/infer", body, headers)


def render_kinds(url: str, model: str, d_model: int) -> list[tuple[int, bytes]]:
    """Requests of every door and unlike shapes, two that are refused among them; with statuses."""
    mask = draw_mask(1, 2, 1, 48, 40)
    bias = {"bias": np.random.default_rng(2).standard_normal((24, 24), np.float32)}
    friendly = f"/v1/attention?model={model}"
    weighed = render_infer(
        url, model, draw(3, 1, 24, d_model) | bias, outputs=("output", "attention_weights")
    )
    return [
        (200, render_infer(url, model, draw(4, 1, 16, d_model))),
        (200, render_infer(url, model, draw(5, 2, 48, d_model, 40) | mask)),
        (200, weighed),
        (200, render_infer(url, model, draw(6, 3, 9, d_model), {"causal": True})),
        (200, render_infer(url, model, draw(4, 1, 16, d_model))),
        (200, render_post(url, friendly, *encode_v1_json(draw(7, 1, 5, d_model)))),
        (200, render_post(url, friendly, *encode_safetensors(draw(8, 3, 33, d_model)))),
        (400, render_infer(url, model, draw(9, 1, 3, d_model + 1))),
        (404, render_infer(url, "unknown", draw(10, 1, 2, d_model))),
        (200, render_infer(url, model, draw(11, 4, 12, d_model))),
    ]


def ask_once(url: str, request: bytes) -> tuple[int, bytes]:
    """Status and body of an answer, on a connection of its own."""
    connection = Connection(url, request, any_status=True)
    body = bytes(connection.ask())
    status = connection.status
    connection.close()
    return status, body
