"""Versions loaded from their files."""

import json
import os
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from model.contract import FUSED, FUSED_BIAS, FUSED_WEIGHTS, AttentionSpec
from service.engine import session as sessions
from service.engine.directories import DEMO
from service.engine.lane import go_on
from service.engine.loader import Loader
from service.engine.model import Model
from service.engine.model_config import ModelConfig
from service.engine.session import Session, load_runtime
from service.engine.sizes import Limits
from service.errors import ServiceError, StartError
from service.inference import Inference, WantedWeights, WeightsForm
from tests.service.engine.stand_ins import StandIn

VERSION = DEMO / "demo" / "1"


@pytest.fixture(name="loader")
def make_loader(limits: Limits) -> Loader:
    return Loader("cpu", 1, limits)


@pytest.fixture(name="version")
def copy_demo(tmp_path: Path) -> Path:
    return Path(shutil.copytree(VERSION, tmp_path / "models" / "layer" / "1"))


def infer(model: Model, form: WeightsForm = "none") -> bytes:
    """The bits of an answer."""
    query = np.arange(48, dtype=np.float32).reshape(2, 4, 6) / 48
    computed = model.run(model.check(Inference({"query": query}, weights=WantedWeights(form))))
    return b"".join(tensor.tobytes() for tensor in computed.tensors.values())


def test_a_version_is_loaded_and_has_answered(loader: Loader) -> None:
    model = loader.load(VERSION)
    assert (model.name, model.version, model.provider) == ("demo", "1", "cpu")
    assert model.spec == AttentionSpec(6, 3)


def test_the_config_of_the_model_reaches_it(loader: Loader, version: Path) -> None:
    (version.parent / "config.pbtxt").write_text(
        "max_batch_size: 3 instance_group { count: 2 } "
        "dynamic_batching { max_queue_delay_microseconds: 7 }"
    )
    assert loader.load(version).config == ModelConfig(3, 7, 2)


@pytest.mark.parametrize("linked", ["model", "version", "files"])
def test_models_behind_links_are_loaded_under_the_name_of_the_link(
    tmp_path: Path, loader: Loader, linked: str
) -> None:
    root = tmp_path / "models"
    store = Path(shutil.copytree(VERSION, root / "store" / "demo" / "1"))
    if linked == "model":
        (root / "layer").symlink_to("store/demo")
    elif linked == "version":
        (root / "layer").mkdir()
        (root / "layer" / "1").symlink_to("../store/demo/1")
    else:
        (root / "layer" / "1").mkdir(parents=True)
        for path in store.iterdir():
            (root / "layer" / "1" / path.name).symlink_to(path)
    model = loader.load(root / "layer" / "1", root)
    assert (model.name, model.version) == ("layer", "1")


def test_a_link_out_of_the_directory_of_models_is_refused(
    tmp_path: Path, loader: Loader, version: Path
) -> None:
    root = tmp_path / "others"
    root.mkdir()
    (root / "layer").symlink_to(version.parent)
    with pytest.raises(StartError) as caught:
        loader.load(root / "layer" / "1", root)
    assert str(caught.value) == (
        "model layer/1: 'layer/1' leads through a link out of the directory of models; put the "
        "files into it"
    )


def test_a_relative_directory_names_its_model_too(
    loader: Loader, version: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(version.parent)
    assert loader.load(Path("1")).name == "layer"


@pytest.mark.parametrize("relative", [True, False])
def test_a_damaged_version_stops_the_start_by_name(
    loader: Loader, version: Path, monkeypatch: pytest.MonkeyPatch, *, relative: bool
) -> None:
    (version / "weights.bin").unlink()
    monkeypatch.chdir(version.parent)
    with pytest.raises(StartError) as caught:
        loader.load(Path("1") if relative else version)
    assert str(caught.value) == "model layer/1: weights.bin is missing"


@pytest.mark.parametrize("changed", ["fused_weights.onnx", "weights.bin"])
def test_a_graph_that_is_opened_later_is_the_one_that_was_checked(
    loader: Loader, version: Path, changed: str
) -> None:
    """Else plain answers came from the old weights, and answers with weights from the new."""
    model = loader.load(version)
    content = bytearray((version / changed).read_bytes())
    content[-1] ^= 1
    (version / changed).write_bytes(content)
    with pytest.raises(ServiceError) as caught:
        model.open(FUSED_WEIGHTS)
    assert str(caught.value) == (
        f"the model changed on the disk since it was loaded ({changed} differs from its entry in "
        "manifest.json); restart the server"
    )


def test_what_changes_while_a_version_is_loaded_as_a_whole_stops_its_loading(
    loader: Loader, version: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    open_all = Model.open_all

    def open_late(model: Model) -> None:
        (version / "weights.bin").write_bytes(b"half")
        open_all(model)

    monkeypatch.setattr(Model, "open_all", open_late)
    with pytest.raises(StartError) as caught:
        loader.load(version, eager=True)
    assert str(caught.value) == (
        "model layer/1: weights.bin differs from its entry in manifest.json"
    )


def test_a_version_that_was_loaded_as_a_whole_needs_its_files_no_more(
    loader: Loader, version: Path
) -> None:
    model = loader.load(version, eager=True)
    shutil.rmtree(version)
    assert infer(model, "per_head")
    assert model.open(FUSED_WEIGHTS)


@pytest.mark.parametrize("change", ["overwritten", "truncated", "removed"])
@pytest.mark.parametrize("form", ["none", "per_head"])
def test_files_that_change_under_an_open_graph_change_no_answer(
    loader: Loader, version: Path, change: str, form: WeightsForm
) -> None:
    """onnxruntime would read the weights from the disk as long as it runs: SIGBUS, or noise."""
    model = loader.load(version, eager=True)
    before = infer(model, form)
    for path in version.iterdir():
        if change == "removed":
            path.unlink()
            continue
        size_bytes = path.stat().st_size
        os.truncate(path, 0)
        if change == "overwritten":
            path.write_bytes(b"\xff" * size_bytes)
    assert infer(model, form) == before
    assert before == infer(loader.load(VERSION), form)


def test_a_graph_in_memory_gives_the_bits_of_the_one_on_the_disk(loader: Loader) -> None:
    runtime = load_runtime()
    session = runtime.InferenceSession(
        VERSION / FUSED_BIAS.file, providers=["CPUExecutionProvider"]
    )
    query = np.arange(48, dtype=np.float32).reshape(2, 4, 6) / 48
    feeds = dict.fromkeys(("query", "key", "value"), query)
    feeds["bias"] = np.zeros((1, 1, 4, 4), np.float32)
    (output,) = session.run(["output"], feeds)
    assert infer(loader.load(VERSION)) == output.tobytes()


def test_sizes_that_the_graphs_do_not_have_are_refused(loader: Loader, version: Path) -> None:
    path = version / "manifest.json"
    content: dict[str, Any] = json.loads(path.read_text())
    content["attention"].update(d_model="9", kdim="9", vdim="9")
    path.write_text(json.dumps(content))
    with pytest.raises(StartError, match=r"^model layer/1: its graphs do not run: .*INVALID_ARGU"):
        loader.load(version)


def test_a_broken_model_does_not_decide_where_the_others_run(
    limits: Limits, version: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    probed: list[Path] = []

    def choose(_: object, path: Path, wish: str, threads: int, cuda: object) -> str:
        probed.append(path)
        return "cpu"

    monkeypatch.setattr("service.engine.loader.choose_provider", choose)
    loader = Loader("auto", 1, limits)
    assert loader.load(version).provider == "cpu"
    loader.start()
    assert probed == [VERSION / FUSED_BIAS.file]


def test_a_graph_is_not_opened_before_the_provider_is_known(loader: Loader, version: Path) -> None:
    model = loader.load(version)
    loader._runtime = None
    with pytest.raises(RuntimeError, match=r"^a graph was opened before its version was loaded$"):
        model.open(FUSED_WEIGHTS)


@pytest.mark.parametrize(
    ("intra_op_threads", "cores", "wanted"),
    [
        pytest.param(0, 4, [("narrow", 1), ("wide", 4)], id="alone with all cores"),
        pytest.param(0, 1, [("narrow", 1)], id="one core"),
        pytest.param(1, 4, [("narrow", 1)], id="one thread is wished"),
        pytest.param(3, 4, [("narrow", 3)], id="three threads are wished"),
    ],
)
def test_a_run_has_the_threads_that_the_setting_says(
    limits: Limits,
    monkeypatch: pytest.MonkeyPatch,
    intra_op_threads: int,
    cores: int,
    wanted: list[tuple[str, int]],
) -> None:
    opened: list[tuple[str, int]] = []
    monkeypatch.setattr("service.engine.loader.count_cores", lambda _: cores)
    open_session = sessions.open_session

    def note(runtime: Any, path: Path, provider: Any, threads: int, width: Any, _: Any) -> Session:
        opened.append((width, threads))
        return open_session(runtime, path, provider, 1, width)

    monkeypatch.setattr("service.engine.loader.open_session", note)
    Loader("cpu", intra_op_threads, limits).load(VERSION)
    assert opened == wanted


def test_on_cuda_no_session_is_wide(limits: Limits, monkeypatch: pytest.MonkeyPatch) -> None:
    opened: list[str] = []
    monkeypatch.setattr("service.engine.loader.count_cores", lambda _: 4)
    monkeypatch.setattr("service.engine.loader.choose_provider", lambda *_: "cuda")

    def note(path: Any, *arguments: Any) -> Session:
        opened.append(arguments[-2])
        return StandIn(FUSED)

    monkeypatch.setattr(
        "service.engine.loader.open_session", lambda _, *arguments: note(*arguments)
    )
    model = Loader("auto", 0, limits).load(VERSION)
    assert opened == ["narrow"]
    assert not model.lane.is_small(model.make_probe()), "it would wait for the GPU"


@pytest.fixture(name="wide", scope="module")
def load_wide() -> Model:
    """The demo with a wide session, whatever machine this is."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("service.engine.loader.count_cores", lambda _: 2)
        return Loader("cpu", 0, Limits(256, 2**20, 2**30, 2**30)).load(VERSION)


@given(
    st.integers(1, 5),
    st.integers(1, 90),
    st.integers(1, 90),
    st.sampled_from(["none", "per_head", "mean", "top_k"]),
    st.booleans(),
)
def test_an_answer_has_the_same_bits_alone_and_beside_others(
    wide: Model, rows: int, length: int, keys: int, form: WeightsForm, causal: bool
) -> None:
    generator = np.random.default_rng(length * 100 + keys)
    shapes = {"query": (rows, length, 6), "key": (rows, keys, 6), "value": (rows, keys, 6)}
    tensors = {n: generator.standard_normal(s).astype(np.float32) for n, s in shapes.items()}
    weights = WantedWeights(form, top_k=1 if form == "top_k" else None)
    asked = Inference(tensors, causal="bottom_right" if causal else False, weights=weights)
    prepared = wide.check(asked)
    (beside,), (alone,) = wide.lane.run([prepared], go_on), wide.lane.run_alone([prepared], go_on)
    assert beside.tensors.keys() == alone.tensors.keys()
    for name, tensor in beside.tensors.items():
        assert tensor.tobytes() == alone.tensors[name].tobytes(), name
