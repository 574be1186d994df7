"""`export_module`: what it writes, and what it refuses without leaving a trace."""

import json
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
import pytest
import torch
from torch import Tensor, nn

from export import export_module
from export.errors import VerificationError
from export.module import to_layer
from export.record import read_report
from export.runtime import open_graph
from export.verify import largest_error
from model.attention import MultiHeadAttention
from model.contract import DECOMPOSED, FUSED_WEIGHTS
from model.weights import Weights


def test_the_record_of_the_verification_tells_versions_sizes_hidings_and_errors(
    exported: Path,
) -> None:
    record = json.loads((exported / "verification.json").read_text())
    packages = ("limelight", "torch", "onnx", "onnxscript", "numpy")
    assert record["versions"] == {name: version(name) for name in packages} | {
        "onnxruntime": onnxruntime.__version__
    }
    assert record["attention"] == {"d_model": "12", "num_heads": "3", "kdim": "8", "vdim": "10"}
    assert record["tolerance"] == 1e-5
    assert len(record["sizes"]) == 7
    assert {"batch_size": 2, "query_length": 100, "key_length": 31} in record["sizes"]
    traced = {"batch_size": 2, "query_length": 4, "key_length": 5}
    assert traced not in record["sizes"]
    assert record["hidings"] == [
        "none",
        "mask",
        "mask_per_head",
        "rows_without_keys",
        "key_mask",
        "bias",
        "causal_top_left",
        "causal_bottom_right",
    ]
    errors = record["largest_error"]
    assert {name: len(hidings) for name, hidings in errors.items()} == {
        "model": 8,
        "fused_bias": 8,
        "fused_weights": 8,
        "fused": 2,
        "fused_causal": 1,
    }
    assert set(errors["fused_weights"]["mask"]) == {"output", "attention_weights"}


def test_the_largest_error_is_read_back_from_the_record(exported: Path) -> None:
    assert 1e-9 < largest_error(read_report(exported)) < 1e-6


def test_a_layer_of_torch_is_served_as_torch_computes_it(tmp_path: Path) -> None:
    torch.manual_seed(1)
    source = nn.MultiheadAttention(10, 5, kdim=6, vdim=7, dropout=0.5, batch_first=True)
    nn.init.uniform_(source.in_proj_bias)
    directory = export_module(source, tmp_path, name="torch")
    assert source.training
    tokens = [torch.randn(shape) for shape in ((3, 4, 10), (3, 8, 6), (3, 8, 7))]
    hidden = torch.rand(3 * 5, 4, 8) < 0.3
    source.eval()
    wanted = source(*tokens, attn_mask=hidden, average_attn_weights=False)
    bias = torch.zeros(3 * 5, 4, 8).masked_fill(hidden, -np.inf).reshape(3, 5, 4, 8)
    feeds = {n: t.numpy() for n, t in zip(DECOMPOSED.inputs, (*tokens, bias), strict=True)}
    for graph in (DECOMPOSED, FUSED_WEIGHTS):
        answers = open_graph(directory / graph.file)(list(graph.outputs), feeds)
        for answer, expected in zip(answers, wanted, strict=True):
            np.testing.assert_allclose(answer, expected.detach().numpy(), atol=2e-6)


class DoubledScale(MultiHeadAttention):
    """Another computation in a part that the graphs are traced from."""

    def scaled_scores(self, query: Tensor, key: Tensor) -> Tensor:
        return 2 * super().scaled_scores(query, key)


class Residual(MultiHeadAttention):
    """Another computation round the parts, which the graphs would lose."""

    def forward(self, query: Tensor, *others: Any, **options: Any) -> Any:
        output, weights = super().forward(query, *others, **options)
        return output + query, weights


@pytest.mark.parametrize("kind", [DoubledScale, Residual])
def test_a_layer_that_computes_something_else_is_refused_and_nothing_is_left(
    kind: type[MultiHeadAttention], tmp_path: Path, weights: Weights
) -> None:
    with pytest.raises(
        VerificationError, match=r"^the layer's forward: .+, expected at most 1e-05"
    ):
        export_module(kind.from_weights(weights), tmp_path / "new" / "models", name="other")
    assert not list(tmp_path.iterdir())


def test_a_graph_that_misses_the_tolerance_is_refused_and_nothing_is_left(
    tmp_path: Path, weights: Weights, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("export.module.verify_layer", lambda *_: None)
    monkeypatch.setattr("export.template.GRAPHS", (DECOMPOSED,))
    with pytest.raises(VerificationError, match=r"^graph 'model': output differs from float64 by"):
        export_module(DoubledScale.from_weights(weights), tmp_path / "models", name="other")
    assert not list(tmp_path.iterdir())


class OtherTorchLayer(nn.MultiheadAttention):
    """A subclass whose computation nobody knows."""

    def forward(self, *args: Any, **options: Any) -> Any:
        return super().forward(*args, **options)


@pytest.mark.parametrize("module", [nn.Linear(3, 4), OtherTorchLayer(12, 3)])
def test_a_module_of_another_class_is_named(module: nn.Module, tmp_path: Path) -> None:
    with pytest.raises(TypeError) as caught:
        export_module(module, tmp_path / "models", name="other")
    assert str(caught.value) == (
        f"module is a {type(module).__name__}, expected model.MultiHeadAttention or "
        "torch.nn.MultiheadAttention; of a class with the same four maps, save the state_dict and "
        "use limelight-export checkpoint"
    )
    assert not list(tmp_path.iterdir())


def test_the_exported_layer_is_a_still_copy_in_float32() -> None:
    source = MultiHeadAttention(12, 3).double().train()
    layer = to_layer(source)
    assert (layer.training, layer.W_q.weight.dtype) == (False, torch.float32)
    assert (source.training, source.W_q.weight.dtype) == (True, torch.float64)


def test_a_layer_that_holds_nan_is_refused(tmp_path: Path) -> None:
    layer = MultiHeadAttention(12, 3)
    nn.init.constant_(layer.W_v.bias, float("nan"))
    with pytest.raises(ValueError, match=r"^weight b_v holds NaN or an infinity$"):
        export_module(layer, tmp_path / "models", name="other")
    assert not list(tmp_path.iterdir())
