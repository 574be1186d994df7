"""Whether a version has changed since it was last looked at, and its loading if it has."""

import logging
from dataclasses import dataclass
from pathlib import Path

from service.engine.files import explain
from service.engine.fingerprint import Fingerprint
from service.engine.loader import Loader
from service.engine.model import Model
from service.engine.model_fault import ModelFaultError, UnreadableError
from service.engine.model_index import Key
from service.engine.version_files import VersionFiles, check_version
from service.errors import StartError

log = logging.getLogger("limelight")


@dataclass(frozen=True, slots=True)
class Verdict:
    """What was found at one fingerprint; the fault is empty where all was well."""

    fingerprint: Fingerprint
    fault: str


class Renewal:
    """Remembers what was found of each version, so that files are read only once.

    Files that failed are not tried again until they change: loading them may take long, or take
    the memory that other models need.
    """

    def __init__(self, loader: Loader) -> None:
        self._loader = loader
        self._verdicts: dict[Key, Verdict] = {}
        self._loaded: dict[Key, str] = {}

    def forget(self, key: Key) -> None:
        """Look at a version anew, whatever was found of it."""
        self._verdicts.pop(key, None)
        self._loaded.pop(key, None)

    def check(self, directory: Path, root: Path, *, again: bool) -> VersionFiles | None:
        """Files that are to be loaded; nothing where they are those that are loaded.

        Args:
            directory: of the version.
            root: the directory of models.
            again: whether to load also what is loaded, and to look at files that failed.

        Raises:
            ModelFaultError: if they are not whole, or failed and have not changed since.
        """
        key = (directory.parent.name, directory.name)
        fingerprint = look_at(directory, root)
        known = self._verdicts.get(key)
        if known and known.fingerprint == fingerprint and not again:
            if known.fault:
                raise ModelFaultError(known.fault)
            return None
        try:
            files = check_version(directory, root)
        except UnreadableError:
            self._verdicts.pop(key, None)
            raise
        except ModelFaultError as error:
            self._remember(key, fingerprint, str(error))
            raise
        self._remember(key, fingerprint, "")
        return files if again or self._loaded.get(key) != files.digest else None

    def load(self, files: VersionFiles) -> Model:
        """Load files that were checked.

        Raises:
            ModelFaultError: if they cannot be loaded.
        """
        key = (files.directory.parent.name, files.directory.name)
        try:
            model = self._loader.open(files, eager=True)
        except StartError as error:
            fault = str(error).removeprefix(f"{files.label}: ")
        except Exception as error:
            log.exception("%s cannot be loaded", files.label)
            fault = f"loading failed with {type(error).__name__}; the log of the server says more"
        else:
            self._loaded[key] = files.digest
            return model
        if key in self._verdicts:
            self._verdicts[key] = Verdict(self._verdicts[key].fingerprint, fault)
        raise ModelFaultError(fault)

    def _remember(self, key: Key, fingerprint: Fingerprint, fault: str) -> None:
        self._verdicts.pop(key, None)
        if fingerprint.is_settled():
            self._verdicts[key] = Verdict(fingerprint, fault)


def look_at(directory: Path, root: Path) -> Fingerprint:
    """The fingerprint of a version.

    Raises:
        LinkError: if its directory leads out of `root`.
        UnreadableError: if it cannot be read.
    """
    try:
        return Fingerprint.take(directory, root)
    except OSError as error:
        raise UnreadableError(f"its directory cannot be read: {explain(error)}") from None
