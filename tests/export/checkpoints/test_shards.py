"""Checkpoints in several files: the index is followed within its directory, or refused."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from safetensors.torch import save_file

from export.checkpoints import shards
from export.checkpoints.shards import open_shards
from export.errors import CheckpointError

FIRST, SECOND = "model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors"
PLACES = {"a.W": FIRST, "a.b": SECOND, "c": SECOND}

json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=6,
)
shard_names = st.sampled_from([FIRST, SECOND, "other.safetensors", f"../{FIRST}", "..", ""])
indexes = st.fixed_dictionaries(
    {"weight_map": st.dictionaries(st.sampled_from([*PLACES, "d"]), shard_names | json_values)}
)


@pytest.fixture(name="index")
def write_shards(tmp_path: Path) -> Path:
    """An index and its two shards."""
    save_file({"a.W": torch.arange(6.0).reshape(2, 3)}, tmp_path / FIRST)
    save_file({"a.b": torch.ones(2), "c": torch.zeros(4).half()}, tmp_path / SECOND)
    index = tmp_path / "model.safetensors.index.json"
    index.write_text(json.dumps({"metadata": {"total_size": 40}, "weight_map": PLACES}))
    return index


def refusal_of(index: Path) -> str:
    with pytest.raises(CheckpointError) as caught:
        open_shards(index)
    return str(caught.value)


def test_tensors_are_read_from_the_shard_that_has_them(index: Path) -> None:
    tensors = open_shards(index)
    assert tensors.names == set(PLACES)
    assert tensors.read("a.W", 2, 3).tolist() == [[0, 1, 2], [3, 4, 5]]
    assert tensors.stored["c"].datatype == "float16"
    with pytest.raises(CheckpointError) as caught:
        tensors.read("c", 5)
    assert str(caught.value) == f"tensor 'c' of '{SECOND}' has shape [4], expected [5]"


def test_links_to_the_shards_are_followed(index: Path, tmp_path: Path) -> None:
    (tmp_path / FIRST).rename(tmp_path / "blob")
    (tmp_path / FIRST).symlink_to("blob")
    assert open_shards(index).read_shape("a.W") == (2, 3)


@pytest.mark.parametrize(
    "shard",
    [
        f"../{FIRST}",
        f"/etc/{FIRST}",
        f"sub/{FIRST}",
        f"sub\\{FIRST}",
        f"C:{FIRST}",
        "..",
        "",
        "x.bin",
        "x\n.safetensors",
        7,
        None,
        [FIRST],
    ],
)
def test_a_shard_that_is_not_a_plain_file_beside_the_index_is_refused(
    shard: object, index: Path
) -> None:
    index.write_text(json.dumps({"weight_map": PLACES | {"a.b": shard}}))
    assert refusal_of(index) == (
        f"index '{index}' puts tensor 'a.b' into {shard!r}, which is not the name of a "
        ".safetensors file beside it; copy or download it again"
    )


@pytest.mark.parametrize(
    ("replace", "fault"),
    [
        (lambda path: None, "does not exist"),
        (lambda path: path.symlink_to("../../blobs/0123"), "is a link to nothing"),
        (lambda path: path.mkdir(), "is no file"),
    ],
)
def test_a_shard_that_is_missing_is_named(
    replace: Callable[[Path], None], fault: str, index: Path, tmp_path: Path
) -> None:
    (tmp_path / SECOND).unlink()
    replace(tmp_path / SECOND)
    assert refusal_of(index) == (
        f"shard '{tmp_path}/{SECOND}' {fault}, expected the file that "
        "'model.safetensors.index.json' names; copy or download the whole directory again"
    )


def test_a_shard_that_was_cut_off_is_named(index: Path, tmp_path: Path) -> None:
    content = (tmp_path / SECOND).read_bytes()
    (tmp_path / SECOND).write_bytes(content[:-1])
    assert refusal_of(index) == (
        f"checkpoint '{tmp_path}/{SECOND}' is damaged or cut off (Error while deserializing "
        "header: incomplete metadata, file not fully covered); copy or download it again"
    )


def test_a_tensor_that_its_shard_does_not_hold_is_named(index: Path) -> None:
    index.write_text(json.dumps({"weight_map": PLACES | {"d": FIRST}}))
    assert refusal_of(index) == (
        f"tensor 'd' is missing from '{FIRST}', where '{index}' puts it; copy or download the "
        "whole directory again"
    )


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ('{"weight_map": ', "is not JSON (Expecting value: line 1 column 16 (char 15))"),
        ('{"weight_map": {"a": "x", "a": "y"}}', "is not JSON ('a' comes twice)"),
        ("[" * 100_000, "is not JSON (maximum recursion depth exceeded"),
        ("[1]", "has no object 'weight_map'"),
        ('{"weight_map": [1]}', "has no object 'weight_map'"),
        ("{}", "has no object 'weight_map'"),
    ],
)
def test_what_is_no_index_is_named(text: str, fault: str, index: Path) -> None:
    index.write_text(text)
    refusal = refusal_of(index)
    assert refusal.startswith(f"index '{index}' {fault}")
    assert refusal.endswith("; copy or download it again")


def test_an_index_that_is_too_long_is_not_read(
    index: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shards, "MAX_INDEX_BYTES", 40)
    assert refusal_of(index) == (
        f"index '{index}' has more than 40 bytes; copy or download it again"
    )


@settings(max_examples=80, deadline=None, suppress_health_check=list(HealthCheck))
@given(content=indexes | json_values | st.binary(max_size=40))
def test_any_index_is_followed_or_refused(content: Any, index: Path) -> None:
    raw = content if isinstance(content, bytes) else json.dumps(content).encode()
    index.write_bytes(raw)
    try:
        tensors = open_shards(index)
    except CheckpointError:
        return
    assert tensors.names == content["weight_map"].keys()
    assert {stored.file for stored in tensors.stored.values()} <= {FIRST, SECOND}
