"""Settings: where they come from, and what is said of one that does not fit."""

from ipaddress import IPv4Address, IPv6Address
from pathlib import Path

import pytest

from service.settings import Settings, SettingsError


@pytest.fixture(autouse=True)
def clean_environment(settings: Settings) -> None:
    """No variable of ours is set."""


def test_without_any_the_demo_is_served_on_this_machine_alone() -> None:
    settings = Settings.load()
    assert settings.models is None
    assert (settings.host, settings.port) == (IPv4Address("127.0.0.1"), 8000)
    assert (settings.provider, settings.demo, settings.default_model) == ("auto", False, None)
    assert settings.max_batch_size == 256


def test_the_environment_sets_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LIMELIGHT_MAX_BATCH_SIZE", "12")
    monkeypatch.setenv("LIMELIGHT_MODELS", "/models")
    monkeypatch.setenv("LIMELIGHT_DEMO", "true")
    settings = Settings.load()
    assert (settings.max_batch_size, settings.models) == (12, Path("/models"))
    assert settings.demo is True


def test_a_variable_may_be_in_lower_case(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("limelight_max_batch_size", "12")
    assert Settings.load().max_batch_size == 12


def test_the_command_line_sets_them() -> None:
    settings = Settings.load(["--max-batch-size", "12", "--models=/models", "--host", "::1"])
    assert (settings.max_batch_size, settings.models) == (12, Path("/models"))
    assert settings.host == IPv6Address("::1")


@pytest.mark.parametrize(("flag", "value"), [("--demo", True), ("--no-demo", False)])
def test_a_switch_needs_no_value(flag: str, *, value: bool) -> None:
    assert Settings.load([flag]).demo is value


def test_the_command_line_goes_before_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LIMELIGHT_PORT", "1000")
    assert Settings.load(["--port", "2000"]).port == 2000


@pytest.mark.parametrize("names", ["*", "-", "a", "a-b.c,d_1,3"])
def test_models_of_the_start_are_all_none_or_some(
    monkeypatch: pytest.MonkeyPatch, names: str
) -> None:
    monkeypatch.setenv("LIMELIGHT_LOAD_MODELS", names)
    assert Settings.load().load_models == names
    assert Settings.load(["--load-models", names]).load_models == names


@pytest.mark.parametrize(
    ("text", "prefix"),
    [("/attn", "/attn"), ("attn/", "/attn"), ("/a/b.c~d_e-1/", "/a/b.c~d_e-1"), ("/", "")],
)
def test_a_prefix_has_a_slash_first_and_none_last(text: str, prefix: str) -> None:
    assert Settings.load(["--root-path", text]).root_path == prefix


@pytest.mark.parametrize("depth", ["7", "1025", "x"])
def test_the_depth_of_json_has_room_for_a_tensor_and_an_end(depth: str) -> None:
    with pytest.raises(
        SettingsError, match=r"^LIMELIGHT_MAX_JSON_DEPTH is '\w+': input should be "
    ):
        Settings.load(["--max-json-depth", depth])


def test_an_empty_value_means_unset(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LIMELIGHT_LOAD_MODELS", "")
    monkeypatch.setenv("LIMELIGHT_METRICS_PORT", "")
    assert Settings.load().load_models == "*"
    assert Settings.load().metrics_port is None


def test_they_never_change() -> None:
    with pytest.raises(ValueError, match="frozen"):
        Settings.load().port = 1  # type: ignore[misc]


def test_a_misspelt_variable_stops_the_start(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LIMELIGHT_PORTS", "1000")
    monkeypatch.setenv("limelight_batch", "1")
    with pytest.raises(SettingsError) as caught:
        Settings.load()
    assert str(caught.value) == (
        "LIMELIGHT_BATCH, LIMELIGHT_PORTS: no such setting; limelight-serve --help lists all"
    )


def test_variables_of_the_tests_are_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LIMELIGHT_TEST_URL", "http://127.0.0.1:1")
    Settings.load()


def test_a_misspelt_option_ends_with_the_usage(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        Settings.load(["--prot", "1"])
    assert caught.value.code == 2
    assert "unrecognized arguments: --prot" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("name", "value", "reason"),
    [
        ("PORT", "65536", "input should be less than or equal to 65535"),
        ("PORT", "-1", "input should be greater than or equal to 0"),
        (
            "PORT",
            "http",
            "input should be a valid integer, unable to parse string as an integer",
        ),
        ("MAX_BATCH_SIZE", "0", "input should be greater than 0"),
        ("MAX_TOKENS", "0", "input should be greater than 0"),
        ("MAX_REQUEST_BYTES", "-5", "input should be greater than 0"),
        ("MAX_SCORE_BYTES", "0", "input should be greater than 0"),
        ("MAX_QUEUE_REQUESTS", "0", "input should be greater than 0"),
        ("MAX_QUEUE_BYTES", "0", "input should be greater than 0"),
        ("INTRA_OP_THREADS", "-1", "input should be greater than or equal to 0"),
        ("INFERENCE_THREADS", "-1", "input should be greater than or equal to 0"),
        ("SHUTDOWN_TIMEOUT_S", "-1", "input should be greater than or equal to 0"),
        ("PROVIDER", "gpu", "input should be 'auto', 'cpu' or 'cuda'"),
        ("LOG_LEVEL", "loud", "input should be 'debug', 'info', 'warning' or 'error'"),
        ("HOST", "localhost", "value is not a valid IPv4 or IPv6 address"),
        ("MODEL_CONTROL", "auto", "input should be 'none', 'explicit' or 'poll'"),
        ("MODEL_POLL_INTERVAL_S", "0", "input should be greater than 0"),
        ("MODEL_POLL_INTERVAL_S", "86401", "input should be less than or equal to 86400"),
        ("MODEL_POLL_INTERVAL_S", "inf", "input should be a finite number"),
        ("MODEL_POLL_INTERVAL_S", "nan", "input should be a finite number"),
        ("METRICS_PORT", "65536", "input should be less than or equal to 65535"),
        *(
            (
                "LOAD_MODELS",
                names,
                "expected names of models with commas between, or '*' or '-' alone",
            )
            for names in ("a, b", "a,", ",", "a,*", "-,a", "..", "a/b", "stats")
        ),
        *(
            ("ROOT_PATH", path, "expected a path as in a URL, such as /attention")
            for path in ("/a b", "/a//b", "http://host/a", "/a?b", "/%20")
        ),
        ("DEMO", "maybe", "input should be a valid boolean, unable to interpret input"),
    ],
)
def test_a_value_that_does_not_fit_is_named(
    monkeypatch: pytest.MonkeyPatch, name: str, value: str, reason: str
) -> None:
    monkeypatch.setenv(f"LIMELIGHT_{name}", value)
    with pytest.raises(SettingsError) as caught:
        Settings.load()
    assert str(caught.value) == f"LIMELIGHT_{name} is '{value}': {reason}"


def test_every_value_that_does_not_fit_is_named() -> None:
    with pytest.raises(SettingsError) as caught:
        Settings.load(["--port", "65536", "--max-tokens", "0"])
    assert str(caught.value) == (
        "LIMELIGHT_PORT is '65536': input should be less than or equal to 65535\n"
        "LIMELIGHT_MAX_TOKENS is '0': input should be greater than 0"
    )


@pytest.mark.parametrize(
    "name", ["INFERENCE_THREADS", "SHUTDOWN_TIMEOUT_S", "PORT", "METRICS_PORT"]
)
def test_nought_has_a_meaning_where_it_is_told(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.setenv(f"LIMELIGHT_{name}", "0")
    assert getattr(Settings.load(), name.lower()) == 0


def test_every_setting_says_what_it_is() -> None:
    assert all(field.description for field in Settings.model_fields.values())
