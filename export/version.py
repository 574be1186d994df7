"""The files of one version of a model: written and verified together, and verified again later."""

import json
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

from export.cases import ExpectedCases
from export.errors import RepositoryError, VerificationError
from export.onnx_file import read_weights
from export.record import Source, make_record
from export.repository import hash_file, write_json, write_manifest
from export.runtime import Provider
from export.template import Template
from export.verify import Report, verify_graphs
from model.contract import (
    EXAMPLE_FILE,
    MANIFEST_FILE,
    VERIFICATION_FILE,
    WEIGHTS_FILE,
    AttentionSpec,
    GraphSpec,
)
from model.weights import Weights


def fill_version(
    directory: Path,
    template: Template,
    read: Callable[[], tuple[Weights, Source | None]],
    on_step: Callable[[str], None],
) -> None:
    """Write graphs, weights, record and manifest into an empty directory.

    Args:
        directory: for the files.
        template: the graphs.
        read: gives the weights and where they come from; they are held no longer than needed.
        on_step: called after each graph that is verified.

    Raises:
        VerificationError: if a graph misses the tolerance.
    """

    def on_graph(graph: GraphSpec) -> None:
        on_step(f"verified {graph.name}")

    weights, source = read()
    template.write(weights, directory)
    with closing(ExpectedCases(weights)) as cases:
        del weights  # before a graph is opened, which has a copy of them
        report = verify_graphs(directory, cases, on_graph=on_graph)
    write_json(directory / VERIFICATION_FILE, make_record(template.spec, report, source))
    write_manifest(directory, template.spec)


def find_versions(directory: Path) -> list[Path]:
    """The versions in a version's directory, in a model's, or in a repository.

    Raises:
        RepositoryError: if there is none.
    """
    for depth in ("", "*/", "*/*/"):
        found = [path.parent for path in directory.glob(f"{depth}{MANIFEST_FILE}")]
        # What an export is writing just now is in a directory whose name begins with a dot.
        whole = [path for path in found if not is_hidden(path.relative_to(directory))]
        if whole:
            return sorted(whole)
    raise RepositoryError(
        f"'{directory}' holds no {MANIFEST_FILE}, expected the directory of a version, of a model "
        "or of models that limelight-export made"
    )


def is_hidden(path: Path) -> bool:
    """Whether a part of a relative path begins with a dot."""
    return any(part.startswith(".") for part in path.parts)


def verify_version(directory: Path, provider: Provider) -> Report:
    """Compare a version's files with its manifest, and its graphs with float64.

    Raises:
        RepositoryError: if its manifest cannot be read.
        VerificationError: if a file differs from the manifest, or a graph from the formula.
        ExportError: if onnxruntime cannot run it on `provider`.
    """
    manifest = read_manifest(directory)
    check_files(directory, manifest["files"])
    try:
        spec = AttentionSpec.from_properties(manifest["attention"])
        cases = ExpectedCases(read_weights(directory / WEIGHTS_FILE, spec))
    except ValueError as error:
        raise VerificationError(f"'{directory}': {error}; export the layer again") from None
    with closing(cases):
        return verify_graphs(directory, cases, provider)


def read_manifest(directory: Path) -> dict[str, Any]:
    """The manifest of a version.

    Raises:
        RepositoryError: if it is not what `repository.write_manifest` writes.
    """
    path = directory / MANIFEST_FILE
    try:
        manifest = json.loads(path.read_bytes())
        parts = [manifest["files"], manifest["attention"], *manifest["files"].values()]
    except (ValueError, RecursionError, LookupError, TypeError, AttributeError):
        parts = [None]
    if not all(isinstance(part, dict) for part in parts):
        raise RepositoryError(f"'{path}' is not a manifest; export the layer again")
    return dict(manifest)


def check_files(directory: Path, files: dict[str, dict[str, Any]]) -> None:
    """Compare the files with what the manifest says of them.

    Raises:
        VerificationError: naming the file that is missing, was added, or differs.
    """
    # An example is no part of the model, and may be put there or changed by anyone.
    there = {path.name for path in directory.iterdir()} - {MANIFEST_FILE, EXAMPLE_FILE}
    for name in sorted(files.keys() ^ there):
        fault = "is missing" if name in files else f"is not in {MANIFEST_FILE}"
        raise VerificationError(f"'{directory}': {name} {fault}; export the layer again")
    for name, entry in files.items():
        found = hash_file(directory / name)
        if found != entry.get("sha256"):
            raise VerificationError(
                f"'{directory}': {name} has SHA-256 {found}, expected {entry.get('sha256')} as in "
                f"{MANIFEST_FILE}; export the layer again"
            )
