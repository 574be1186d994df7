"""What is asked of the server, and how its answer is known to be right."""

import json
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Final, Literal

import numpy as np
from numpy.typing import NDArray
from safetensors.numpy import load

from benchmarks.client import Connection
from benchmarks.raw import Session, Tensors, make_feeds, open_raw
from benchmarks.wire import (
    encode_safetensors,
    encode_v1_json,
    encode_v2_binary,
    encode_v2_json,
    render_post,
)

D_MODEL, NUM_HEADS, NAME = 512, 8, "bench"
SHARE_VISIBLE: Final = 0.8
V2_PATH: Final = f"/v2/models/{NAME}/infer"
V1_PATH: Final = f"/v1/attention?model={NAME}"

Door = Literal["V2 binary", "V2 JSON flat", "V2 JSON nested", "/v1 JSON", "/v1 safetensors"]
WeightsForm = Literal["none", "per_head", "mean"]


@dataclass(frozen=True)
class Workload:
    """One kind of request.

    Attributes:
        batch_size: B.
        length: L and S.
        door: how it is written.
        alone: whether the query is all that is sent; else key, value and mask too.
        weights: form in which the weights are asked for.
    """

    batch_size: int
    length: int
    door: Door = "V2 binary"
    alone: bool = False
    weights: WeightsForm = "none"

    @property
    def label(self) -> str:
        """What a table calls it."""
        parts = [f"{self.batch_size}x{self.length}", self.door]
        parts += ["query alone"] if self.alone else []
        parts += [f"weights {self.weights}"] if self.weights != "none" else []
        return ", ".join(parts)

    def make_tensors(self) -> Tensors:
        """Query, key and value unlike each other, and a mask of its own for every row."""
        generator = np.random.default_rng(0)
        shape = (self.batch_size, self.length, D_MODEL)
        names = ("query",) if self.alone else ("query", "key", "value")
        tensors: Tensors = {name: generator.standard_normal(shape, np.float32) for name in names}
        if not self.alone:
            mask_shape = (self.batch_size, 1, self.length, self.length)
            tensors["mask"] = generator.random(mask_shape) < SHARE_VISIBLE
        return tensors

    def render(self, url: str) -> bytes:
        """The bytes of one request."""
        tensors = self.make_tensors()
        encode: dict[Door, tuple[str, Callable[[], tuple[bytes, dict[str, str]]]]] = {
            "V2 binary": (V2_PATH, partial(encode_v2_binary, tensors, self.weights)),
            "V2 JSON flat": (V2_PATH, partial(encode_v2_json, tensors, nested=False)),
            "V2 JSON nested": (V2_PATH, partial(encode_v2_json, tensors, nested=True)),
            "/v1 JSON": (V1_PATH, partial(encode_v1_json, tensors)),
            "/v1 safetensors": (V1_PATH, partial(encode_safetensors, tensors)),
        }
        path, write = encode[self.door]
        return render_post(url, path, *write())


class Raw:
    """The same work without a server."""

    def __init__(self, directory: Path) -> None:
        self._sessions: dict[str, Session] = {
            name: open_raw(directory / f"{name}.onnx") for name in ("fused_bias", "fused_weights")
        }

    def prepare(self, workload: Workload) -> Callable[[], list[NDArray[Any]]]:
        """A call that runs the graph which answers `workload`."""
        weighs = workload.weights != "none"
        session = self._sessions["fused_weights" if weighs else "fused_bias"]
        names = ["output", "attention_weights"] if weighs else ["output"]
        return partial(session.run, names, make_feeds(workload.make_tensors()))


def check_answer(url: str, workload: Workload, raw: Raw) -> None:
    """Compare one answer with onnxruntime's, bit for bit.

    Raises:
        RuntimeError: if they differ.
    """
    connection = Connection(url, workload.render(url))
    output = read_output(bytes(connection.ask()), workload)
    connection.close()
    if output.tobytes() != raw.prepare(workload)()[0].tobytes():
        raise RuntimeError(f"served and raw differ: {workload.label}")


def read_output(body: bytes, workload: Workload) -> NDArray[np.float32]:
    """The output of an answer."""
    shape = (workload.batch_size, workload.length, D_MODEL)
    if workload.door == "/v1 safetensors":
        return np.asarray(load(body)["output"])
    if workload.door == "V2 binary":
        text, _ = json.JSONDecoder().raw_decode(body.decode("latin-1"))
        json_bytes = len(body) - sum(
            each["parameters"]["binary_data_size"] for each in text["outputs"]
        )
        return np.frombuffer(body, np.float32, int(np.prod(shape)), json_bytes).reshape(shape)
    root = json.loads(body)
    data = root["output"] if "output" in root else root["outputs"][0]["data"]
    return np.asarray(data, np.float32).reshape(shape)
