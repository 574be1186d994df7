"""Settings that Triton's extensions trace and logging read and write: here they can be read.

https://github.com/triton-inference-server/server/blob/main/docs/protocol/extension_trace.md and
extension_logging.md, whose examples spell `log_warning` and `log_error` otherwise than Triton does.
"""

import json
from collections.abc import Mapping
from typing import Final, Literal

from pydantic import BaseModel, ConfigDict, StrictBool, StrictInt, StrictStr

from service.errors import InvalidRequestError, NotOfferedError
from service.protocol.json_text import parse_object
from service.protocol.options import show

LogLevel = Literal["debug", "info", "warning", "error"]
Setting = str | bool | int | list[str]

KINDS: Final[dict[type, str]] = {
    str: "a string",
    bool: "true or false",
    int: "a whole number",
    list: "a list of strings",
}
NO_TRACING: Final = (
    "tracing is not offered; the header Server-Timing and /metrics say where the time goes"
)
LOG_CURES: Final = {
    "log_file": "the log goes to standard error",
    "log_format": "its format is chosen when the server starts",
}
LOG_LEVEL_CURE: Final = "set LIMELIGHT_LOG_LEVEL to debug, info, warning or error, and restart"


class TraceSettings(BaseModel):
    """How requests are traced: not at all, with Triton's defaults beside that."""

    trace_level: list[str] = ["OFF"]
    trace_rate: str = "1000"
    trace_count: str = "-1"
    log_frequency: str = "0"
    trace_file: str = ""
    trace_mode: str = "triton"


class LogSettings(BaseModel):
    """What is logged."""

    log_file: str = ""
    log_info: bool
    log_warning: bool
    log_error: bool = True
    log_verbose_level: int
    log_format: str = "default"


class TraceUpdate(BaseModel):
    """Settings of the trace that a client asks for; null asks for the default."""

    model_config = ConfigDict(extra="forbid")

    trace_level: list[StrictStr] | None = None
    trace_rate: StrictStr | None = None
    trace_count: StrictStr | None = None
    log_frequency: StrictStr | None = None
    trace_file: StrictStr | None = None
    trace_mode: StrictStr | None = None


class LogUpdate(BaseModel):
    """Settings of the log that a client asks for; null asks for the present one."""

    model_config = ConfigDict(extra="forbid")

    log_file: StrictStr | None = None
    log_info: StrictBool | None = None
    log_warning: StrictBool | None = None
    log_error: StrictBool | None = None
    log_verbose_level: StrictInt | None = None
    log_format: StrictStr | None = None


def describe_trace() -> TraceSettings:
    """The settings of the trace."""
    return TraceSettings()


def describe_log(level: LogLevel) -> LogSettings:
    """The settings of the log, which has a least severe level; Triton turns each on and off."""
    return LogSettings(
        log_info=level in ("debug", "info"),
        log_warning=level != "error",
        log_verbose_level=int(level == "debug"),
    )


def check_trace_update(text: bytes) -> None:
    """Accept a body that changes nothing of the trace.

    Raises:
        InvalidRequestError: if it is malformed.
        NotOfferedError: if it changes something.
    """
    check_update(text, describe_trace(), {}, NO_TRACING)


def check_log_update(text: bytes, level: LogLevel) -> None:
    """Accept a body that changes nothing of the log.

    Raises:
        InvalidRequestError: if it is malformed.
        NotOfferedError: if it changes something.
    """
    check_update(text, describe_log(level), LOG_CURES, LOG_LEVEL_CURE)


def check_update(text: bytes, present: BaseModel, cures: Mapping[str, str], cure: str) -> None:
    """Accept a body that asks for what is so.

    Args:
        text: a JSON object, or nothing.
        present: settings.
        cures: what to do instead of changing a setting, by its name.
        cure: what to do where `cures` has nothing.

    Raises:
        InvalidRequestError: if it is malformed.
        NotOfferedError: if it changes something.
    """
    settings: dict[str, Setting] = present.model_dump()
    for name, wish in read_wishes(text, settings).items():
        if wish != settings[name]:
            raise NotOfferedError(
                f"setting '{name}' is {json.dumps(settings[name])}, and cannot become "
                f"{json.dumps(wish)[:64]} while the server runs: {cures.get(name, cure)}"
            )


def read_wishes(text: bytes, settings: Mapping[str, Setting]) -> dict[str, Setting]:
    """The settings that a body asks for; null asks for nothing.

    Raises:
        InvalidRequestError: if one is unknown or not of the kind that it has in `settings`.
    """
    wishes = parse_object(text, what="the request", non_finite=False) if text else {}
    for name, wish in wishes.items():
        if name not in settings:
            raise InvalidRequestError(
                f"setting {show(name)} is unknown, expected some of {', '.join(settings)}"
            )
        if wish is not None and not is_like(wish, settings[name]):
            kind = KINDS[type(settings[name])]
            raise InvalidRequestError(f"setting '{name}' is {show(wish)}, expected {kind}")
    return {name: wish for name, wish in wishes.items() if wish is not None}


def is_like(wish: object, present: Setting) -> bool:
    """Whether a setting has the type of its present value; the only lists are of strings."""
    if isinstance(wish, list):
        return isinstance(present, list) and all(isinstance(item, str) for item in wish)
    return type(wish) is type(present)
