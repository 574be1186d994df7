"""What one of several workers may use."""

import pytest

from service.settings import Settings
from service.workers.share import DIVIDED, divide


def test_the_bounds_of_all_requests_are_divided(settings: Settings) -> None:
    shared = divide(settings.model_copy(update={"workers": 4}))
    for name in DIVIDED:
        assert getattr(shared, name) == getattr(settings, name) // 4
    assert shared.max_connections == 256


def test_all_other_settings_are_as_they_were(settings: Settings) -> None:
    given = settings.model_copy(update={"workers": 3})
    before, after = given.model_dump(), divide(given).model_dump()
    changed = {name for name in before if before[name] != after[name]}
    assert changed == {*DIVIDED, "inference_threads"}


def test_every_worker_can_serve_something(settings: Settings) -> None:
    few = dict.fromkeys((*DIVIDED, "inference_threads"), 2)
    shared = divide(settings.model_copy(update={"workers": 5, **few}))
    assert [getattr(shared, name) for name in few] == [1] * len(few)


@pytest.mark.parametrize(("wished", "threads"), [(0, 3), (6, 2), (7, 2)])
def test_the_threads_are_divided_those_of_the_machine_or_those_that_are_wished(
    settings: Settings, monkeypatch: pytest.MonkeyPatch, wished: int, threads: int
) -> None:
    monkeypatch.setattr("service.workers.share.count_cores", lambda workers: 9 // workers)
    given = settings.model_copy(update={"workers": 3, "inference_threads": wished})
    assert divide(given).inference_threads == threads
