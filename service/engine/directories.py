"""The directory of models: which versions it holds, and links that must not lead out of it."""

import errno
import os
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from model.contract import MANIFEST_FILE, MODEL_NAME
from service.engine.files import explain
from service.engine.model_fault import ModelFaultError
from service.errors import StartError

VERSION: Final = re.compile(r"[1-9][0-9]{0,8}")
DEMO: Final = Path(__file__).parents[1] / "demo"
MAX_LINKS: Final = 40  # as Linux itself follows


class LinkError(ModelFaultError):
    """A link leads out of the directory of models, or nowhere."""


@dataclass(frozen=True, slots=True)
class Survey:
    """What a directory of models holds at one moment.

    Attributes:
        root: the directory of models, or of one model, as it was given.
        versions: directories of the versions of each model, ascending; whether they are whole
            is not looked at.
        faults: why the directory of a model could not be looked at.
    """

    root: Path
    versions: dict[str, list[Path]] = field(default_factory=dict)
    faults: dict[str, str] = field(default_factory=dict)

    @property
    def names(self) -> list[str]:
        """Names of the models, sorted."""
        return sorted({*self.versions, *self.faults})


def survey_models(root: Path) -> Survey:
    """The versions in a repository or, where it has none, in the directory of one model.

    Raises:
        OSError: if it cannot be read.
    """
    # Its own name is that of the model, which "." would not be.
    root = root.absolute()
    versions, faults = dict[str, list[Path]](), dict[str, str]()
    for model in list_directories(root, MODEL_NAME):
        try:
            versions[model.name] = list_versions(root, model)
        except LinkError as error:
            faults[model.name] = str(error)
        except OSError as error:
            faults[model.name] = f"its directory cannot be read: {explain(error)}"
    versions = {name: found for name, found in versions.items() if found}
    if not versions and not faults and (found := list_versions(root, root)):
        versions = {root.name: found}
    return Survey(root, versions, faults)


def list_versions(root: Path, model: Path) -> list[Path]:
    """Directories of the versions of a model, ascending.

    Raises:
        LinkError: if the model is a link that leads out of `root`.
        OSError: if it cannot be read.
    """
    names = [path.name for path in list_directories(resolve(root, model), VERSION)]
    return [model / name for name in sorted(names, key=int)]


def list_directories(path: Path, pattern: re.Pattern[str]) -> list[Path]:
    """Directories in a directory whose names match, sorted; links to directories are some too.

    Raises:
        OSError: if it cannot be read.
    """
    return sorted(p for p in path.iterdir() if pattern.fullmatch(p.name) and p.is_dir())


def resolve(root: Path, path: Path) -> Path:
    """The same place with no links below `root`, found as `os.path.realpath` does.

    Unlike there, `root` itself is never left for its own real path: KServe mounts it as a link
    through /proc, whose real path belongs to another container. And what is opened has no
    link in it any more that could be turned meanwhile, as Kubernetes turns ``..data``.

    Args:
        root: directory that must not be left.
        path: below it.

    Raises:
        LinkError: if a link leads out of `root`, or in circles.
        OSError: if a part of the path is absent.
    """
    pending, done, links = [*reversed(path.relative_to(root).parts)], list[str](), 0
    while pending:
        part = pending.pop()
        if part == ".." and not done:
            raise outside(root, path)
        if part == "..":
            done.pop()
        elif part not in ("", "."):
            target = read_link(root.joinpath(*done, part))
            if target is None:
                done.append(part)
                continue
            links += 1
            if links > MAX_LINKS:
                raise LinkError(f"'{path.relative_to(root)}' leads through links in circles")
            if target.startswith("/"):
                target = strip_root(root, target, path)
                done.clear()
            pending += reversed(target.split("/"))
    return root.joinpath(*done)


def read_link(path: Path) -> str | None:
    """Where a link points to; nothing for what is no link.

    Raises:
        OSError: if it is absent.
    """
    try:
        return str(path.readlink())
    except OSError as error:
        if error.errno != errno.EINVAL:  # which says: no link
            raise
        return None


def strip_root(root: Path, target: str, path: Path) -> str:
    """The part of an absolute target that is below `root`, as it is named or really is.

    Raises:
        LinkError: if it is elsewhere.
    """
    for prefix in (str(root), os.path.realpath(root)):
        if f"{target}/".startswith(f"{prefix.rstrip('/')}/"):
            return target[len(prefix) :]
    raise outside(root, path)


def outside(root: Path, path: Path) -> LinkError:
    """The error for a link that leads out."""
    return LinkError(
        f"'{path.relative_to(root)}' leads through a link out of the directory of models; put the "
        "files into it"
    )


def find_models(models: Path | None, *, demo: bool) -> Survey:
    """The versions to serve where none may come later: those with a manifest.

    Args:
        models: a repository, or the directory of one model; the embedded demo where absent.
        demo: whether the demo stands in for a repository without models.

    Raises:
        StartError: if there is no model, or a link leads out of the directory.
    """
    if models is None:
        return survey_models(DEMO)
    survey = survey_existing(models)
    for name, fault in survey.faults.items():
        raise StartError(f"model {name}: {fault}")
    listed = {name: list(filter(has_manifest, found)) for name, found in survey.versions.items()}
    versions = {name: found for name, found in listed.items() if found}
    if versions:
        return Survey(survey.root, versions)
    if demo:
        return survey_models(DEMO)
    raise StartError(
        f"LIMELIGHT_MODELS is {models}, where no model was found, expected "
        f"<name>/<version>/{MANIFEST_FILE}, as limelight-export writes it"
    )


def survey_existing(models: Path) -> Survey:
    """What a directory holds; one that is absent holds nothing.

    Raises:
        StartError: if it cannot be read.
    """
    try:
        return survey_models(models)
    except (FileNotFoundError, NotADirectoryError):
        return Survey(models)
    except OSError as error:
        raise StartError(f"LIMELIGHT_MODELS cannot be read: {explain(error)}") from None


def has_manifest(version: Path) -> bool:
    """Whether a directory is a version of a model at all."""
    return (version / MANIFEST_FILE).is_file()
