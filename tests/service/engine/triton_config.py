"""Triton's own definition of ``config.pbtxt``, and messages of it at random."""

import importlib
import importlib.util
from functools import cache
from pathlib import Path
from typing import Any

from hypothesis import strategies as st

MAX_DEPTH = 3
TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)


@cache
def load_module(name: str) -> Any:
    """A module of protobuf, which has no types."""
    return importlib.import_module(f"google.protobuf.{name}")


@cache
def load_config_class() -> Any:
    """The class of ModelConfig, out of tritonclient, without the gRPC client around it."""
    found = importlib.util.find_spec("tritonclient")
    assert found
    assert found.submodule_search_locations
    path = Path(found.submodule_search_locations[0]) / "grpc" / "model_config_pb2.py"
    spec = importlib.util.spec_from_file_location("model_config_pb2", path)
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.ModelConfig


def parse(text: str) -> Any:
    """A ModelConfig by protobuf's own parser."""
    return load_module("text_format").Parse(text, load_config_class()())


def draw_scalar(field: Any) -> st.SearchStrategy[Any]:
    """A value of a field that is no message."""
    kinds = {
        field.TYPE_INT32: st.integers(-(2**31), 2**31 - 1),
        field.TYPE_INT64: st.integers(-(2**63), 2**63 - 1),
        field.TYPE_UINT32: st.integers(0, 2**32 - 1),
        field.TYPE_UINT64: st.integers(0, 2**64 - 1),
        field.TYPE_FLOAT: st.floats(width=32),
        field.TYPE_DOUBLE: st.floats(),
        field.TYPE_BOOL: st.booleans(),
        field.TYPE_STRING: TEXTS,
        field.TYPE_BYTES: st.binary(max_size=8),
    }
    if field.type == field.TYPE_ENUM:
        return st.sampled_from([value.number for value in field.enum_type.values])
    return kinds[field.type]


@st.composite
def draw_message(draw: st.DrawFn, kind: Any = None, depth: int = MAX_DEPTH) -> Any:
    """A message with some of its fields set."""
    kind = kind or load_config_class()
    message = kind()
    fields = [f for f in kind.DESCRIPTOR.fields if depth or not f.message_type]
    chosen = draw(st.lists(st.sampled_from(fields), max_size=4, unique=True)) if fields else []
    for field in chosen:
        fill(draw, message, field, depth)
    return message


def fill(draw: st.DrawFn, message: Any, field: Any, depth: int) -> None:
    """Set one field of a message."""
    target = getattr(message, field.name)
    if field.message_type and field.message_type.GetOptions().map_entry:
        fill_map(draw, target, field.message_type.fields_by_name, depth)
    elif field.message_type:
        kind = load_module("message_factory").GetMessageClass(field.message_type)
        parts = draw(st.lists(draw_message(kind, depth - 1), min_size=1, max_size=2))
        for part in parts if field.is_repeated else parts[:1]:
            (target.add() if field.is_repeated else target).CopyFrom(part)
    elif field.is_repeated:
        target.extend(draw(st.lists(draw_scalar(field), max_size=3)))
    else:
        setattr(message, field.name, draw(draw_scalar(field)))


def fill_map(draw: st.DrawFn, target: Any, fields: Any, depth: int) -> None:
    """Put an entry into a map."""
    key, value = draw(draw_scalar(fields["key"])), fields["value"]
    if not value.message_type:
        target[key] = draw(draw_scalar(value))
        return
    kind = load_module("message_factory").GetMessageClass(value.message_type)
    target[key].CopyFrom(draw(draw_message(kind, depth - 1)))
