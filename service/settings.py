"""The settings of a server process, read once at start, from environment and command line.

A number carries its unit in its name. ``docs/settings.md`` lists every field.
"""

import os
from collections.abc import Iterable
from ipaddress import IPv4Address
from pathlib import Path
from typing import Annotated, Final, Literal, Self

from pydantic import Field, IPvAnyAddress, NonNegativeInt, PositiveInt, ValidationError
from pydantic_settings import BaseSettings, SettingsConfigDict

PREFIX: Final = "LIMELIGHT_"
TEST_PREFIX: Final = "LIMELIGHT_TEST_"  # read by the tests, not by the server
MIB: Final = 2**20

Port = Annotated[int, Field(ge=0, le=65535)]


class Settings(BaseSettings):
    """Serve multi-head attention over HTTP.

    Every option is an environment variable too: --max-batch-size is LIMELIGHT_MAX_BATCH_SIZE.
    """

    model_config = SettingsConfigDict(
        env_prefix=PREFIX,
        frozen=True,
        use_attribute_docstrings=True,
        extra="forbid",
        env_ignore_empty=True,
        cli_kebab_case=True,
        cli_implicit_flags=True,
        cli_hide_none_type=True,
    )

    models: Path | None = None
    """Repository of models, or the directory of one model; the embedded demo unless set."""

    demo: bool = False
    """Serve the embedded demo when the repository holds no model."""

    default_model: str | None = None
    """Model that /v1/attention takes when the request names none; the only one unless set."""

    host: IPvAnyAddress = IPv4Address("127.0.0.1")
    """Address to listen on."""

    port: Port = 8000
    """Port to listen on; 0 takes a free one."""

    root_path: str = ""
    """Path prefix under which a proxy serves this server."""

    provider: Literal["auto", "cpu", "cuda"] = "auto"
    """Where onnxruntime computes; auto takes CUDA where it works, cuda refuses all else."""

    inference_threads: NonNegativeInt = 0
    """Requests computed at the same time; 0 takes one for each core that the process may use."""

    intra_op_threads: PositiveInt = 1
    """Cores that onnxruntime uses for one request."""

    max_batch_size: PositiveInt = 256
    """Most sequences in one request."""

    max_request_bytes: PositiveInt = 64 * MIB
    """Largest request body."""

    max_tokens: PositiveInt = 2**20
    """Most query and key tokens in one request, all sequences together."""

    max_score_bytes: PositiveInt = 1024 * MIB
    """Largest score matrix of one request: 4 bytes for each item, head, query and key."""

    max_output_bytes: PositiveInt = 128 * MIB
    """Largest answer: 4 bytes for each number of the output and of the weights asked for."""

    max_queue_requests: PositiveInt = 256
    """Requests that may wait for a thread; further ones get 503."""

    max_queue_bytes: PositiveInt = 512 * MIB
    """Bytes of tensors that may wait for a thread; further requests get 503."""

    shutdown_timeout_s: NonNegativeInt = 20
    """Time to finish requests in flight when the server is told to stop."""

    log_level: Literal["debug", "info", "warning", "error"] = "info"
    """Least severe messages that are logged."""

    @classmethod
    def load(cls, arguments: list[str] | None = None) -> Self:
        """Read the environment and the command line; the command line goes first.

        Args:
            arguments: of the command line; none unless given.

        Raises:
            SettingsError: naming the setting, what came and what was expected.
        """
        check_environment(cls.model_fields)
        try:
            return cls(_cli_parse_args=arguments or [], _cli_prog_name="limelight-serve")
        except ValidationError as error:
            raise SettingsError(explain(error)) from None


class SettingsError(Exception):
    """A setting is unknown or does not fit."""


def check_environment(known: Iterable[str]) -> None:
    """Refuse a misspelt variable instead of ignoring it.

    Raises:
        SettingsError: if a variable starts with our prefix and names no setting.
    """
    names = {PREFIX + name.upper() for name in known}
    ours = {name for name in map(str.upper, os.environ) if name.startswith(PREFIX)}
    unknown = sorted(name for name in ours - names if not name.startswith(TEST_PREFIX))
    if unknown:
        raise SettingsError(
            f"{', '.join(unknown)}: no such setting; limelight-serve --help lists all"
        )


def explain(error: ValidationError) -> str:
    """One line for each setting that does not fit."""
    lines = []
    for part in error.errors(include_url=False):
        name = "_".join(str(step) for step in part["loc"]).upper()
        reason = part["msg"][:1].lower() + part["msg"][1:]
        lines.append(f"{PREFIX}{name} is {part['input']!r}: {reason}")
    return "\n".join(lines)
