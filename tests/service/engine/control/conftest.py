"""What tests of model control share: a directory of models, and what happens to it."""

from collections.abc import Callable
from pathlib import Path

import pytest

from service.engine.control import Control
from service.engine.fingerprint import Fingerprint
from service.engine.loader import Loader
from service.engine.renewal import Renewal
from service.engine.repository import Repository
from service.engine.sizes import Limits

MakeControl = Callable[..., Control]


@pytest.fixture(autouse=True)
def settle(monkeypatch: pytest.MonkeyPatch) -> None:
    """All files are as if they had changed long ago."""
    monkeypatch.setattr(Fingerprint, "is_settled", lambda _: True)


@pytest.fixture(name="root")
def make_root(tmp_path: Path) -> Path:
    (tmp_path / "models").mkdir()
    return tmp_path / "models"


@pytest.fixture(name="repository")
def make_repository() -> Repository:
    return Repository()


@pytest.fixture(name="events")
def make_events() -> list[str]:
    """What the callbacks were told."""
    return []


@pytest.fixture(name="make")
def make_maker(
    root: Path, repository: Repository, events: list[str], limits: Limits
) -> MakeControl:
    def make(models: Path | None = root, *, demo: bool = False, max_models: int = 256) -> Control:
        return Control(
            models,
            demo=demo,
            renewal=Renewal(Loader("cpu", 1, limits)),
            repository=repository,
            on_load=lambda model: events.append(f"+{model.name}/{model.version}"),
            on_unload=lambda name, version: events.append(f"-{name}/{version}"),
            max_models=max_models,
        )

    return make


@pytest.fixture(name="control")
def make_control(make: MakeControl) -> Control:
    return make()
