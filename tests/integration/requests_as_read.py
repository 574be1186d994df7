"""What the bytes of a request say, by an independent reading: the oracle of mutated requests."""

import io
import json
import math
import zipfile
from typing import Any

import numpy as np

from tests.integration.demo import Arrays
from tests.integration.doors import DATATYPES, HEADER_LENGTH, JSON, NPZ, read_safetensors

Reading = tuple[Arrays, dict[str, Any]]


def read_request(path: str, body: bytes, headers: dict[str, str], query: dict[str, str]) -> Reading:
    """Tensors and options of a request that the server took."""
    if path != "/v1/attention":
        return read_v2_request(body, headers)
    if headers["Content-Type"] == JSON:
        members = json.loads(body)
        options = {name: members.pop(name, None) for name in ("causal", "weights")}
        tensors = {name: np.array(v) for name, v in members.items() if v is not None}
        options = {name: v for name, v in options.items() if v is not None}
    elif headers["Content-Type"] == NPZ:
        tensors, options = read_archive(body), {}
    else:
        tensors, options = read_safetensors(body), {}
    words = {"true": True, "false": False}
    options |= {name: words.get(text, text) for name, text in query.items()}
    return tensors, {"weights": "none"} | options


def read_archive(body: bytes) -> Arrays:
    """The arrays of an npz archive, also behind foreign bytes, which zip allows."""
    arrays = {}
    with zipfile.ZipFile(io.BytesIO(body)) as archive:
        for name in archive.namelist():
            stream = io.BytesIO(archive.read(name))
            arrays[name.removesuffix(".npy")] = np.lib.format.read_array(stream)
    return arrays


def read_v2_request(body: bytes, headers: dict[str, str]) -> Reading:
    """Tensors and options of a V2 request."""
    length = int(headers.get(HEADER_LENGTH, len(body)))
    request, binary = json.loads(body[:length]), body[length:]
    tensors: Arrays = {}
    for entry in request["inputs"]:
        dtype, shape = np.dtype(DATATYPES[entry["datatype"]]), entry["shape"]
        if "data" in entry:
            array = np.array(entry["data"]).astype(dtype)
        else:
            size_bytes = math.prod(shape) * dtype.itemsize
            # As bytes: BOOL may hold others than 0 and 1.
            plain = np.dtype("u1") if dtype == np.bool_ else dtype
            array, binary = np.frombuffer(binary[:size_bytes], plain), binary[size_bytes:]
        tensors[entry["name"]] = array.reshape(shape)
    parameters = request.get("parameters") or {}
    options = {name: parameters[name] for name in ("causal", "weights") if name in parameters}
    return tensors, {"weights": "per_head"} | options


def is_tame(tensors: Arrays) -> bool:
    """Whether float32 and float64 agree on the answer: no number is huge, and none is NaN."""
    tokens = [tensors[name] for name in ("query", "key", "value") if name in tensors]
    with np.errstate(invalid="ignore"):  # a NaN that signals
        wide = [np.abs(array.astype(np.float64)) for array in tokens]
        bias = np.asarray(tensors.get("bias", 0), np.float64)
    return all((array < 100).all() for array in wide) and bool(
        ((np.abs(bias) < 100) | (bias <= -1e30)).all()
    )
