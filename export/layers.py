"""Layers of a checkpoint become models, together or not at all."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

from export.checkpoints.checkpoint import Checkpoint
from export.checkpoints.detect import Found
from export.example import Example, write_example
from export.marks import sketch_layer
from export.record import Source
from export.repository import NewVersion, write_versions
from export.template import Template, trace_template
from export.version import fill_version
from model.contract import AttentionSpec
from model.weights import Weights

OnStep = Callable[[str], None]
FindExample = Callable[[AttentionSpec], Example | None]


@dataclass(frozen=True, slots=True)
class Templates:
    """The graphs of each size, traced when they are first wanted.

    Attributes:
        on_step: called after each graph that is traced.
        traced: those that were.
    """

    on_step: OnStep
    traced: dict[AttentionSpec, Template] = field(default_factory=dict)

    def get(self, spec: AttentionSpec) -> Template:
        """The graphs of layers of these sizes."""
        if spec not in self.traced:
            self.traced[spec] = trace_template(sketch_layer(spec), self.on_step)
        return self.traced[spec]


def name_models(checkpoint: Checkpoint, chosen: Sequence[Found], name: str) -> list[str]:
    """``<name>.layer03`` for the layer that `inspect` shows with number 3."""
    numbers = checkpoint.number_layers()
    digits = max(2, len(str(len(numbers) - 1)))
    return [f"{name}.layer{numbers[found]:0{digits}}" for found in chosen]


def export_layers(
    checkpoint: Checkpoint,
    layers: Sequence[tuple[str, Found, AttentionSpec]],
    models: Path,
    on_step: OnStep,
    find_example: FindExample = lambda _: None,
) -> list[Path]:
    """Export layers, each under a name of its own; one that fails leaves none behind.

    The numbers of one layer at a time are in memory, and the graphs are traced once for each
    size.

    Args:
        checkpoint: open.
        layers: name of the model, layer, and what `Checkpoint.look_at` found, with the precision
            that is wanted.
        models: the repository; made if absent.
        on_step: called after each of `progress.count_steps` steps with what was done.
        find_example: what the page shows first of a layer, where there is anything.

    Returns:
        The directories of the versions.

    Raises:
        CheckpointError: if a tensor holds NaN or cannot be read.
        RepositoryError: if a name is unfit, or a model exists with other sizes.
        VerificationError: if a graph misses the tolerance.
    """
    templates = Templates(on_step)

    def fill(found: Found, spec: AttentionSpec, directory: Path) -> None:
        read = partial(read_weights, checkpoint, found, spec)
        fill_version(directory, templates.get(spec), read, on_step)
        example = find_example(spec)
        if example is not None:
            write_example(directory, example)

    versions = [NewVersion(name, spec, partial(fill, found, spec)) for name, found, spec in layers]
    return write_versions(models, versions)


def read_weights(
    checkpoint: Checkpoint, found: Found, spec: AttentionSpec
) -> tuple[Weights, Source]:
    """The weights of a layer, to be exported as `spec` says, and where they come from."""
    weights, source = checkpoint.read(found)
    return replace(weights, spec=spec), source
