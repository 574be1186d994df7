"""The models that are served, by name and version."""

from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Final, TypeAlias

from service.engine.model import Model
from service.errors import NotFoundError

Served: TypeAlias = Mapping[str, Mapping[str, Model]]

NOTHING: Final[Served] = MappingProxyType({})


class Repository:
    """Models by name and version; the highest version answers where none is named.

    What is served is a mapping that never changes: a change puts another in its place, so that
    readers on any thread see all of it or nothing, and need no lock. One thread at a time may
    change it.
    """

    def __init__(self, default_model: str | None = None) -> None:
        self._models: Served = NOTHING
        self._default_model = default_model

    def add(self, model: Model) -> None:
        """Serve a model from now on."""
        self.exchange([model], [])

    def exchange(self, added: Iterable[Model], removed: Iterable[tuple[str, str]]) -> None:
        """Serve other versions, all at once; who has a model already may go on using it.

        Args:
            added: take the place of the same versions.
            removed: names and versions; those that are not served are passed over.
        """
        models = {name: dict(versions) for name, versions in self._models.items()}
        for name, version in removed:
            models.get(name, {}).pop(version, None)
        for model in added:
            models.setdefault(model.name, {})[model.version] = model
        self._models = MappingProxyType({name: found for name, found in models.items() if found})

    @property
    def names(self) -> list[str]:
        """Names of the models, sorted."""
        return sorted(self._models)

    @property
    def models(self) -> list[Model]:
        """Every version of every model, sorted by name and number."""
        served = self._models
        return [
            served[name][version]
            for name in sorted(served)
            for version in sorted(served[name], key=int)
        ]

    def versions(self, name: str) -> list[str]:
        """Versions of a model, ascending.

        Raises:
            NotFoundError: if there is no such model.
        """
        return sorted(find_model(self._models, name), key=int)

    def get(self, name: str, version: str | None = None) -> Model:
        """One version of a model; the highest unless `version` is given.

        Raises:
            NotFoundError: naming what was asked for and what there is.
        """
        versions = find_model(self._models, name)
        chosen = max(versions, key=int) if version is None else version
        if chosen not in versions:
            raise NotFoundError(
                f"model '{name}' has no version '{chosen}', expected one of "
                f"{', '.join(sorted(versions, key=int))}"
            )
        return versions[chosen]

    def get_default(self) -> Model:
        """The model of requests that name none.

        Raises:
            NotFoundError: if several models are served and the settings name none.
        """
        if self._default_model is not None:
            return self.get(self._default_model)
        served = self._models
        if len(served) == 1:
            (versions,) = served.values()
            return versions[max(versions, key=int)]
        if not served:
            raise NotFoundError("no model is served; load one, or look into the repository's index")
        raise NotFoundError(
            f"no model is named and {len(served)} are served: add ?model=NAME with one of "
            f"{', '.join(sorted(served))}, or set LIMELIGHT_DEFAULT_MODEL"
        )


def find_model(served: Served, name: str) -> Mapping[str, Model]:
    """The versions of a model.

    Raises:
        NotFoundError: if there is no such model.
    """
    if name not in served:
        names = ", ".join(sorted(served)) or "none"
        raise NotFoundError(f"model '{name}' is not served here; served: {names}")
    return served[name]
