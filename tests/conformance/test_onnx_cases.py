"""ONNX's Attention cases through our exported layer, over HTTP."""

import io
from collections.abc import Iterator
from pathlib import Path

import httpx
import numpy as np
import pytest

from export import export_module
from model import MultiHeadAttention
from model.contract import AttentionSpec
from tests.conformance.onnx_cases import Case, collect_cases, identity_weights
from tests.integration.server_process import start_server

pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning:onnx")


@pytest.fixture(scope="session")
def collected() -> tuple[list[Case], dict[str, str]]:
    return collect_cases()


@pytest.fixture(scope="session")
def url(
    collected: tuple[list[Case], dict[str, str]], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[str]:
    """A server of one layer without projections for each size that the cases have."""
    models = tmp_path_factory.mktemp("models")
    for spec in {case.spec for case in collected[0]}:
        export_identity(spec, models)
    with start_server("--models", str(models)) as server:
        yield server.url


def export_identity(spec: AttentionSpec, models: Path) -> None:
    layer = MultiHeadAttention.from_weights(identity_weights(spec))
    export_module(layer, models, name=name_model(spec))


def name_model(spec: AttentionSpec) -> str:
    return f"identity-{spec.d_model}-{spec.num_heads}"


def ask(case: Case, url: str) -> dict[str, np.ndarray]:
    """The answer of the case's layer, asked by npz."""
    body = io.BytesIO()
    np.savez(body, **case.tensors)  # type: ignore[arg-type] # names are not numpy's option
    options = {"model": name_model(case.spec), "weights": "per_head"}
    if case.causal:
        options["causal"] = "true"
    answer = httpx.post(f"{url}/v1/attention", params=options, content=body.getvalue())
    assert answer.status_code == 200, answer.text
    return dict(np.load(io.BytesIO(answer.content)))


def test_all_cases_that_the_contract_can_say_agree(
    collected: tuple[list[Case], dict[str, str]], url: str
) -> None:
    for case in collected[0]:
        answer = ask(case, url)
        sees = find_seeing_rows(case)
        heads = answer["output"].reshape(*answer["output"].shape[:2], case.spec.num_heads, -1)
        expected = case.output.reshape(heads.shape)
        rows = sees.swapaxes(1, 2)  # [B, L, H], as the heads of an output lie
        np.testing.assert_allclose(
            heads[rows], expected[rows], case.rtol, case.atol, err_msg=case.name
        )
        if case.weights is not None:
            np.testing.assert_allclose(
                answer["attention_weights"][sees],
                case.weights[sees],
                case.rtol,
                case.atol,
                err_msg=case.name,
            )


def test_rows_without_a_key_are_uniform_where_onnx_has_zeros(
    collected: tuple[list[Case], dict[str, str]], url: str
) -> None:
    blind_cases = [case for case in collected[0] if not find_seeing_rows(case).all()]
    assert blind_cases
    for case in blind_cases:
        answer, blind = ask(case, url), ~find_seeing_rows(case)
        key_length = case.tensors["key"].shape[1]
        assert (answer["attention_weights"][blind] == np.float32(1 / key_length)).all(), case.name


def find_seeing_rows(case: Case) -> np.ndarray:
    """Bool ``[B, H, L]``: which rows see a key."""
    query, key = case.tensors["query"], case.tensors["key"]
    shape = (query.shape[0], case.spec.num_heads, query.shape[1], key.shape[1])
    visible = np.ones(shape, bool)
    for name, hides in (("mask", np.logical_not), ("bias", lambda bias: bias <= -1e30)):
        if name in case.tensors:
            visible &= ~hides(case.tensors[name])
    if "key_mask" in case.tensors:
        visible &= case.tensors["key_mask"][:, None, None]
    if case.causal:
        visible &= np.tri(*shape[2:], dtype=bool)
    return np.asarray(visible.any(axis=-1))


def test_what_is_left_out_needs_what_the_contract_does_not_have(
    collected: tuple[list[Case], dict[str, str]],
) -> None:
    cases, left_out = collected
    reasons = {
        "bfloat16 tensors",
        "float16 tensors",
        "grouped heads",
        "opset 25",
        "scale",
        "softcap",
        "values of another width than keys",
    }
    assert set(left_out.values()) == reasons
    assert len(cases) >= 36
