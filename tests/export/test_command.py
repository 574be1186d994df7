"""``limelight-export``: one line of success, one line of failure, quick help."""

import json
import os
import pty
import re
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import save_file
from torch import nn

from export.__main__ import main
from export.runtime import open_graph
from model.attention import MultiHeadAttention
from model.contract import FUSED_WEIGHTS

Command = Callable[..., tuple[int, str, str]]


@pytest.fixture
def command(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> Command:
    """Run the command in this process; exit code, stdout and stderr."""
    monkeypatch.chdir(tmp_path)

    def run(*arguments: str) -> tuple[int, str, str]:
        monkeypatch.setattr("sys.argv", ["limelight-export", *arguments])
        with pytest.raises(SystemExit) as caught:
            main()
        code = caught.value.code
        if isinstance(code, str):  # what the interpreter does with it
            sys.stderr.write(f"{code}\n")
            code = 1
        out, err = capsys.readouterr()
        return code or 0, out, err

    return run


def test_help_comes_without_torch() -> None:
    code = "import sys, export.commands; sys.exit(bool({'torch', 'onnx'} & set(sys.modules)))"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--help"], ["inspect", "checkpoint", "random", "verify"]),
        (["inspect", "--help"], ["FILE", "--num-heads", "--json"]),
        (["verify", "--help"], ["directory", "--provider"]),
        (
            ["random", "--help"],
            ["--d-model", "--num-heads", "--kdim", "--vdim", "--seed", "--precision"],
        ),
        (
            ["checkpoint", "--help"],
            ["FILE", "--layer", "--num-heads", "--causal", "--precision", "--name", "--models"],
        ),
    ],
)
def test_help_names_every_option(command: Command, arguments: list[str], words: list[str]) -> None:
    code, out, _ = command(*arguments)
    assert code == 0
    assert all(word in out for word in words)


def run_at_terminal(*arguments: str) -> tuple[int, str, bytes]:
    """Run the command with its stderr a terminal; exit code, stdout and stderr."""
    terminal, stderr = pty.openpty()
    command = [sys.executable, "-m", "export", *arguments]
    seen = b""
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=stderr, text=True) as process:
        os.close(stderr)
        with suppress(OSError):  # what Linux says at the end of a terminal
            while part := os.read(terminal, 4096):
                seen += part
        os.close(terminal)
        out, _ = process.communicate()
    return process.returncode, out, seen


def test_a_checkpoint_is_exported_and_served_as_its_library_computes_it(tmp_path: Path) -> None:
    torch.manual_seed(1)
    network = nn.Sequential(nn.Linear(2, 3), nn.MultiheadAttention(12, 4, batch_first=True)).eval()
    checkpoint, models = tmp_path / "network.pt", tmp_path / "my models"
    torch.save(network.state_dict(), checkpoint)
    options = ("--num-heads", "4", "--name", "mha", "--models")
    code, out, seen = run_at_terminal("checkpoint", str(checkpoint), *options, str(models))
    assert code == 0
    assert re.fullmatch(
        rf"(?s) +\n  hiding .+{models}/mha/1: largest error \d\.\de-0[78] against float64\n"
        rf"serve it with: limelight-serve --models '{models}'\n",
        out,
    )
    assert b"traced fused_bias" in seen
    query, key = torch.randn(3, 5, 12), torch.randn(3, 6, 12)
    feeds = {"query": query.numpy(), "key": key.numpy(), "value": -key.numpy()}
    feeds["bias"] = np.zeros((1, 1, 5, 6), np.float32)
    run = open_graph(models / "mha" / "1" / FUSED_WEIGHTS.file)
    wanted = network[1](query, key, -key, average_attn_weights=False)
    for answer, expected in zip(run(list(FUSED_WEIGHTS.outputs), feeds), wanted, strict=True):
        np.testing.assert_allclose(answer, expected.detach().numpy(), atol=1e-6)


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        pytest.param(
            "random --d-model 12 --num-heads 5",
            "d_model (12) must be a multiple of num_heads (5); change --d-model or --num-heads",
            id="heads that do not divide",
        ),
        pytest.param(
            "random --d-model -12 --num-heads 3",
            "d_model is -12, expected a positive number; change --d-model or --num-heads",
            id="a negative size",
        ),
        pytest.param(
            "random --d-model 12 --num-heads 3 --name a/b",
            "model name is 'a/b', expected letters, digits, '_', '.' and '-', not starting with "
            "'.' or '-', and not 'stats'",
            id="an unfit name",
        ),
        pytest.param(
            "random --d-model 12 --num-heads 3 --models /dev/null/models",
            "'/dev/null/models': Not a directory",
            id="a place that cannot be written to",
        ),
        pytest.param(
            "random --d-model 100000000 --num-heads 2",
            "not enough memory for a layer of this size",
            id="too large",
        ),
        pytest.param(
            "checkpoint absent.pt",
            "checkpoint 'absent.pt' does not exist, expected a .safetensors, "
            ".safetensors.index.json, .pt, .pth or .bin file",
            id="no such file",
        ),
    ],
)
def test_a_fault_ends_in_one_line_and_leaves_nothing_behind(
    arguments: str, line: str, command: Command, tmp_path: Path
) -> None:
    assert command(*arguments.split()) == (1, "", f"limelight-export: {line}\n")
    assert not list(tmp_path.iterdir())


def test_a_file_in_the_place_of_the_models_is_named_and_left_alone(
    command: Command, tmp_path: Path
) -> None:
    (tmp_path / "README.md").write_text("text")
    arguments = "random --d-model 12 --num-heads 3 --models README.md"
    assert command(*arguments.split()) == (
        1,
        "",
        "limelight-export: 'README.md' is not a directory, expected the directory of models; "
        "choose another --models or remove it\n",
    )
    assert (tmp_path / "README.md").read_text() == "text"


def test_a_damaged_checkpoint_leaves_no_directory_of_models(
    command: Command, tmp_path: Path
) -> None:
    (tmp_path / "x.pt").write_bytes(b"text")
    assert command("checkpoint", "x.pt") == (
        1,
        "",
        "limelight-export: checkpoint 'x.pt' is damaged or cut off (not what torch.save writes); "
        "copy or download it again\n",
    )
    assert [path.name for path in tmp_path.iterdir()] == ["x.pt"]


def test_weights_beyond_float32_are_not_served(command: Command, tmp_path: Path) -> None:
    torch.manual_seed(1)
    state = MultiHeadAttention(12, 3).state_dict()
    save_file({name: tensor * 1e20 for name, tensor in state.items()}, "x.safetensors")
    code, out, err = command("checkpoint", "x.safetensors", "--num-heads", "3")
    assert (code, out) == (1, "")
    assert re.fullmatch(
        r"limelight-export: graph 'model': output differs from float64 by .+ with hiding "
        r"'none' at batch size 1, query length 1, key length 1, expected at most 1e-05; .+\n",
        err,
    )
    assert [path.name for path in tmp_path.iterdir()] == ["x.safetensors"]


@pytest.mark.parametrize(
    "arguments", ["random --d-model 12 --num-heads 3", "checkpoint network --layer layers.1"]
)
def test_every_export_may_be_in_float16_and_says_so(
    arguments: str, command: Command, sharded: Path, tmp_path: Path
) -> None:
    code, out, _ = command(*arguments.split(), "--precision", "fp16", "--name", "half")
    assert code == 0
    assert re.search(r"models/half/1: largest error [1-9]\.\de-0[34] against float64", out)
    manifest = json.loads((tmp_path / "models/half/1/manifest.json").read_text())
    assert manifest["attention"]["precision"] == "fp16"
    assert command("verify", "models")[0] == 0


def test_every_layer_of_a_checkpoint_is_exported_by_one_command(
    command: Command, sharded: Path, tmp_path: Path
) -> None:
    code, out, err = command("checkpoint", str(sharded), "--layer", "layers.[02]", "--name", "net")
    assert (code, err) == (0, "")
    assert re.search(r"\n  none +\d\.\de-0\d +\d\.\de-0\d +\d\.\de-0\d +\d\.\de-0\d", out)
    assert re.search(
        r"\nmodels/net.layer01/1: largest error \d\.\de-0[78] against float64\n"
        r"models/net.layer03/1: largest error \d\.\de-0[78] against float64\n"
        r"serve it with: limelight-serve --models models\n\Z",
        out,
    )
    code, again, err = command("verify", "models")
    assert (code, err) == (0, "")
    assert again.startswith(
        "models/net.layer01/1: as exported, and right on cpu\n"
        "models/net.layer03/1: as exported, and right on cpu\n"
    )
    assert out[: out.index("models/")] in again
    (tmp_path / "models" / "net.layer03" / "1" / "fused.onnx").unlink()
    assert command("verify", "models")[::2] == (
        1,
        "limelight-export: 'models/net.layer03/1': fused.onnx is missing; export the layer again\n",
    )


def test_layers_are_listed_in_a_table_or_in_json(command: Command, sharded: Path) -> None:
    code, table, err = command("inspect", str(sharded))
    assert (code, err) == (0, "")
    assert re.search(r"\n  3 +layers.2 +MultiHeadAttention +12 +3 +624 +float32 +yes +\n", table)
    code, text, err = command("inspect", str(sharded), "--json")
    content = json.loads(text)
    assert content["file"] == str(sharded / "model.safetensors.index.json")
    assert [layer["name"] for layer in content["layers"]] == [
        "cross",
        "layers.0",
        "layers.1",
        "layers.2",
    ]
    assert content["layers"][0]["kdim"] == 8


def test_a_file_without_attention_is_refused_by_inspect(command: Command) -> None:
    save_file({"head.weight": torch.zeros(2, 3)}, "x.safetensors")
    assert command("inspect", "x.safetensors") == (
        1,
        "",
        "limelight-export: 'x.safetensors' holds no attention layer of a known family\n",
    )


def test_a_layer_of_safetensors_is_listed_without_torch(sharded: Path) -> None:
    code = (
        "import sys; from export.__main__ import main; sys.argv[1:] = ['inspect', sys.argv[1]]\n"
        "try: main()\nexcept SystemExit as end: sys.exit(end.code or 'torch' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code, str(sharded)], check=False)
    assert done.returncode == 0


def test_an_option_that_is_missing_is_a_fault_of_usage(command: Command) -> None:
    code, _, err = command("random", "--d-model", "12")
    assert code == 2
    assert "Missing option '--num-heads'" in err


def test_a_missing_package_is_named_with_what_brings_it(
    command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in [n for n in sys.modules if n == "export.commands" or n.startswith("typer")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "typer", None)
    assert command("random") == (
        1,
        "",
        "limelight-export: the module 'typer' is missing; install the extra 'export' "
        "(make export-env)\n",
    )
