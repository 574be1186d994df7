"""The commands of ``limelight-export``.

torch takes seconds to load, so it is imported only once there is work for it.
"""

import json
import shlex
from collections.abc import Sequence
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path
from typing import Annotated, Literal

import typer

from export.errors import ExportError
from export.example import draw_example
from export.progress import count_steps, show_progress
from model.contract import AttentionSpec, Causal, Precision

Name = Annotated[str, typer.Option(help="Name of the model: letters, digits, '_', '.' and '-'.")]
Models = Annotated[Path, typer.Option(help="Directory of models; made if absent.")]
File = Annotated[
    Path,
    typer.Argument(
        help="A .safetensors, .safetensors.index.json, .pt, .pth or .bin file, or a directory "
        "with one, such as a snapshot in the Hugging Face cache."
    ),
]
NumHeads = Annotated[
    int | None, typer.Option(help="Number of heads; from config.json beside FILE unless given.")
]

PrecisionOption = Annotated[
    Precision,
    typer.Option(
        "--precision", help="fp16 halves the weights and what is multiplied by them, for CUDA."
    ),
]

app = typer.Typer(
    help="Turn attention layers into verified model directories that limelight-serve loads.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)


@app.command("inspect")
def inspect_checkpoint(
    file: File,
    *,
    num_heads: NumHeads = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """List the attention layers of a checkpoint, and why one cannot be exported."""
    from export.checkpoints.checkpoint import open_checkpoint
    from export.checkpoints.inspection import inspect_layers

    with open_checkpoint(file, num_heads) as checkpoint:
        layers, path = inspect_layers(checkpoint), checkpoint.path
    if as_json:
        content = {"file": str(path), "layers": [asdict(layer) for layer in layers]}
        typer.echo(json.dumps(content, indent=2))
        return
    from export.tables import print_layers

    if not layers:
        raise ExportError(f"'{path}' holds no attention layer of a known family")
    print_layers(layers)


@app.command("checkpoint")
def export_checkpoint(
    file: File,
    *,
    layer: Annotated[
        str | None,
        typer.Option(
            help="Prefix of the layer, e.g. encoder.layer.3; a pattern, e.g. 'encoder.layer.*'; "
            "or all. Needed if there are several."
        ),
    ] = None,
    num_heads: NumHeads = None,
    causal: Annotated[
        bool | None,
        typer.Option(
            "--causal/--no-causal",
            help="Whether the models hide later keys where a request does not say; as the family "
            "does unless given: GPT-2 hides them.",
        ),
    ] = None,
    precision: PrecisionOption = "fp32",
    name: Name = "attention",
    models: Models = Path("models"),
) -> None:
    """Export attention layers of a trained network; of several, each is NAME.layer00 and so on."""
    from export.checkpoints.checkpoint import open_checkpoint
    from export.checkpoints.choice import choose_layers, is_pattern

    # A query that comes with the keys of its past is the last of them.
    form: Causal | None = "bottom_right" if causal else causal
    with open_checkpoint(file, num_heads, form) as checkpoint:
        chosen = choose_layers(checkpoint.tensors, layer)
        specs = [replace(checkpoint.look_at(found)[0], precision=precision) for found in chosen]
        with show_progress(count_steps(len(specs), len(set(specs)))) as on_step:
            from export.layers import export_layers, name_models
            from export.text_example import read_text_example

            names = name_models(checkpoint, chosen, name) if is_pattern(layer) else [name]
            layers = list(zip(names, chosen, specs, strict=True))
            find_example = partial(read_text_example, checkpoint)
            directories = export_layers(checkpoint, layers, models, on_step, find_example)
    report_success(directories, models)


@app.command("random")
def export_random(
    *,
    d_model: Annotated[int, typer.Option(help="Width of query and output tokens.")],
    num_heads: Annotated[int, typer.Option(help="Number of heads; divides --d-model.")],
    kdim: Annotated[
        int | None, typer.Option(help="Width of key tokens; --d-model unless given.", min=1)
    ] = None,
    vdim: Annotated[
        int | None, typer.Option(help="Width of value tokens; --d-model unless given.", min=1)
    ] = None,
    seed: Annotated[int, typer.Option(help="The same seed gives the same weights.", min=0)] = 0,
    precision: PrecisionOption = "fp32",
    name: Name = "attention",
    models: Models = Path("models"),
) -> None:
    """Export a layer with random weights, to try the server or to measure it."""
    try:
        spec = AttentionSpec(d_model, num_heads, kdim, vdim, precision=precision)
    except ValueError as error:
        raise ExportError(f"{error}; change --d-model or --num-heads") from None
    with show_progress(count_steps()) as on_step:
        from export.module import export_module
        from model.attention import MultiHeadAttention
        from model.weights import Weights

        layer = MultiHeadAttention.from_weights(Weights.random(spec, seed))
        example = draw_example(layer.spec)
        directory = export_module(
            layer, models, name=name, on_step=on_step, example=example, precision=precision
        )
    report_success([directory], models)


@app.command("verify")
def verify_directory(
    directory: Annotated[
        Path, typer.Argument(help="Directory of a version, of a model, or of models.")
    ],
    *,
    provider: Annotated[
        Literal["cpu", "cuda"], typer.Option(help="Where to run the graphs.")
    ] = "cpu",
) -> None:
    """Compare exported models with their manifests and with float64 again."""
    from export.tables import print_errors
    from export.version import find_versions, verify_version

    reports = []
    for version in find_versions(directory):
        reports.append(verify_version(version, provider))
        typer.echo(f"{version}: as exported, and right on {provider}")
    print_errors(reports)


def report_success(directories: Sequence[Path], models: Path) -> None:
    """Say on stdout where the models are, how exact they are, and how to serve them."""
    from export.record import read_report
    from export.tables import print_errors
    from export.verify import largest_error

    reports = [read_report(directory) for directory in directories]
    print_errors(reports)
    for directory, report in zip(directories, reports, strict=True):
        typer.echo(f"{directory}: largest error {largest_error(report):.1e} against float64")
    typer.echo(f"serve it with: limelight-serve --models {shlex.quote(str(models))}")
