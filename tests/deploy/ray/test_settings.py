"""What a replica reads from its environment, and what it refuses."""

import os

import pytest

from deploy.ray.settings import load_settings
from service.errors import StartError


@pytest.fixture(autouse=True)
def clear_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """No setting but that everyone may come in."""
    for name in [name for name in os.environ if name.startswith("LIMELIGHT_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("LIMELIGHT_ALLOW_ANONYMOUS", "true")


@pytest.mark.parametrize(("cores", "threads"), [(3, 3), (0.5, 1), (1.2, 2), (0, 1)])
def test_as_many_requests_are_computed_at_once_as_there_are_cores(
    cores: float, threads: int
) -> None:
    settings = load_settings(cores)
    assert (settings.inference_threads, settings.intra_op_threads) == (threads, 1)


def test_what_is_set_counts_more_than_the_cores(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LIMELIGHT_INFERENCE_THREADS", "5")
    monkeypatch.setenv("LIMELIGHT_INTRA_OP_THREADS", "4")
    settings = load_settings(3)
    assert (settings.inference_threads, settings.intra_op_threads) == (5, 4)


@pytest.mark.parametrize(
    ("name", "value", "text"),
    [
        (
            "MODEL_CONTROL",
            "explicit",
            "LIMELIGHT_MODEL_CONTROL is 'explicit': a request to load a model would reach one "
            "replica of several, expected 'none' or 'poll'",
        ),
        (
            "METRICS_PORT",
            "9100",
            "LIMELIGHT_METRICS_PORT is 9100: a replica listens on no port, expected none; "
            "GET /metrics answers for one replica, Ray's own metrics for all",
        ),
        (
            "ALLOW_ANONYMOUS",
            "false",
            "everyone who reaches Serve's proxies could use this application: name a file of keys "
            "in LIMELIGHT_API_KEYS_FILE, or say that this is wanted with "
            "LIMELIGHT_ALLOW_ANONYMOUS=true",
        ),
    ],
)
def test_what_a_replica_cannot_do_is_refused(
    monkeypatch: pytest.MonkeyPatch, name: str, value: str, text: str
) -> None:
    monkeypatch.setenv(f"LIMELIGHT_{name}", value)
    with pytest.raises(StartError) as refused:
        load_settings(2)
    assert str(refused.value) == text


def test_keys_do_instead_of_saying_that_everyone_may_come_in(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv("LIMELIGHT_ALLOW_ANONYMOUS")
    monkeypatch.setenv("LIMELIGHT_API_KEYS_FILE", "/etc/limelight/keys")
    assert load_settings(2).api_keys_file is not None
