"""The promise: on the CPU an answer depends on its own request alone, bit for bit."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from model.contract import Causal
from model.reference import attend
from model.weights import Weights
from service.engine.directories import DEMO
from service.engine.loader import Loader
from service.engine.model import Model
from service.engine.sizes import Limits
from service.inference import Inference, WantedWeights, WeightsForm

B, L, S, D, H = 4, 5, 7, 6, 3
FORMS: tuple[WeightsForm, ...] = ("none", "per_head", "mean")
SHAPES = [
    *((b, h, q, S) for b in (1, B) for h in (1, H) for q in (1, L)),
    *((b, q, S) for b in (1, B) for q in (1, L)),
    *((q, S) for q in (1, L)),
]
HIDE = [-1e30, -np.inf, float(np.finfo("f4").min)]
SCALES = st.sampled_from([1.0, 0.01, 30.0, 1e4])
CAUSAL = st.sampled_from([False, "top_left", "bottom_right"])


def hidings(*added: float) -> st.SearchStrategy[dict[str, Any]]:
    """Masks, key masks and biases; the biases hide or are among `added`."""
    elements = st.sampled_from([0.0, *added, *HIDE])
    shapes = st.sampled_from(SHAPES)
    return st.fixed_dictionaries(
        {},
        optional={
            "mask": shapes.flatmap(lambda shape: arrays.arrays(bool, shape)),
            "key_mask": arrays.arrays(bool, (B, S)),
            "bias": shapes.flatmap(lambda s: arrays.arrays(np.float32, s, elements=elements)),
        },
    )


HIDINGS = hidings(1.5, -2.25, 50.0, -1e4)
# A float32 score plus 10000 keeps three digits behind the point, as arithmetic does.
SMALL_HIDINGS = hidings(1.5, -2.25, 8.0)

Tensors = dict[str, Any]


def draw_tokens(scale: float, length: int = L) -> dict[str, Any]:
    generator = np.random.default_rng(9)
    shapes = {"query": (B, length, D), "key": (B, S, D), "value": (B, S, D)}
    return {
        name: (generator.standard_normal(shape) * scale).astype(np.float32)
        for name, shape in shapes.items()
    }


def pick(item: int, tensors: Tensors) -> dict[str, Any]:
    """The tensors of one item of a batch, with a batch axis of 1."""
    picked = {}
    for name, array in tensors.items():
        is_shared = array.ndim == 2 and name != "key_mask"
        picked[name] = array if is_shared or array.shape[0] == 1 else array[item : item + 1]
    return picked


def run(
    model: Model, tensors: Tensors, causal: Causal = False, form: WeightsForm = "none"
) -> dict[str, Any]:
    return model.run(model.check(Inference(tensors, causal, WantedWeights(form)))).tensors


def check_same_bits(found: Tensors, wanted: Tensors) -> None:
    assert found.keys() == wanted.keys()
    for name, array in wanted.items():
        assert found[name].shape == array.shape
        assert found[name].tobytes() == array.tobytes(), name


@pytest.mark.parametrize("form", FORMS)
@given(hiding=HIDINGS, causal=CAUSAL, scale=SCALES, length=st.sampled_from([1, 2, L]))
@settings(max_examples=40)
def test_an_item_alone_equals_the_item_in_a_batch(
    demo: Model, form: WeightsForm, hiding: Tensors, causal: Causal, scale: float, length: int
) -> None:
    fitting = {
        n: a if n == "key_mask" or a.shape[-2] == 1 else a[..., :length, :]
        for n, a in hiding.items()
    }
    tensors = draw_tokens(scale, length) | fitting
    together = run(demo, tensors, causal, form)
    for item in range(B):
        alone = run(demo, pick(item, tensors), causal, form)
        check_same_bits(alone, {n: a[item : item + 1] for n, a in together.items()})


@given(hiding=HIDINGS, causal=CAUSAL, scale=SCALES)
def test_the_output_is_the_same_with_and_without_weights(
    demo: Model, hiding: Tensors, causal: Causal, scale: float
) -> None:
    tensors = draw_tokens(scale) | hiding
    plain, with_weights, with_mean = (run(demo, tensors, causal, form) for form in FORMS)
    assert plain["output"].tobytes() == with_weights["output"].tobytes()
    assert plain["output"].tobytes() == with_mean["output"].tobytes()


@given(hiding=HIDINGS, scale=SCALES, order=st.permutations(range(B)))
def test_the_order_of_a_batch_changes_nothing(
    demo: Model, hiding: Tensors, scale: float, order: list[int]
) -> None:
    tensors = draw_tokens(scale) | hiding
    shuffled = {
        n: a if a.shape[0] == 1 or (a.ndim == 2 and n != "key_mask") else a[order]
        for n, a in tensors.items()
    }
    straight = run(demo, tensors, form="per_head")
    check_same_bits(
        run(demo, shuffled, form="per_head"), {n: a[order] for n, a in straight.items()}
    )


@given(
    hiding=HIDINGS,
    victim=st.integers(0, B - 1),
    name=st.sampled_from(["query", "key", "value"]),
    wild=st.sampled_from([np.nan, np.inf, -np.inf]),
)
def test_nan_in_one_item_never_reaches_another(
    demo: Model, hiding: Tensors, victim: int, name: str, wild: float
) -> None:
    calm = draw_tokens(1.0)
    broken = dict(calm, **{name: calm[name].copy()})
    broken[name][victim] = wild
    others = [item for item in range(B) if item != victim]
    for form in ("none", "per_head"):
        wanted = run(demo, calm | hiding, form=form)
        found = run(demo, broken | hiding, form=form)
        check_same_bits(
            {n: a[others] for n, a in found.items()}, {n: a[others] for n, a in wanted.items()}
        )


@given(hiding=SMALL_HIDINGS, causal=CAUSAL, scale=SCALES)
@settings(max_examples=40)
def test_the_answer_is_that_of_the_formula(
    demo: Model, weights: Weights, hiding: Tensors, causal: Causal, scale: float
) -> None:
    tensors = draw_tokens(min(scale, 30.0)) | hiding
    found = run(demo, tensors, causal, "per_head")
    output, attention = attend(weights, **tensors, causal=causal)
    np.testing.assert_allclose(found["attention_weights"], attention, atol=2e-5)
    np.testing.assert_allclose(found["output"], output, atol=2e-5 * np.abs(output).max())


@given(hiding=HIDINGS, causal=CAUSAL)
def test_hidden_keys_weigh_nothing_and_rows_without_keys_are_uniform(
    demo: Model, weights: Weights, hiding: Tensors, causal: Causal
) -> None:
    tensors = draw_tokens(1.0) | hiding
    found = run(demo, tensors, causal, "per_head")["attention_weights"]
    _, wanted = attend(weights, **tensors, causal=causal)
    assert not found[wanted == 0].any()
    uniform = (wanted == 1 / S).all(axis=-1)
    assert (found[uniform] == np.float32(1) / np.float32(S)).all()


@given(
    length=st.integers(2, L),
    real=st.integers(1, S - 1),
    scale=SCALES,
    filler=st.sampled_from([0.0, -7.5, float(np.finfo("f4").max), np.inf, np.nan]),
    form=st.sampled_from(FORMS),
)
def test_a_padded_sequence_equals_the_unpadded_one(
    demo: Model, length: int, real: int, scale: float, filler: float, form: WeightsForm
) -> None:
    tensors = draw_tokens(scale, length)
    short = tensors | {name: tensors[name][:, :real] for name in ("key", "value")}
    padded = {n: a.copy() for n, a in tensors.items()}
    for name in ("key", "value"):
        padded[name][:, real:] = filler
    padded["key_mask"] = np.broadcast_to(np.arange(S) < real, (B, S))
    found, wanted = run(demo, padded, form=form), run(demo, short, form=form)
    assert found["output"].tobytes() == wanted["output"].tobytes()
    if form != "none":
        assert not found["attention_weights"][..., real:].any()
        kept = np.ascontiguousarray(found["attention_weights"][..., :real])
        assert kept.tobytes() == wanted["attention_weights"].tobytes()


@given(hiding=HIDINGS, causal=CAUSAL, shift=st.integers(1, 15))
@settings(max_examples=25)
def test_an_address_changes_nothing(
    demo: Model, hiding: Tensors, causal: Causal, shift: int
) -> None:
    """Binary tensors are views into a body, at any offset."""
    tensors = draw_tokens(1.0) | hiding
    moved = {}
    for name, array in tensors.items():
        data = np.ascontiguousarray(array)
        raw = bytes(shift) + data.tobytes()
        moved[name] = np.frombuffer(memoryview(raw)[shift:], data.dtype).reshape(data.shape)
    for form in ("none", "per_head"):
        check_same_bits(run(demo, moved, causal, form), run(demo, tensors, causal, form))


def test_the_number_of_threads_changes_nothing(demo: Model, limits: Limits) -> None:
    other = Loader("cpu", 2, limits).load(DEMO / "demo" / "1")
    generator = np.random.default_rng(10)
    tensors: Tensors = {
        name: generator.standard_normal((16, length, D)).astype(np.float32)
        for name, length in (("query", 50), ("key", 70), ("value", 70))
    }
    tensors["mask"] = generator.random((16, 50, 70)) < 0.5
    for form in FORMS:
        check_same_bits(run(other, tensors, form=form), run(demo, tensors, form=form))
