"""The manifest of a model directory: which files belong to it, and whether they are whole."""

import hashlib
import json
from pathlib import Path
from typing import Final, Self

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from model.contract import (
    GRAPHS,
    MANIFEST_FILE,
    MANIFEST_FORMAT,
    WEIGHTS_FILE,
    AttentionSpec,
)

REQUIRED_FILES: Final = frozenset({*(graph.file for graph in GRAPHS), WEIGHTS_FILE})


class ManifestError(Exception):
    """The directory is not a whole model; the text says which file and why."""


class FileEntry(BaseModel):
    """Size and SHA-256 of one file."""

    model_config = ConfigDict(frozen=True, strict=True)

    bytes: int = Field(ge=0)
    sha256: str = Field(pattern="^[0-9a-f]{64}$")


class Manifest(BaseModel):
    """What ``manifest.json`` says; unknown members are left to later formats."""

    model_config = ConfigDict(frozen=True, strict=True)

    format: int
    attention: dict[str, str]
    files: dict[str, FileEntry]

    @classmethod
    def read(cls, directory: Path) -> Self:
        """Read the manifest of a version's directory.

        Raises:
            ManifestError: if it is absent, broken, of another format, or lacks a file.
        """
        try:
            text = (directory / MANIFEST_FILE).read_bytes()
        except OSError:
            raise ManifestError(f"{MANIFEST_FILE} is missing; limelight-export writes it") from None
        try:
            manifest = cls.model_validate(json.loads(text))
        except (ValueError, RecursionError) as error:
            reason = error.errors()[0]["msg"] if isinstance(error, ValidationError) else error
            raise ManifestError(f"{MANIFEST_FILE} cannot be read: {reason}") from None
        if manifest.format != MANIFEST_FORMAT:
            raise ManifestError(
                f"{MANIFEST_FILE} has format {manifest.format}, expected {MANIFEST_FORMAT}; "
                "export the model again"
            )
        for name in sorted(REQUIRED_FILES - manifest.files.keys()):
            raise ManifestError(f"{MANIFEST_FILE} does not list {name}")
        return manifest

    def read_spec(self) -> AttentionSpec:
        """The sizes of the layer.

        Raises:
            ManifestError: if they are missing or impossible.
        """
        try:
            return AttentionSpec.from_properties(self.attention)
        except ValueError as error:
            raise ManifestError(f"{MANIFEST_FILE}: {error}") from None

    def check_files(self, directory: Path) -> None:
        """Compare every file with its size and hash.

        Raises:
            ManifestError: naming the first file that differs, is missing or is not plain.
        """
        for name in self.files:
            self.check_file(directory, name)

    def check_file(self, directory: Path, name: str) -> None:
        """Compare one file with its size and hash.

        Raises:
            ManifestError: if it differs, is missing or is not plain.
        """
        entry, path = self.files[name], directory / name
        if Path(name).name != name:
            raise ManifestError(f"{MANIFEST_FILE} lists {name!r}, expected a plain file name")
        if not path.is_file():
            raise ManifestError(f"{name} is missing")
        if path.stat().st_size != entry.bytes or hash_file(path) != entry.sha256:
            raise ManifestError(f"{name} differs from its entry in {MANIFEST_FILE}")


def hash_file(path: Path) -> str:
    """SHA-256 in hexadecimal."""
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()
