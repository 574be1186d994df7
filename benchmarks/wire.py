"""Requests as bytes, for every door, head included."""

import json
from typing import Any, Final
from urllib.parse import urlsplit

import numpy as np
from numpy.typing import NDArray
from safetensors.numpy import save

from benchmarks.raw import Tensors

DATATYPES: Final = {"f": "FP32", "b": "BOOL"}


def render_post(url: str, path: str, body: bytes, headers: dict[str, str]) -> bytes:
    """One POST of HTTP/1.1."""
    lines = [f"POST {path} HTTP/1.1", f"Host: {urlsplit(url).netloc}"]
    lines += [f"{name}: {value}" for name, value in headers.items()]
    lines += [f"Content-Length: {len(body)}", "", ""]
    return "\r\n".join(lines).encode() + body


def describe(name: str, array: NDArray[Any]) -> dict[str, Any]:
    """Name, datatype and shape, as the Open Inference Protocol has them."""
    return {"name": name, "datatype": DATATYPES[array.dtype.kind], "shape": array.shape}


def encode_v2_binary(tensors: Tensors, weights: str) -> tuple[bytes, dict[str, str]]:
    """A V2 request with binary tensor data, and the header that says where they begin."""
    inputs = [
        describe(name, array) | {"parameters": {"binary_data_size": array.nbytes}}
        for name, array in tensors.items()
    ]
    names = ("output",) if weights == "none" else ("output", "attention_weights")
    outputs = [{"name": name, "parameters": {"binary_data": True}} for name in names]
    root: dict[str, Any] = {"inputs": inputs, "outputs": outputs}
    if weights != "none":
        root |= {"parameters": {"weights": weights}}
    text = json.dumps(root).encode()
    body = b"".join([text, *(np.ascontiguousarray(each).tobytes() for each in tensors.values())])
    return body, {"Inference-Header-Content-Length": str(len(text))}


def encode_v2_json(tensors: Tensors, *, nested: bool) -> tuple[bytes, dict[str, str]]:
    """A V2 request in JSON, its data flat or nested, with the digits of Python's `repr`."""
    inputs = [
        describe(name, array) | {"data": (array if nested else array.ravel()).tolist()}
        for name, array in tensors.items()
    ]
    root = {"inputs": inputs, "outputs": [{"name": "output"}]}
    return json.dumps(root).encode(), {"Content-Type": "application/json"}


def encode_v1_json(tensors: Tensors) -> tuple[bytes, dict[str, str]]:
    """A request of /v1/attention in JSON."""
    root = {name: array.tolist() for name, array in tensors.items()}
    return json.dumps(root).encode(), {"Content-Type": "application/json"}


def encode_safetensors(tensors: Tensors) -> tuple[bytes, dict[str, str]]:
    """A request of /v1/attention in safetensors."""
    return save(tensors), {"Content-Type": "application/x-safetensors"}
