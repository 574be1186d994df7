"""The sizes of a layer, on their way through ONNX metadata and back."""

import subprocess
import sys
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from model.contract import CAUSAL_FORMS, MODEL_NAME, PRECISIONS, SPEC_PROPERTIES, AttentionSpec

sizes = st.integers(1, 2**20)
specs = st.builds(
    lambda d_k, num_heads, kdim, vdim, causal, precision: AttentionSpec(
        d_k * num_heads, num_heads, kdim, vdim, causal=causal, precision=precision
    ),
    *[sizes] * 4,
    st.sampled_from([False, *CAUSAL_FORMS]),
    st.sampled_from(PRECISIONS),
)


@given(specs)
def test_sizes_come_back_from_the_properties_that_hold_them(spec: AttentionSpec) -> None:
    assert AttentionSpec.from_properties(spec.to_properties()) == spec


@given(specs, st.dictionaries(st.text(), st.text()))
def test_other_properties_are_ignored(spec: AttentionSpec, others: dict[str, str]) -> None:
    assert AttentionSpec.from_properties(others | spec.to_properties()) == spec


@given(st.dictionaries(st.sampled_from(SPEC_PROPERTIES), st.text() | st.integers() | st.none()))
def test_any_properties_are_read_or_refused_with_a_value_error(properties: dict[str, str]) -> None:
    try:
        spec = AttentionSpec.from_properties(properties)
    except ValueError:
        return
    assert {name: int(text) for name, text in properties.items()} == {
        name: getattr(spec, name) for name in SPEC_PROPERTIES
    }


def test_key_and_value_are_as_wide_as_the_query_unless_their_width_is_given() -> None:
    assert AttentionSpec(12, 3) == AttentionSpec(12, 3, kdim=12, vdim=12)
    assert AttentionSpec(12, 3, kdim=8) == AttentionSpec(12, 3, kdim=8, vdim=12)
    assert AttentionSpec(12, 3).d_k == 4


@pytest.mark.parametrize(
    ("sizes", "message"),
    [
        ((12, 5), "d_model (12) must be a multiple of num_heads (5)"),
        ((12, 0), "num_heads is 0, expected a positive number"),
        ((0, 3), "d_model is 0, expected a positive number"),
        ((12, 3, 0), "kdim is 0, expected a positive number"),
        ((12, 3, 8, 0), "vdim is 0, expected a positive number"),
        ((12, 3, -8), "kdim is -8, expected a positive number"),
        ((12, 3, 8, -10), "vdim is -10, expected a positive number"),
    ],
)
def test_impossible_sizes_are_named(sizes: tuple[int, ...], message: str) -> None:
    with pytest.raises(ValueError) as caught:  # noqa: PT011 - the text is compared in full
        AttentionSpec(*sizes)
    assert str(caught.value) == message


def test_causal_is_said_only_where_it_is_set() -> None:
    assert "causal" not in AttentionSpec(12, 3).to_properties()
    properties = AttentionSpec(12, 3, causal="bottom_right").to_properties()
    assert properties["causal"] == "bottom_right"


@pytest.mark.parametrize("causal", [True, None, "", "left", 1, ["top_left"]], ids=str)
def test_an_unknown_alignment_is_named(causal: Any) -> None:
    text = f"causal is {causal!r}, expected False, 'top_left' or 'bottom_right'"
    with pytest.raises(ValueError) as caught:  # noqa: PT011 - the text is compared in full
        AttentionSpec(12, 3, causal=causal)
    assert str(caught.value) == text


def test_precision_is_said_only_where_it_is_fp16() -> None:
    assert "precision" not in AttentionSpec(12, 3).to_properties()
    assert AttentionSpec(12, 3, precision="fp16").to_properties()["precision"] == "fp16"


@pytest.mark.parametrize("precision", [None, "", "float16", "FP16", 16, ["fp16"]], ids=str)
def test_an_unknown_precision_is_named(precision: Any) -> None:
    with pytest.raises(ValueError) as caught:  # noqa: PT011 - the text is compared in full
        AttentionSpec(12, 3, precision=precision)
    assert str(caught.value) == f"precision is {precision!r}, expected 'fp32' or 'fp16'"


@pytest.mark.parametrize("text", [None, "", "-3", "+3", "3.0", "three", "٣", " 3", 3])
def test_a_property_that_is_no_whole_number_is_named(text: str) -> None:
    properties = AttentionSpec(12, 3).to_properties() | {"num_heads": text}
    with pytest.raises(ValueError) as caught:  # noqa: PT011 - the text is compared in full
        AttentionSpec.from_properties(properties)
    assert str(caught.value) == f"num_heads is {text!r}, expected a whole number as text"


@pytest.mark.parametrize("name", SPEC_PROPERTIES)
def test_a_property_of_zero_is_not_taken_for_an_absent_one(name: str) -> None:
    properties = AttentionSpec(12, 3).to_properties() | {name: "0"}
    with pytest.raises(ValueError) as caught:  # noqa: PT011 - the text is compared in full
        AttentionSpec.from_properties(properties)
    assert str(caught.value) == f"{name} is 0, expected a positive number"


@pytest.mark.parametrize(
    ("name", "fit"),
    [
        *[("demo", True), ("_", True), ("7", True), ("a.b-C_9", True), ("stats2", True)],
        *[("stats", False), ("", False), (".a", False), ("-a", False), ("a/b", False)],
        *[("a\n", False), ("stats\n", False), ("é", False)],
    ],
)
def test_a_model_name_needs_no_escape_and_is_no_path_of_the_protocol(name: str, fit: bool) -> None:
    assert bool(MODEL_NAME.fullmatch(name)) == fit


@pytest.mark.parametrize("heavy", ["torch", "onnx", "onnxruntime"])
def test_importing_model_and_its_contract_loads_nothing_heavy(heavy: str) -> None:
    code = f"import model, model.contract, sys; sys.exit({heavy!r} in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_the_module_is_imported_from_the_package_by_its_name() -> None:
    code = "from model import MultiHeadAttention as M; print(M(6, 2).d_k)"
    result = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True)
    assert result.stdout == b"3\n"


def test_another_name_is_no_part_of_the_package() -> None:
    import model

    with pytest.raises(AttributeError, match="module 'model' has no attribute 'Attention'"):
        _ = model.Attention
