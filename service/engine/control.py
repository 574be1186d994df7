"""Models loaded and unloaded while the server runs, one change after the other."""

import logging
import threading
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path
from typing import Final

from model.contract import CONFIG_FILE, MANIFEST_FILE
from service.engine.complaints import Complaints
from service.engine.directories import DEMO, Survey, survey_models
from service.engine.files import explain
from service.engine.memory import free_memory
from service.engine.model import Model
from service.engine.model_fault import ModelFaultError
from service.engine.model_index import IndexEntry, Key, ModelIndex, sort_entries
from service.engine.renewal import Renewal
from service.engine.repository import Repository
from service.errors import InvalidRequestError, NotFoundError, UnavailableError

DIRECTORY: Final = "the directory of models"
KEPT: Final = "its directory is gone; it serves until another version of the model does"
NOT_LOADED: Final = "not loaded"
UNLOADED: Final = "unloaded"

log = logging.getLogger("limelight")


class Control:
    """Changes what a repository serves, by what a directory of models holds.

    Methods that change anything belong to one thread at a time; requests go on meanwhile.

    Args:
        models: the directory; that of the embedded demo where absent.
        demo: whether the demo stands in while the directory holds no model.
        renewal: loads versions.
        repository: what is served.
        on_load: called with each model before it serves.
        on_unload: called with name and version of each that serves no longer.
        max_models: most versions that serve at the same time.

    Attributes:
        index: states of the versions that are known.
    """

    def __init__(
        self,
        models: Path | None,
        *,
        demo: bool,
        renewal: Renewal,
        repository: Repository,
        on_load: Callable[[Model], None],
        on_unload: Callable[[str, str], None],
        max_models: int = 256,
    ) -> None:
        self.index = ModelIndex()
        self._root = DEMO if models is None else models
        self._demo = demo
        self._renewal = renewal
        self._repository = repository
        self._on_load = on_load
        self._on_unload = on_unload
        self._max_models = max_models
        self._complaints = Complaints()
        self._ignored: dict[str, tuple[str, ...]] = {}
        self._stopping = threading.Event()

    @property
    def is_stopping(self) -> bool:
        """Whether nothing more is to be loaded."""
        return self._stopping.is_set()

    def stop(self) -> None:
        """Load nothing more; what is being loaded is finished. From any thread."""
        self._stopping.set()

    def serve(self, model: Model) -> None:
        """Serve a model that was loaded, in place of the same version if there is one."""
        is_replaced = model.version in self._find_served(model.name)
        self._on_load(model)
        self._repository.exchange([model], [])
        self.index.put(IndexEntry(model.name, model.version, "READY"))
        log.info("model %s/%s is loaded on %s", model.name, model.version, model.provider)
        self._name_ignored(model)
        if is_replaced:
            free_memory()

    def load(self, name: str) -> None:
        """Load every version of a model, also those that serve already.

        Raises:
            NotFoundError: if the directory holds no such model.
            InvalidRequestError: if a version fails; what served goes on.
            UnavailableError: if the directory cannot be read, or the server stops.
        """
        try:
            survey = self._survey()
        except OSError as error:
            raise UnavailableError(f"{DIRECTORY} cannot be read: {explain(error)}") from None
        if name not in survey.names:
            raise NotFoundError(
                f"{DIRECTORY} has no model '{name}', expected {name}/<version>/{MANIFEST_FILE}, as "
                "limelight-export writes it"
            )
        faults = self._refresh(name, survey, again=True)
        if faults:
            reasons = [f"version {v}: {fault}" if v else fault for v, fault in faults.items()]
            raise InvalidRequestError(f"model '{name}' is not loaded: {'; '.join(reasons)}")
        if self._stopping.is_set():
            raise UnavailableError("the server is stopping")

    def unload(self, name: str) -> None:
        """Serve no version of a model any more; requests in flight are answered.

        Raises:
            NotFoundError: if the model is neither known nor in the directory.
        """
        if name not in {entry.name for entry in self.list_entries()}:
            raise NotFoundError(f"{DIRECTORY} has no model '{name}'")
        versions = self._find_served(name)
        for version in versions:
            self.index.put(IndexEntry(name, version, "UNLOADING"))
        self._drop(name, versions)
        for version in versions:
            self.index.put(IndexEntry(name, version, "UNAVAILABLE", UNLOADED))

    def load_all(self, names: Iterable[str] | None) -> None:
        """Load models; what fails is said in the index and the log, and the others are loaded.

        Args:
            names: of the models; all that the directory holds if absent.
        """
        with self._complaints.about(DIRECTORY):
            survey = self._survey()
            for name in survey.names if names is None else names:
                if name not in survey.names:
                    log.warning("%s has no model '%s'", DIRECTORY, name)
                with self._complaints.about(f"model {name}"):
                    self._refresh(name, survey, again=True)

    def scan(self) -> None:
        """Serve what the directory holds: load what is new or changed, unload what is gone.

        What fails is said in the index and the log, and what served goes on.
        """
        with self._complaints.about(DIRECTORY):
            survey = self._survey()
            if self._misses(survey):
                # A link may have been turned while it was followed: nothing is unloaded unless
                # a second look agrees.
                survey = self._survey()
            known = {entry.name for entry in self.index.list_all()}
            for name in sorted(known.union(survey.names)):
                with self._complaints.about(f"model {name}"):
                    self._refresh(name, survey, again=False)

    def list_entries(self) -> list[IndexEntry]:
        """States of all versions that are known or lie in the directory; from any thread."""
        known = {(entry.name, entry.version): entry for entry in self.index.list_all()}
        try:
            found = list_found(self._survey())
        except OSError:
            return [*known.values()]
        there = {k: e for k, e in known.items() if e.state != "UNAVAILABLE" or k in found}
        return sort_entries((found | there).values())

    def _name_ignored(self, model: Model) -> None:
        """Say which fields of a model's config have no effect, unless that has been said."""
        ignored = model.config.ignored
        if ignored and ignored != self._ignored.get(model.name):
            self._ignored[model.name] = ignored
            names = ", ".join(ignored)
            log.warning("model %s: fields of %s are ignored: %s", model.name, CONFIG_FILE, names)

    def _survey(self) -> Survey:
        try:
            survey = survey_models(self._root)
        except OSError:
            # A directory that vanishes for a moment must not make room for the demo.
            if not self._demo or self._repository.names:
                raise
            return survey_models(DEMO)
        return survey if survey.names or not self._demo else survey_models(DEMO)

    def _misses(self, survey: Survey) -> bool:
        there = {directory for found in survey.versions.values() for directory in found}
        there_keys = {(directory.parent.name, directory.name) for directory in there}
        return any((m.name, m.version) not in there_keys for m in self._repository.models)

    def _find_served(self, name: str) -> list[str]:
        with suppress(NotFoundError):
            return self._repository.versions(name)
        return []

    def _refresh(self, name: str, survey: Survey, *, again: bool) -> dict[str, str]:
        """Serve the versions of a model that are there; the faults by version."""
        if name in survey.faults:
            self._note(name, "", survey.faults[name])
            return {"": survey.faults[name]}
        directories, faults = survey.versions.get(name, []), dict[str, str]()
        for directory in directories:
            if self._stopping.is_set():
                return faults
            try:
                if directory.name not in self._find_served(name):
                    self._check_room(name, {each.name for each in directories})
                self._renew(directory, survey.root, again=again)
            except ModelFaultError as error:
                faults[directory.name] = str(error)
                self._note(name, directory.name, str(error))
        self._drop_absent(name, {directory.name for directory in directories}, faults)
        return faults

    def _check_room(self, name: str, there: set[str]) -> None:
        gone = sum(version not in there for version in self._find_served(name))
        if len(self._repository.models) - gone >= self._max_models:
            raise ModelFaultError(
                f"{self._max_models} versions of models are served already (LIMELIGHT_MAX_MODELS)"
            )

    def _renew(self, directory: Path, root: Path, *, again: bool) -> None:
        key = (directory.parent.name, directory.name)
        serves = directory.name in self._find_served(directory.parent.name)
        files = self._renewal.check(directory, root, again=again)
        if files is not None:
            self.index.put(IndexEntry(*key, "READY" if serves else "LOADING"))
            self.serve(self._renewal.load(files))
        elif serves:
            self.index.put(IndexEntry(*key, "READY"))

    def _drop_absent(self, name: str, there: set[str], faults: dict[str, str]) -> None:
        served = self._find_served(name)
        gone = [version for version in served if version not in there]
        if faults and gone == served:
            # The model is there, but none of its versions is whole: better an old one than none.
            for version in gone:
                self._note(name, version, KEPT)
            there = there.union(gone)
        else:
            self._drop(name, gone)
        for entry in self.index.list_of(name):
            if entry.version not in there:
                self._renewal.forget((name, entry.version))
                self.index.drop((name, entry.version))

    def _drop(self, name: str, versions: list[str]) -> None:
        if not versions:
            return
        keys = [(name, version) for version in versions]
        self._repository.exchange([], keys)
        for key in keys:
            self._on_unload(*key)
            self._renewal.forget(key)
            log.info("model %s/%s is unloaded", *key)
        free_memory()

    def _note(self, name: str, version: str, fault: str) -> None:
        """Say what is wrong in the index and, the first time, in the log."""
        known = self.index.find((name, version))
        if known is None or known.reason != fault:
            log.warning("model %s: %s", "/".join(filter(None, (name, version))), fault)
        serves = version in self._find_served(name)
        self.index.put(IndexEntry(name, version, "READY" if serves else "UNAVAILABLE", fault))


def list_found(survey: Survey) -> dict[Key, IndexEntry]:
    """The versions in a directory, as if none were loaded."""
    entries = [
        IndexEntry(name, directory.name, "UNAVAILABLE", NOT_LOADED)
        for name, directories in survey.versions.items()
        for directory in directories
    ]
    entries += [IndexEntry(name, "", "UNAVAILABLE", fault) for name, fault in survey.faults.items()]
    return {(entry.name, entry.version): entry for entry in entries}
