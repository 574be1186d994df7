"""The number of heads: by hand, from config.json, or a clear refusal."""

import json
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from export.checkpoints.config import HEADS, Config
from export.errors import CheckpointError
from model.contract import AttentionSpec

json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text() | st.sampled_from(HEADS), inner),
    max_leaves=6,
)


def write_config(directory: Path, content: object) -> Config:
    (directory / "config.json").write_text(json.dumps(content))
    return Config(directory / "x.pt")


def refusal_of(config: Config) -> str:
    with pytest.raises(CheckpointError) as caught:
        config.read_num_heads()
    return str(caught.value)


@pytest.mark.parametrize("name", HEADS)
def test_the_number_of_heads_is_read_from_the_config_beside_the_file(
    name: str, tmp_path: Path
) -> None:
    config = write_config(tmp_path, {"model_type": "any", name: 12})
    assert config.read_num_heads() == 12


@pytest.mark.parametrize(
    ("layer", "heads"),
    [
        ("model.encoder.layers.1.self_attn", 3),
        ("model.decoder.layers.1.encoder_attn", 4),
        ("model.layers.1.self_attn", 6),
    ],
)
def test_encoders_and_decoders_have_heads_of_their_own(
    layer: str, heads: int, tmp_path: Path
) -> None:
    values = {
        "num_attention_heads": 6,
        "encoder_attention_heads": 3,
        "decoder_attention_heads": 4,
    }
    assert write_config(tmp_path, values).at(layer).read_num_heads() == heads


@pytest.mark.parametrize(
    ("layer", "heads", "kind"),
    [
        ("text_model.encoder.layers.1.self_attn", 3, "clip_text_model"),
        ("vision_model.encoder.layers.1.self_attn", 4, "clip"),
        ("encoder.encoder.layer.1.attention", 6, "clip"),
        ("decoder.bert.encoder.layer.1.attention", 2, "bert"),
    ],
)
def test_the_section_of_its_part_of_the_network_counts_for_a_layer(
    layer: str, heads: int, kind: str, tmp_path: Path
) -> None:
    values = {
        "model_type": "clip",
        "num_attention_heads": 6,
        "text_config": {"num_attention_heads": 3, "model_type": "clip_text_model"},
        "vision_config": {"num_attention_heads": 4},
        "encoder": "no section",
        "decoder": {"num_attention_heads": 2, "model_type": "bert"},
    }
    config = write_config(tmp_path, values).at(layer)
    assert (config.read_num_heads(), config.read_values()["model_type"]) == (heads, kind)


@pytest.mark.parametrize("content", [{}, {"n_head": 3}])
@pytest.mark.parametrize("by_hand", [None, 3])
def test_whether_the_number_is_told_is_known_before_it_is_asked_for(
    content: dict[str, int], by_hand: int | None, tmp_path: Path
) -> None:
    write_config(tmp_path, content)
    told = Config(tmp_path / "x.pt", by_hand).tells_num_heads()
    assert told == bool(content or by_hand)


def test_the_number_that_is_given_by_hand_wins_and_no_config_is_read(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text("not json")
    assert Config(tmp_path / "x.pt", num_heads=3).read_num_heads() == 3


@pytest.mark.parametrize("content", [None, {}, {"hidden_size": 12}])
def test_a_number_that_nobody_tells_is_asked_for(content: object, tmp_path: Path) -> None:
    config = Config(tmp_path / "x.pt") if content is None else write_config(tmp_path, content)
    assert refusal_of(config) == (
        "the number of heads is not in 'x.pt', and no config.json beside it says "
        "num_attention_heads, num_heads, n_head, n_heads or nhead; give --num-heads"
    )


@pytest.mark.parametrize(("value", "shown"), [("12", "'12'"), (12.0, "12.0"), (True, "True")])
def test_a_number_of_heads_that_is_no_whole_number_is_refused(
    value: object, shown: str, tmp_path: Path
) -> None:
    assert refusal_of(write_config(tmp_path, {"n_head": value})) == (
        f"config.json says n_head is {shown}, expected a whole number; give --num-heads"
    )


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ('{"n_head": ', "is not JSON (Expecting value: line 1 column 12 (char 11))"),
        ("[12]", "holds no JSON object"),
    ],
)
def test_a_damaged_config_is_named(text: str, fault: str, tmp_path: Path) -> None:
    path = tmp_path / "config.json"
    path.write_text(text)
    assert refusal_of(Config(tmp_path / "x.pt")) == f"'{path}' {fault}; mend or remove it"


@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(content=json_values | st.binary())
def test_any_config_gives_a_whole_number_or_a_refusal(content: object, tmp_path: Path) -> None:
    raw = content if isinstance(content, bytes) else json.dumps(content).encode()
    (tmp_path / "config.json").write_bytes(raw)
    try:
        found = Config(tmp_path / "x.pt").read_num_heads()
    except CheckpointError:
        return
    assert type(found) is int


def test_heads_that_do_not_divide_are_refused_with_the_option_that_mends_it() -> None:
    assert Config(Path("x.pt"), 3).make_spec(12, 8, 10) == AttentionSpec(12, 3, 8, 10)
    with pytest.raises(CheckpointError) as caught:
        Config(Path("x.pt"), 5).make_spec(12, 8, 10)
    assert str(caught.value) == (
        "'x.pt': d_model (12) must be a multiple of num_heads (5); give the --num-heads that the "
        "layer was trained with"
    )
