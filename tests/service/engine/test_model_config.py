"""What a model's config.pbtxt says, in Triton's own words."""

import os
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.engine.directories import DEMO
from service.engine.model_config import (
    ConfigError,
    ModelConfig,
    parse_model_config,
    read_model_config,
)
from service.engine.model_fault import UnreadableError
from tests.service.engine.triton_config import draw_message, load_module, parse

SILENT = {"name", "platform", "backend", "default_model_filename", "input", "output"}
HONOURED = {"max_batch_size", "dynamic_batching", "instance_group"}


def read(text: str) -> ModelConfig:
    return parse_model_config(text.encode(), "layer")


def refuse(text: str) -> str:
    with pytest.raises(ConfigError) as caught:
        read(text)
    return str(caught.value)


@st.composite
def draw_config(draw: st.DrawFn) -> Any:
    """A message of Triton that may be a layer's, all that the server reads in its range."""
    config = draw(draw_message())
    for member, value in (("name", "layer"), ("platform", "onnxruntime_onnx"), ("backend", "")):
        setattr(config, member, draw(st.sampled_from(["", value])))
    config.max_batch_size = draw(st.integers(0, 2**31 - 1))
    for group in config.instance_group:
        group.count = draw(st.integers(0, 5))
    return config


@given(config=draw_config(), one_line=st.booleans())
def test_what_triton_means_is_read(config: Any, *, one_line: bool) -> None:
    text = load_module("text_format").MessageToString(config, as_one_line=one_line)
    found = read(text)
    batching, groups = config.dynamic_batching, config.instance_group
    assert found.max_batch_size == (config.max_batch_size or None)
    assert found.max_queue_delay_us == batching.max_queue_delay_microseconds
    assert found.instance_count == (sum(group.count or 1 for group in groups) or None)
    ignored = {field.name for field, _ in config.ListFields()} - SILENT - HONOURED
    ignored |= {f"dynamic_batching.{field.name}" for field, _ in batching.ListFields()}
    ignored |= {f"instance_group.{f.name}" for group in groups for f, _ in group.ListFields()}
    ignored -= {"dynamic_batching.max_queue_delay_microseconds", "instance_group.count"}
    assert set(found.ignored) == ignored
    assert len(found.ignored) == len(ignored)


def test_a_model_without_a_config_leaves_all_open(tmp_path: Path) -> None:
    assert read_model_config(tmp_path) == ModelConfig()
    assert read("") == ModelConfig()


def test_the_config_of_the_demo_is_honoured_as_a_whole() -> None:
    assert read_model_config(DEMO / "demo") == ModelConfig(max_batch_size=256)


def test_an_example_with_all_that_is_honoured() -> None:
    text = """
        name: "layer"
        backend: "onnxruntime"
        max_batch_size: 8        # sequences
        dynamic_batching {
            preferred_batch_size: [ 4, 8 ]
            max_queue_delay_microseconds: 100
        }
        instance_group [ { count: 2, kind: KIND_CPU }, { kind: KIND_CPU } ]
        optimization { cuda { graphs: true } }
        parameters: { key: "x", value: { string_value: "1" } }
        parameters: { key: "y", value: { string_value: "2" } }
    """
    assert read(text) == ModelConfig(
        max_batch_size=8,
        max_queue_delay_us=100,
        instance_count=3,
        ignored=(
            "optimization",
            "parameters",
            "dynamic_batching.preferred_batch_size",
            "instance_group.kind",
        ),
    )
    assert parse(text).instance_group[0].count == 2


def test_a_batch_size_of_nought_is_not_the_same_as_none() -> None:
    assert read("max_batch_size: 0").max_batch_size == 0


def test_dynamic_batching_without_a_delay_has_none() -> None:
    assert read("dynamic_batching {}") == ModelConfig()


def test_fields_that_triton_does_not_have_are_named_too() -> None:
    assert read("maximal_batch: 3 [a.b]: 4").ignored == ("maximal_batch", "a.b")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('name: "other"', 'line 1: name is "other", expected "layer", the name of its directory'),
        ("name: layer", "line 1: name is layer, expected a string in quotes"),
        ('\nplatform: "tensorrt_plan"', 'line 2: platform is "tensorrt_plan", expected '
         '"onnxruntime_onnx"'),
        ('backend: "python"', 'line 1: backend is "python", expected "onnxruntime"'),
        ("max_batch_size: -1", "line 1: max_batch_size is -1, expected a whole number from 0 to "
         "2147483647"),
        ("max_batch_size: 2147483648", "line 1: max_batch_size is 2147483648, expected a whole "
         "number from 0 to 2147483647"),
        ("max_batch_size: 8.0", "line 1: max_batch_size is 8.0, expected a whole number from 0 to "
         "2147483647"),
        ('max_batch_size: "8"', 'line 1: max_batch_size is "8", expected a whole number from 0 to '
         "2147483647"),
        ("max_batch_size: many", "line 1: max_batch_size is many, expected a whole number from 0 "
         "to 2147483647"),
        ("max_batch_size { a: 1 }", "line 1: max_batch_size is a message, expected a whole number "
         "from 0 to 2147483647"),
        ("max_batch_size: [8]", "line 1: max_batch_size is a list, expected one value"),
        ("max_batch_size: []", "line 1: max_batch_size is a list, expected one value"),
        ("max_batch_size: 8\nmax_batch_size: 8", "line 2: max_batch_size comes twice, expected "
         "once"),
        ("dynamic_batching: true", "line 1: dynamic_batching is true, expected fields in braces"),
        ("dynamic_batching {}\ndynamic_batching {}", "line 2: dynamic_batching comes twice, "
         "expected once"),
        ("dynamic_batching {\n max_queue_delay_microseconds: 18446744073709551616 }",
         "line 2: max_queue_delay_microseconds is 18446744073709551616, expected a whole number "
         "from 0 to 18446744073709551615"),
        ("instance_group: 2", "line 1: instance_group is 2, expected fields in braces"),
        ("instance_group [\n{ count: -2 } ]", "line 2: count is -2, expected a whole number from "
         "0 to 2147483647"),
        ("max_batch_size 8", "line 1: expected ':', found '8'"),
    ],
)  # fmt: skip
def test_a_value_that_does_not_fit_is_told_with_its_line(text: str, said: str) -> None:
    assert refuse(text) == f"config.pbtxt: {said}"
    with pytest.raises(Exception, match=r"."):
        check_as_triton(text)


def check_as_triton(text: str) -> None:
    """Triton's parser, and what Triton looks at afterwards."""
    config = parse(text)
    counts = [group.count for group in config.instance_group]
    assert config.max_batch_size >= 0
    assert all(count >= 0 for count in counts)
    assert config.name in ("", "layer")
    assert config.platform in ("", "onnxruntime_onnx")
    assert config.backend in ("", "onnxruntime")


def test_a_config_that_is_not_utf8_is_refused(tmp_path: Path) -> None:
    (tmp_path / "config.pbtxt").write_bytes(b"\xff")
    with pytest.raises(ConfigError, match=r"^config\.pbtxt: line 1: is not UTF-8$"):
        read_model_config(tmp_path)


def test_the_name_is_that_of_the_directory_however_it_is_given(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "config.pbtxt").write_text(f'name: "{tmp_path.name}"')
    monkeypatch.chdir(tmp_path)
    read_model_config(Path())


def test_a_config_that_cannot_be_read_is_no_absent_one(tmp_path: Path) -> None:
    (tmp_path / "config.pbtxt").mkdir()
    with pytest.raises(UnreadableError) as caught:
        read_model_config(tmp_path)
    assert str(caught.value) == "config.pbtxt cannot be read: it is no regular file"


def test_a_config_as_large_as_a_model_is_not_read(tmp_path: Path) -> None:
    (tmp_path / "config.pbtxt").write_bytes(b"#" * (2**20 + 1))
    with pytest.raises(UnreadableError) as caught:
        read_model_config(tmp_path)
    assert str(caught.value) == "config.pbtxt cannot be read: it is larger than 1048576 bytes"


def test_a_pipe_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "config.pbtxt")
    with pytest.raises(UnreadableError):
        read_model_config(tmp_path)
