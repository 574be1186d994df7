"""Requests of the Open Inference Protocol, as bytes."""

import json
from typing import Any

import numpy as np

from tests.service.http.live_server import ask

PATH = "/v2/models/demo/infer"
LENGTH = "Inference-Header-Content-Length"
QUERY = np.random.default_rng(23).standard_normal((2, 5, 6)).astype(np.float32)


def write(
    tensors: dict[str, Any] | None = None, *headers: str, path: str = PATH, **members: Any
) -> bytes:
    """A request in binary."""
    tensors = {"query": QUERY} if tensors is None else tensors
    datatypes = {"f": "FP32", "b": "BOOL"}
    entries = [
        {
            "name": name,
            "shape": array.shape,
            "datatype": datatypes[array.dtype.kind],
            "parameters": {"binary_data_size": array.nbytes},
        }
        for name, array in tensors.items()
    ]
    head = json.dumps({"inputs": entries} | members).encode()
    body = head + b"".join(array.tobytes() for array in tensors.values())
    return ask(path, body, f"{LENGTH}: {len(head)}", *headers)
