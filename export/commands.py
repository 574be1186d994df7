"""The commands of ``limelight-export``.

torch takes seconds to load, so it is imported only once there is work for it.
"""

import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Annotated

import typer

from export.errors import ExportError
from export.progress import show_progress
from model.contract import AttentionSpec
from model.weights import Weights

Name = Annotated[str, typer.Option(help="Name of the model: letters, digits, '_', '.' and '-'.")]
Models = Annotated[Path, typer.Option(help="Directory of models; made if absent.")]

app = typer.Typer(
    help="Turn an attention layer into a verified model directory that limelight-serve loads.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)


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
    name: Name = "attention",
    models: Models = Path("models"),
) -> None:
    """Export a layer with random weights, to try the server or to measure it."""
    try:
        spec = AttentionSpec(d_model, num_heads, kdim, vdim)
    except ValueError as error:
        raise ExportError(f"{error}; change --d-model or --num-heads") from None
    export_weights(lambda: Weights.random(spec, seed), name, models)


@app.command("checkpoint")
def export_checkpoint(
    file: Annotated[Path, typer.Argument(help="A .safetensors, .pt, .pth or .bin file.")],
    *,
    layer: Annotated[
        str | None,
        typer.Option(
            help="Prefix of the layer, e.g. encoder.layer.3; needed if there are several."
        ),
    ] = None,
    num_heads: Annotated[
        int | None, typer.Option(help="Number of heads; from config.json beside FILE unless given.")
    ] = None,
    name: Name = "attention",
    models: Models = Path("models"),
) -> None:
    """Export one attention layer of a trained network."""
    from export.checkpoints.checkpoint import read_checkpoint

    export_weights(lambda: read_checkpoint(file, layer=layer, num_heads=num_heads), name, models)


def export_weights(read: Callable[[], Weights], name: str, models: Path) -> None:
    """Read, export, and say on stdout where the model is, how exact it is, and how to serve it."""
    with show_progress() as on_step:
        weights = read()
        from export.module import export_module, read_largest_error
        from model.attention import MultiHeadAttention

        layer = MultiHeadAttention.from_weights(weights)
        directory = export_module(layer, models, name=name, on_step=on_step)
    typer.echo(
        f"{directory}: largest error {read_largest_error(directory):.1e} against float64; "
        f"serve it with: limelight-serve --models {shlex.quote(str(models))}"
    )
