"""The models that are served, found in a directory and loaded from it."""

import re
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Final, Literal

from model.contract import FUSED_BIAS, MANIFEST_FILE, MODEL_NAME, WEIGHTS_FILE
from service.engine.manifest import Manifest, ManifestError
from service.engine.model import Model
from service.engine.session import (
    Provider,
    Session,
    choose_provider,
    load_runtime,
    open_session,
)
from service.engine.sizes import Limits
from service.errors import NotFoundError, ServiceError, StartError

VERSION: Final = re.compile(r"[1-9][0-9]{0,8}")
DEMO: Final = Path(__file__).parents[1] / "demo"


class Repository:
    """Models by name and version; the highest version answers where none is named."""

    def __init__(self, default_model: str | None = None) -> None:
        self._models: dict[str, dict[str, Model]] = {}
        self._default_model = default_model

    def add(self, model: Model) -> None:
        """Serve a model from now on."""
        self._models.setdefault(model.name, {})[model.version] = model

    @property
    def names(self) -> list[str]:
        """Names of the models, sorted."""
        return sorted(self._models)

    def versions(self, name: str) -> list[str]:
        """Versions of a model, ascending.

        Raises:
            NotFoundError: if there is no such model.
        """
        return sorted(self._find(name), key=int)

    def get(self, name: str, version: str | None = None) -> Model:
        """One version of a model; the highest unless `version` is given.

        Raises:
            NotFoundError: naming what was asked for and what there is.
        """
        versions = self._find(name)
        chosen = max(versions, key=int) if version is None else version
        if chosen not in versions:
            raise NotFoundError(
                f"model '{name}' has no version '{chosen}', expected one of "
                f"{', '.join(self.versions(name))}"
            )
        return versions[chosen]

    def get_default(self) -> Model:
        """The model of requests that name none.

        Raises:
            NotFoundError: if several models are served and the settings name none.
        """
        if self._default_model is not None:
            return self.get(self._default_model)
        if len(self._models) == 1:
            return self.get(self.names[0])
        raise NotFoundError(
            f"no model is named and {len(self._models)} are served: add ?model=NAME with one of "
            f"{', '.join(self.names)}, or set LIMELIGHT_DEFAULT_MODEL"
        )

    def _find(self, name: str) -> dict[str, Model]:
        if name not in self._models:
            served = ", ".join(self.names) or "none"
            raise NotFoundError(f"model '{name}' is not served here; served: {served}")
        return self._models[name]


def find_versions(models: Path | None, *, demo: bool) -> list[Path]:
    """The version directories to serve.

    Args:
        models: a repository, or the directory of one model; the embedded demo where absent.
        demo: whether the demo stands in for a repository without models.

    Raises:
        StartError: if there is no model.
    """
    if models is None:
        return list_versions(DEMO)
    if models.is_dir():
        versions = list_versions(models)
        versions = versions or [path for path in list_dirs(models) if is_version(path)]
        if versions:
            return versions
    if demo:
        return list_versions(DEMO)
    raise StartError(
        f"LIMELIGHT_MODELS is {models}, where no model was found, expected "
        f"<name>/<version>/{MANIFEST_FILE}, as limelight-export writes it"
    )


def list_versions(repository: Path) -> list[Path]:
    """Version directories below the model directories of a repository."""
    models = [path for path in list_dirs(repository) if MODEL_NAME.fullmatch(path.name)]
    return [path for model in models for path in list_dirs(model) if is_version(path)]


def list_dirs(path: Path) -> list[Path]:
    """Directories in a directory, sorted; names with a dot first are left out."""
    return sorted(p for p in path.iterdir() if p.is_dir() and not p.name.startswith("."))


def is_version(path: Path) -> bool:
    """Whether a directory is a version of a model."""
    return bool(VERSION.fullmatch(path.name)) and (path / MANIFEST_FILE).is_file()


class Loader:
    """Loads versions; onnxruntime is imported, and the provider chosen, with the first one."""

    def __init__(
        self,
        wish: Literal["auto", "cpu", "cuda"],
        intra_op_threads: int,
        limits: Limits,
    ) -> None:
        self._wish = wish
        self._intra_op_threads = intra_op_threads
        self._limits = limits
        self._runtime: ModuleType | None = None
        self._provider: Provider | None = None

    def load(self, directory: Path) -> Model:
        """Check, open and warm up one version.

        Raises:
            StartError: if the files are not a whole model, or the provider does not run.
        """
        # Its parent names the model, which "." would not.
        directory = directory.absolute()
        try:
            manifest = Manifest.read(directory)
            spec = manifest.read_spec()
            manifest.check_files(directory)
        except ManifestError as error:
            raise StartError(f"model {directory.parent.name}/{directory.name}: {error}") from None
        provider = self._choose(directory)
        model = Model(directory, spec, provider, partial(self._open, manifest), self._limits)
        model.warm_up()
        return model

    def _choose(self, directory: Path) -> Provider:
        if self._provider is None:
            self._runtime = load_runtime()
            graph = directory / FUSED_BIAS.file
            self._provider = choose_provider(
                self._runtime, graph, self._wish, self._intra_op_threads
            )
        return self._provider

    def _open(self, manifest: Manifest, path: Path) -> Session:
        if self._runtime is None or self._provider is None:
            raise RuntimeError("a graph was opened before its version was loaded")
        # Some graphs are opened long after the version was checked: other weights by then would
        # answer requests for weights with another layer.
        try:
            for name in (path.name, WEIGHTS_FILE):
                manifest.check_file(path.parent, name)
        except ManifestError as error:
            raise ServiceError(
                f"the model changed on the disk since it was loaded ({error}); restart the server"
            ) from None
        return open_session(self._runtime, path, self._provider, self._intra_op_threads)
