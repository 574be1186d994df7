"""What tritonclient can read and change beside inference, and what it must get.

Its clients have the same methods, so a test calls one by its name. Members and types are those of
Triton's protocol extensions (docs/protocol/extension_*.md in triton-inference-server/server).
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

from tests.integration.demo import MODEL, D, H

# Datatype and shape of each tensor, the batch left out, as a ModelConfig has it.
INPUTS: Final = {
    "query": ("FP32", [-1, D]),
    "key": ("FP32", [-1, D]),
    "value": ("FP32", [-1, D]),
    "mask": ("BOOL", [1, -1, -1]),
    "key_mask": ("BOOL", [-1]),
    "bias": ("FP32", [1, -1, -1]),
}
RESULTS: Final = {"output": ("FP32", [-1, D]), "attention_weights": ("FP32", [H, -1, -1])}
EXTENSIONS: Final = {
    "binary_tensor_data",
    "model_configuration",
    "parameters",
    "schedule_policy",
    "statistics",
}
TIMES: Final = {
    "success",
    "fail",
    "queue",
    "compute_input",
    "compute_infer",
    "compute_output",
    "cache_hit",
    "cache_miss",
}


@dataclass(frozen=True)
class Call:
    """A method of the client with its arguments, and a check of what it returns."""

    method: str
    arguments: tuple[Any, ...]
    check: Callable[[Any], None]


@dataclass(frozen=True)
class Refusal:
    """A method of the client that is refused: the status, and words of the text that is shown."""

    method: str
    arguments: tuple[Any, ...]
    status: int
    words: str


def describe(call: Call | Refusal) -> str:
    """A call in words, for the name of its test."""
    return f"{call.method}({', '.join(map(str, call.arguments))})"


def find_growth(before: Mapping[str, Any], after: Mapping[str, Any]) -> dict[str, int]:
    """By how much the counters of a model grew between two readings of its statistics."""
    (old,), (new,) = before["model_stats"], after["model_stats"]
    growth = {name: new[name] - old[name] for name in ("inference_count", "execution_count")}
    return growth | {
        name: new["inference_stats"][name]["count"] - counts["count"]
        for name, counts in old["inference_stats"].items()
        if name in TIMES and not name.startswith("cache")
    }


def check_is(wanted: Any, got: Any) -> None:
    """The very value, and of its type: None is not False."""
    assert got is wanted


def check_nothing_is_shared(got: Any) -> None:
    """The list of regions of memory is a list, and empty."""
    assert got == []


def check_server(got: Mapping[str, Any]) -> None:
    """What is announced works: models are loaded on request in explicit control only."""
    assert got["name"] == "limelight"
    assert isinstance(got["version"], str)
    assert set(got["extensions"]) == EXTENSIONS


def check_metadata(got: Mapping[str, Any]) -> None:
    """Every shape has the batch in front."""
    assert got["name"] == MODEL
    assert got["versions"] == ["1"]
    assert got["platform"] == "onnxruntime_onnx"
    for part, wanted in (("inputs", INPUTS), ("outputs", RESULTS)):
        read = {entry["name"]: (entry["datatype"], entry["shape"]) for entry in got[part]}
        assert read == {name: (kind, [-1, *dims]) for name, (kind, dims) in wanted.items()}


def check_config(got: Mapping[str, Any]) -> None:
    """`max_batch_size` > 0, so `dims` leave the batch out; all but the query is optional."""
    assert got["name"] == MODEL
    assert got["platform"] == "onnxruntime_onnx"
    assert got["max_batch_size"] == 256
    for part, wanted in (("input", INPUTS), ("output", RESULTS)):
        read = {entry["name"]: (entry["data_type"], entry["dims"]) for entry in got[part]}
        assert read == {name: (f"TYPE_{kind}", dims) for name, (kind, dims) in wanted.items()}
    optional = {entry["name"] for entry in got["input"] if entry.get("optional")}
    assert optional == set(INPUTS) - {"query"}


def check_statistics(got: Mapping[str, Any]) -> None:
    """The version is a string, and the counters are numbers (C++ clients read them unchecked)."""
    (entry,) = [entry for entry in got["model_stats"] if entry["name"] == MODEL]
    assert entry["version"] == "1"
    for name in ("last_inference", "inference_count", "execution_count"):
        assert type(entry[name]) is int, name
    assert set(entry["inference_stats"]) >= TIMES
    for name in TIMES:
        counts = entry["inference_stats"][name]
        assert {key: type(number) for key, number in counts.items()} == {"count": int, "ns": int}
    assert isinstance(entry["batch_stats"], list)


def check_index(got: list[Mapping[str, Any]]) -> None:
    """The index is a list at the top level."""
    (entry,) = [entry for entry in got if entry["name"] == MODEL]
    assert (entry["version"], entry["state"]) == ("1", "READY")


def check_trace(got: Mapping[str, Any]) -> None:
    """Every value is a string, but for the level, which is a list of them."""
    assert got["trace_level"] == ["OFF"]
    assert all(isinstance(text, str) for name, text in got.items() if name != "trace_level")


def check_log(got: Mapping[str, Any]) -> None:
    """Values have types."""
    for name in ("log_info", "log_warning", "log_error"):
        assert isinstance(got[name], bool), name
    assert type(got["log_verbose_level"]) is int
    assert isinstance(got["log_format"], str)


check_yes: Final = partial(check_is, True)
check_no: Final = partial(check_is, False)
check_silence: Final = partial(check_is, None)
READINGS: Final = (
    Call("is_server_live", (), check_yes),
    Call("is_server_ready", (), check_yes),
    Call("is_model_ready", (MODEL,), check_yes),
    Call("is_model_ready", (MODEL, "1"), check_yes),
    Call("is_model_ready", (MODEL, "9"), check_no),
    Call("is_model_ready", ("other",), check_no),
    Call("get_server_metadata", (), check_server),
    Call("get_model_metadata", (MODEL,), check_metadata),
    Call("get_model_metadata", (MODEL, "1"), check_metadata),
    Call("get_model_config", (MODEL,), check_config),
    Call("get_model_config", (MODEL, "1"), check_config),
    Call("get_inference_statistics", (), check_statistics),
    Call("get_inference_statistics", (MODEL,), check_statistics),
    Call("get_inference_statistics", (MODEL, "1"), check_statistics),
    Call("get_model_repository_index", (), check_index),
    Call("get_trace_settings", (), check_trace),
    Call("get_trace_settings", (MODEL,), check_trace),
    Call("update_trace_settings", (MODEL, {"trace_level": ["OFF"]}), check_trace),
    Call("get_log_settings", (), check_log),
    Call("update_log_settings", ({"log_error": True},), check_log),
    Call("get_system_shared_memory_status", (), check_nothing_is_shared),
    Call("get_cuda_shared_memory_status", (), check_nothing_is_shared),
    Call("unregister_system_shared_memory", (), check_silence),
    Call("unregister_system_shared_memory", ("region",), check_silence),
    Call("unregister_cuda_shared_memory", (), check_silence),
    Call("unregister_cuda_shared_memory", ("region",), check_silence),
)

UNKNOWN_MODEL: Final = "model 'other' is not served here; served: demo"
UNKNOWN_VERSION: Final = "model 'demo' has no version '9', expected one of 1"
REFUSALS: Final = (
    Refusal("get_model_metadata", ("other",), 404, UNKNOWN_MODEL),
    Refusal("get_model_metadata", (MODEL, "9"), 404, UNKNOWN_VERSION),
    Refusal("get_model_config", ("other",), 404, UNKNOWN_MODEL),
    Refusal("get_model_config", (MODEL, "9"), 404, UNKNOWN_VERSION),
    Refusal("get_inference_statistics", ("other",), 404, UNKNOWN_MODEL),
    Refusal("get_inference_statistics", (MODEL, "9"), 404, UNKNOWN_VERSION),
    Refusal("get_trace_settings", ("other",), 404, UNKNOWN_MODEL),
    Refusal("update_trace_settings", ("other", {"trace_level": ["OFF"]}), 404, UNKNOWN_MODEL),
    Refusal("update_trace_settings", (MODEL, {"trace_level": ["TIMESTAMPS"]}), 501, "trace_level"),
    Refusal("update_log_settings", ({"log_error": False},), 501, "log_error"),
    Refusal("register_system_shared_memory", ("region", "/region", 64), 501, "shared memory"),
    Refusal("register_cuda_shared_memory", ("region", "aGFuZGxl", 0, 64), 501, "shared memory"),
)
