"""Ask a server of the demo model three questions and compare the answers with the formula.

    python deploy/smoke.py http://127.0.0.1:8000

It exits with 0 where JSON, binary and the attention weights come back right. The address may also
stand in the variable BASE_URL.
"""

import http.client
import json
import math
import os
import sys
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

import numpy as np
from numpy.typing import NDArray

from model.contract import AttentionSpec
from model.reference import attend
from model.weights import Weights

Arrays = Mapping[str, NDArray[Any]]

DEMO = Weights.random(AttentionSpec(d_model=6, num_heads=3), seed=0)
TOLERANCE = 1e-5
TIMEOUT_S = 30
HEADER_LENGTH = "Inference-Header-Content-Length"


def post(address: str, path: str, body: bytes, headers: Mapping[str, str]) -> tuple[bytes, int]:
    """Send `body` and return the answer with the length of its JSON header (0 if not told).

    Raises:
        SystemExit: if the server answers anything but 200.
    """
    host = urlsplit(address).netloc
    connection = http.client.HTTPConnection(host, timeout=TIMEOUT_S)
    connection.request("POST", path, body, dict(headers))
    response = connection.getresponse()
    answer = response.read()
    if response.status != http.HTTPStatus.OK:
        sys.exit(f"POST {path}: {response.status} {answer.decode(errors='replace')}")
    return answer, int(response.headers.get(HEADER_LENGTH, "0"))


def ask_json(address: str, inputs: Arrays, options: Mapping[str, str]) -> Arrays:
    """Answer of ``POST /v1/attention`` to nested lists."""
    body = {name: array.tolist() for name, array in inputs.items()} | dict(options)
    headers = {"Content-Type": "application/json"}
    answer, _ = post(address, "/v1/attention", json.dumps(body).encode(), headers)
    wanted = ("output", "attention_weights")
    return {name: np.array(value) for name, value in json.loads(answer).items() if name in wanted}


def ask_binary(address: str, inputs: Arrays) -> Arrays:
    """Answer of the Open Inference Protocol to tensors as bytes, both outputs as bytes."""
    described = [
        {
            "name": name,
            "shape": array.shape,
            "datatype": "BOOL" if array.dtype == bool else "FP32",
            "parameters": {"binary_data_size": array.nbytes},
        }
        for name, array in inputs.items()
    ]
    question = {"inputs": described, "parameters": {"binary_data_output": True}}
    header = json.dumps(question).encode()
    body = header + b"".join(array.tobytes() for array in inputs.values())
    headers = {HEADER_LENGTH: str(len(header)), "Content-Type": "application/octet-stream"}
    answer, length = post(address, "/v2/models/demo/infer", body, headers)
    outputs, offset = {}, length
    for tensor in json.loads(answer[:length])["outputs"]:
        count = math.prod(tensor["shape"])
        values = np.frombuffer(answer, "<f4", count, offset)
        outputs[tensor["name"]] = values.reshape(tensor["shape"])
        offset += values.nbytes
    return outputs


def check(question: str, got: Arrays, wanted: Arrays) -> None:
    """Compare outputs by name.

    Raises:
        SystemExit: if one is missing, has another shape or is off by more than the tolerance.
    """
    if sorted(got) != sorted(wanted):
        sys.exit(f"{question}: got {sorted(got)}, expected {sorted(wanted)}")
    for name, expected in wanted.items():
        if got[name].shape != expected.shape:
            sys.exit(f"{question}: {name} is {got[name].shape}, expected {expected.shape}")
        error = float(abs(got[name] - expected).max())
        if not error <= TOLERANCE:
            sys.exit(f"{question}: {name} is off by {error:.1e}")
        sys.stdout.write(f"{question}: {name} is off by {error:.1e} at most\n")


def main(address: str) -> None:
    """Ask with sizes that all differ: B=2, L=4, S=5, D=6, H=3."""
    generator = np.random.default_rng(1)
    query = generator.standard_normal((2, 4, 6), np.float32)
    key = generator.standard_normal((2, 5, 6), np.float32)
    value = generator.standard_normal((2, 5, 6), np.float32)
    mask = generator.random((2, 1, 4, 5)) < 0.5
    mask[1, 0, 2] = False  # a row that sees no key attends to all keys equally
    tensors = {"query": query, "key": key, "value": value}
    output, weights = attend(DEMO, query, key, value)
    masked_output, masked_weights = attend(DEMO, query, key, value, mask=mask)

    check("JSON", ask_json(address, tensors, {}), {"output": output})
    check(
        "JSON with weights",
        ask_json(address, tensors, {"weights": "per_head"}),
        {"output": output, "attention_weights": weights},
    )
    check(
        "binary with a mask",
        ask_binary(address, {**tensors, "mask": mask}),
        {"output": masked_output, "attention_weights": masked_weights},
    )


if __name__ == "__main__":
    given = [*sys.argv[1:], os.environ.get("BASE_URL", "http://127.0.0.1:8000")]
    main(given[0])
