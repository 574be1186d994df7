"""The files of one version: all of them there, each as the manifest lists it."""

import hashlib
from dataclasses import dataclass
from pathlib import Path

from model.contract import CONFIG_FILE, GRAPHS, MANIFEST_FILE, AttentionSpec
from service.engine.directories import resolve
from service.engine.external_data import OnnxFileError, find_locations
from service.engine.files import explain
from service.engine.manifest import PLAIN_NAME, Manifest
from service.engine.model_config import ModelConfig, read_model_config
from service.engine.model_fault import ModelFaultError, UnreadableError


@dataclass(frozen=True, slots=True)
class VersionFiles:
    """A version whose files were whole when they were looked at.

    Attributes:
        directory: as it was given; it and its parent name the version and the model.
        place: the same without links.
        manifest: lists the files.
        spec: sizes of the layer.
        config: of the model.
        digest: the same for the same content.
    """

    directory: Path
    place: Path
    manifest: Manifest
    spec: AttentionSpec
    config: ModelConfig
    digest: str

    @property
    def label(self) -> str:
        """Name and version, for messages."""
        return f"model {self.directory.parent.name}/{self.directory.name}"

    def read_graph(self, name: str) -> tuple[bytes, dict[str, bytes]]:
        """The content of an ONNX file, and of the files with its tensors by their names.

        Raises:
            ModelFaultError: if one differs from the manifest, or lies elsewhere.
        """
        content = self.manifest.read_file(self.place, name)
        files = sorted(find_external(self.manifest, name, content))
        return content, {file: self.manifest.read_file(self.place, file) for file in files}


def check_version(directory: Path, root: Path) -> VersionFiles:
    """Look at every file of a version.

    Args:
        directory: of the version; its name is the version, that of its parent the model.
        root: the directory of models, which no link may leave.

    Raises:
        ModelFaultError: if they are not a whole model; the text says which file and why.
    """
    try:
        return read_version(directory, root)
    except OSError as error:
        raise UnreadableError(f"its directory cannot be read: {explain(error)}") from None


def read_version(directory: Path, root: Path) -> VersionFiles:
    """Look at every file of a version.

    Raises:
        ModelFaultError: if they are not a whole model; the text says which file and why.
        OSError: if the directory cannot be read.
    """
    place = resolve(root, directory)
    check_link(root, directory / MANIFEST_FILE)
    manifest = Manifest.read(place)
    spec = manifest.read_spec()
    for name in manifest.files:
        check_link(root, directory / name)
        manifest.check_file(place, name)
    for graph in GRAPHS:
        find_external(manifest, graph.file, manifest.read_file(place, graph.file))
    check_link(root, directory.parent / CONFIG_FILE)
    config = read_model_config(directory.parent)
    described = f"{manifest.model_dump_json()}\n{config}"
    digest = hashlib.sha256(described.encode()).hexdigest()
    return VersionFiles(directory, place, manifest, spec, config, digest)


def check_link(root: Path, path: Path) -> None:
    """Refuse a file behind a link that leads out of `root`; an absent one is seen elsewhere.

    Raises:
        LinkError: if it does.
    """
    try:
        resolve(root, path)
    except (FileNotFoundError, ValueError):
        return


def find_external(manifest: Manifest, graph: str, content: bytes) -> set[str]:
    """Names of the files that hold tensors of a graph.

    onnxruntime would read whatever path the graph names, from wherever the server runs.

    Raises:
        ModelFaultError: if it is no graph, or one of the files is not listed beside it.
    """
    try:
        locations = find_locations(content)
    except OnnxFileError as error:
        raise ModelFaultError(f"{graph} is no ONNX file: {error}") from None
    for location in sorted(locations):
        if not PLAIN_NAME.fullmatch(location):
            raise ModelFaultError(
                f"{graph} keeps tensors in {location!a}, expected a plain file beside it"
            )
        if location not in manifest.files:
            raise ModelFaultError(
                f"{graph} keeps tensors in {location!a}, which {MANIFEST_FILE} does not list"
            )
    return locations
