"""The doors of the server: the same tensors written in each form, and answers read from each.

Written from the formats' own documents and independent of the server's code.
"""

import io
import json
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import httpx
import numpy as np
from numpy.typing import NDArray

from tests.integration.demo import MODEL, Arrays

INFER: Final = f"/v2/models/{MODEL}/infer"
ATTENTION: Final = "/v1/attention"
HEADER_LENGTH: Final = "Inference-Header-Content-Length"
JSON: Final = "application/json"
NPZ: Final = "application/x-npz"
SAFETENSORS: Final = "application/x-safetensors"
OUTPUTS: Final = ("output", "attention_weights")
NESTED_OUTPUTS: Final = {
    "output": "float32",
    "attention_weights": "float32",
    "top_k_weights": "float32",
    "top_k_keys": "int32",
}

DATATYPES: Final = {
    "BOOL": "bool",
    "UINT8": "uint8",
    "INT8": "int8",
    "INT32": "int32",
    "INT64": "int64",
    "FP16": "float16",
    "FP32": "float32",
    "FP64": "float64",
}
SAFETENSORS_DTYPES: Final = {
    "BOOL": "bool",
    "U8": "uint8",
    "I8": "int8",
    "I32": "int32",
    "I64": "int64",
    "F16": "float16",
    "F32": "float32",
    "F64": "float64",
}
Door = Callable[..., httpx.Response]


def name_dtype(array: NDArray[Any], names: Mapping[str, str]) -> str:
    """The name of an array's type in a table of names."""
    return next(name for name, dtype in names.items() if array.dtype == dtype)


def describe_tensor(name: str, array: NDArray[Any], **members: Any) -> dict[str, Any]:
    """The entry of an input in a V2 request."""
    datatype = name_dtype(array, DATATYPES)
    return {"name": name, "shape": list(array.shape), "datatype": datatype, **members}


def write_v2_json(tensors: Arrays, *, nested: bool = False, **members: Any) -> dict[str, Any]:
    """A V2 request with all data as JSON; `members` are added at the top."""
    inputs = [
        describe_tensor(name, array, data=(array if nested else array.ravel()).tolist())
        for name, array in tensors.items()
    ]
    return {"inputs": inputs, **members}


def write_v2_binary(
    tensors: Arrays, *, as_json: Sequence[str] = (), **members: Any
) -> tuple[bytes, dict[str, str]]:
    """A V2 request whose data follows the JSON, but for the inputs named in `as_json`.

    Returns:
        The body and its headers.
    """
    inputs, chunks = [], []
    for name, array in tensors.items():
        if name in as_json:
            inputs.append(describe_tensor(name, array, data=array.ravel().tolist()))
        else:
            size = {"binary_data_size": array.nbytes}
            inputs.append(describe_tensor(name, array, parameters=size))
            chunks.append(array.tobytes())
    head = json.dumps({"inputs": inputs, **members}).encode()
    headers = {HEADER_LENGTH: str(len(head)), "Content-Type": "application/octet-stream"}
    return b"".join([head, *chunks]), headers


def write_npz(tensors: Arrays) -> bytes:
    """An npz archive, as numpy writes it."""
    stream = io.BytesIO()
    np.savez(stream, **tensors)  # type: ignore[arg-type] # its options are keywords too
    return stream.getvalue()


def write_safetensors(tensors: Arrays) -> bytes:
    """A safetensors file: 8 bytes of header length, the header, the data."""
    header, data = {}, b""
    for name, array in tensors.items():
        end = len(data) + array.nbytes
        dtype = name_dtype(array, SAFETENSORS_DTYPES)
        header[name] = {
            "dtype": dtype,
            "shape": list(array.shape),
            "data_offsets": [len(data), end],
        }
        data += array.tobytes()
    text = json.dumps(header).encode()
    return len(text).to_bytes(8, "little") + text + data


def write_nested(tensors: Arrays, **options: Any) -> dict[str, Any]:
    """A JSON request to /v1/attention."""
    return {name: array.tolist() for name, array in tensors.items()} | options


def write_query_string(options: Mapping[str, Any]) -> dict[str, str]:
    """Options of /v1/attention in the words of a query string."""
    return {name: str(value).lower() for name, value in write_parameters(options).items()}


def write_parameters(options: Mapping[str, Any]) -> dict[str, Any]:
    """Options as parameters of V2, which are no lists."""
    return {
        name: ",".join(map(str, value)) if isinstance(value, list) else value
        for name, value in options.items()
    }


def post_v2_json(client: httpx.Client, tensors: Arrays, **options: Any) -> httpx.Response:
    """Ask at the V2 door, everything in JSON."""
    path = pop_path(options)
    return client.post(
        path, content=json.dumps(write_v2_json(tensors, parameters=write_parameters(options)))
    )


def post_v2_binary(client: httpx.Client, tensors: Arrays, **options: Any) -> httpx.Response:
    """Ask at the V2 door, all tensors as bytes, both ways."""
    path, parameters = pop_path(options), {"binary_data_output": True, **write_parameters(options)}
    body, headers = write_v2_binary(tensors, parameters=parameters)
    return client.post(path, content=body, headers=headers)


def pop_path(options: dict[str, Any]) -> str:
    """The path of inference of the model that the options name; the name is taken out."""
    return f"/v2/models/{options.pop('model', MODEL)}/infer"


def post_json(client: httpx.Client, tensors: Arrays, **options: Any) -> httpx.Response:
    """Ask at the friendly door in JSON, with the options in the body."""
    content = json.dumps(write_nested(tensors, **options))
    return client.post(ATTENTION, content=content, headers={"Content-Type": JSON})


def post_npz(client: httpx.Client, tensors: Arrays, **options: Any) -> httpx.Response:
    """Ask at the friendly door with an npz archive."""
    return client.post(
        ATTENTION,
        content=write_npz(tensors),
        params=write_query_string(options),
        headers={"Content-Type": NPZ},
    )


def post_safetensors(client: httpx.Client, tensors: Arrays, **options: Any) -> httpx.Response:
    """Ask at the friendly door with a safetensors body."""
    return client.post(
        ATTENTION,
        content=write_safetensors(tensors),
        params=write_query_string(options),
        headers={"Content-Type": SAFETENSORS},
    )


DOORS: Final[dict[str, Door]] = {
    "v2-json": post_v2_json,
    "v2-binary": post_v2_binary,
    "v1-json": post_json,
    "v1-npz": post_npz,
    "v1-safetensors": post_safetensors,
}
V1_DOORS: Final = ("v1-json", "v1-npz", "v1-safetensors")


def ask(client: httpx.Client, door: str, tensors: Arrays, **options: Any) -> Arrays:
    """Ask at a door for the output and, unless `weights` says else, the weights of every head."""
    return read_answer(DOORS[door](client, tensors, **{"weights": "per_head", **options}))


def read_answer(response: httpx.Response) -> Arrays:
    """The tensors of an answer of any form, in its order."""
    assert response.status_code == 200, response.text
    media_type = response.headers["Content-Type"]
    if response.request.url.path == ATTENTION:
        if media_type == JSON:
            return read_nested(response.json())
        return {NPZ: read_npz, SAFETENSORS: read_safetensors}[media_type](response.content)
    return read_v2(response)


def read_nested(answer: dict[str, Any]) -> Arrays:
    """The tensors of a JSON answer of /v1/attention."""
    return {
        name: np.array(answer[name], dtype)
        for name, dtype in NESTED_OUTPUTS.items()
        if name in answer
    }


def read_npz(content: bytes) -> Arrays:
    """The arrays of an npz archive."""
    with np.load(io.BytesIO(content), allow_pickle=False) as archive:
        return dict(archive)


def read_safetensors(content: bytes) -> Arrays:
    """The tensors of a safetensors file."""
    start = 8 + int.from_bytes(content[:8], "little")
    header = json.loads(content[8:start])
    arrays = {}
    for name, entry in header.items():
        if name != "__metadata__":
            first, end = (start + offset for offset in entry["data_offsets"])
            flat = np.frombuffer(content[first:end], SAFETENSORS_DTYPES[entry["dtype"]])
            arrays[name] = flat.reshape(entry["shape"])
    return arrays


def read_v2(response: httpx.Response) -> Arrays:
    """The outputs of a V2 answer, JSON or binary."""
    head, binary = split_v2(response)
    arrays: Arrays = {}
    for output in head["outputs"]:
        dtype, shape = DATATYPES[output["datatype"]], output["shape"]
        if "data" in output:
            assert "parameters" not in output, "C++ clients stumble over parameters"
            assert len(output["data"]) == math.prod(shape), "JSON data must be flat"
            arrays[output["name"]] = np.array(output["data"], dtype).reshape(shape)
        else:
            size = output["parameters"]["binary_data_size"]
            assert len(binary) >= size
            arrays[output["name"]] = np.frombuffer(binary[:size], dtype).reshape(shape)
            binary = binary[size:]
    assert not binary, "bytes are left over"
    return arrays


def read_v2_bytes(answer: bytes) -> Arrays:
    """The outputs of a V2 answer as it came over the wire, status line and headers first."""
    head, _, content = answer.partition(b"\r\n\r\n")
    status, *lines = head.decode("latin-1").split("\r\n")
    headers = [(name, text.strip()) for name, _, text in (line.partition(":") for line in lines)]
    return read_v2(httpx.Response(int(status.split()[1]), headers=headers, content=content))


def split_v2(response: httpx.Response) -> tuple[dict[str, Any], bytes]:
    """The JSON of a V2 answer, and the bytes behind it."""
    is_binary = HEADER_LENGTH in response.headers
    assert response.headers["Content-Type"] == ("application/octet-stream" if is_binary else JSON)
    length = int(response.headers[HEADER_LENGTH]) if is_binary else len(response.content)
    return json.loads(response.content[:length]), response.content[length:]
