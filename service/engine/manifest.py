"""The manifest of a model directory: which files belong to it, and whether they are whole."""

import hashlib
import json
import os
import re
from io import BufferedReader
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
from service.engine.files import explain, open_regular, read_bounded
from service.engine.model_fault import ModelFaultError, UnreadableError

REQUIRED_FILES: Final = frozenset({*(graph.file for graph in GRAPHS), WEIGHTS_FILE})
MAX_MANIFEST_BYTES: Final = 2**20
PLAIN_NAME: Final = re.compile(r"(?!\.\.?\Z)[^/\\\0]+")


class ManifestError(ModelFaultError):
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
            UnreadableError: if it cannot be read.
        """
        try:
            text = read_bounded(directory / MANIFEST_FILE, MAX_MANIFEST_BYTES)
        except FileNotFoundError:
            raise ManifestError(f"{MANIFEST_FILE} is missing; limelight-export writes it") from None
        except OSError as error:
            raise UnreadableError(f"{MANIFEST_FILE} cannot be read: {explain(error)}") from None
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
            raise ManifestError(f"{MANIFEST_FILE} does not list {name}; export the model again")
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
            UnreadableError: if one cannot be read.
        """
        for name in self.files:
            self.check_file(directory, name)

    def check_file(self, directory: Path, name: str) -> None:
        """Compare one file with its size and hash.

        Raises:
            ManifestError: if it differs, is missing or is not plain.
            UnreadableError: if it cannot be read.
        """
        with self._open(directory, name) as stream:
            try:
                digest = hashlib.file_digest(stream, "sha256")
            except OSError as error:
                raise UnreadableError(f"{name} cannot be read: {explain(error)}") from None
        self._check_hash(name, digest.hexdigest())

    def read_file(self, directory: Path, name: str) -> bytes:
        """The content of one file, which has the size and hash that are listed.

        Raises:
            ManifestError: if it differs, is missing or is not plain.
            UnreadableError: if it cannot be read.
        """
        with self._open(directory, name) as stream:
            try:
                content = stream.read()
            except OSError as error:
                raise UnreadableError(f"{name} cannot be read: {explain(error)}") from None
        self._check_hash(name, hashlib.sha256(content).hexdigest())
        return content

    def _open(self, directory: Path, name: str) -> BufferedReader:
        if not PLAIN_NAME.fullmatch(name):
            raise ManifestError(f"{MANIFEST_FILE} lists {name!r}, expected a plain file name")
        try:
            stream = open_regular(directory / name)
        except FileNotFoundError:
            raise ManifestError(f"{name} is missing") from None
        except OSError as error:
            raise UnreadableError(f"{name} cannot be read: {explain(error)}") from None
        # Compared before the content is: that of a file half copied need not be read.
        if os.fstat(stream.fileno()).st_size != self.files[name].bytes:
            stream.close()
            raise differs(name)
        return stream

    def _check_hash(self, name: str, sha256: str) -> None:
        if sha256 != self.files[name].sha256:
            raise differs(name)


def differs(name: str) -> ManifestError:
    """The error for a file that is another than the one that was listed."""
    return ManifestError(f"{name} differs from its entry in {MANIFEST_FILE}")
