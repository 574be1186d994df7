"""The same questions as the page's, asked without it."""

import io
from typing import Any

import httpx
import numpy as np
from numpy.typing import NDArray
from safetensors.numpy import load, save

Arrays = dict[str, NDArray[Any]]


def read_example(url: str, model: str = "demo") -> Arrays:
    """The tensors that the server has as a model's example."""
    answer = httpx.get(f"{url}/v1/models/{model}/example").raise_for_status()
    return load(answer.content)


def ask(url: str, arrays: Arrays, **options: str) -> NDArray[np.float32]:
    """The weights of every head: ``[H,L,S]``, with a batch axis where the query has one."""
    answer = httpx.post(
        f"{url}/v1/attention",
        params={"weights": "per_head", "model": "demo"} | options,
        content=save(arrays),
        headers={"Content-Type": "application/x-safetensors"},
        timeout=60,
    )
    return load(answer.raise_for_status().content)["attention_weights"]


def draw(*shape: int, seed: int = 1) -> NDArray[np.float32]:
    """Random numbers."""
    return np.random.default_rng(seed).standard_normal(shape, np.float32)


def write_npz(**arrays: Any) -> bytes:
    """The bytes of an .npz."""
    stream = io.BytesIO()
    np.savez(stream, **arrays)
    return stream.getvalue()


def write_npy(array: np.ndarray[Any, Any]) -> bytes:
    """The bytes of a .npy."""
    stream = io.BytesIO()
    np.save(stream, array)
    return stream.getvalue()
