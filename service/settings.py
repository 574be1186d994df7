"""The settings of a server process, read once at start, from environment and command line.

A number carries its unit in its name. ``docs/settings.md`` lists every field.
"""

import os
import re
from collections.abc import Iterable
from ipaddress import IPv4Address
from pathlib import Path
from typing import Annotated, Final, Literal, Self

from pydantic import (
    AfterValidator,
    Field,
    FiniteFloat,
    IPvAnyAddress,
    NonNegativeInt,
    PositiveInt,
    ValidationError,
)
from pydantic_core import PydanticCustomError
from pydantic_settings import BaseSettings, SettingsConfigDict

from model.contract import MODEL_NAME

PREFIX: Final = "LIMELIGHT_"
TEST_PREFIX: Final = "LIMELIGHT_TEST_"  # read by the tests, not by the server
MIB: Final = 2**20

Port = Annotated[int, Field(ge=0, le=65535)]
JsonDepth = Annotated[int, Field(ge=8, le=1024)]  # orjson has no more
PollInterval = Annotated[FiniteFloat, Field(gt=0, le=86400)]


def check_names(text: str) -> str:
    """Accept names of models with commas between, or ``*`` or ``-`` alone.

    Raises:
        PydanticCustomError: if it is anything else.
    """
    # No model can be called "-". An empty value would not do for none: it means unset.
    for name in text.split(","):
        if text not in ("*", "-") and not MODEL_NAME.fullmatch(name):
            raise PydanticCustomError(
                "model_names", "expected names of models with commas between, or '*' or '-' alone"
            )
    return text


ModelNames = Annotated[str, AfterValidator(check_names)]


def clean_prefix(text: str) -> str:
    """A path prefix with a slash first and none last; empty for none.

    Raises:
        PydanticCustomError: if it is no plain path.
    """
    prefix = f"/{text.strip('/')}".rstrip("/")
    if not re.fullmatch(r"(/[A-Za-z0-9._~-]+)*", prefix):
        raise PydanticCustomError("prefix", "expected a path as in a URL, such as /attention")
    return prefix


PathPrefix = Annotated[str, AfterValidator(clean_prefix)]


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

    model_control: Literal["none", "explicit", "poll"] = "none"
    """Load at start alone; explicit also on request, poll also whatever changes on the disk."""

    load_models: ModelNames = "*"
    """Models loaded at start in explicit control, with commas between; * is all, - is none."""

    model_poll_interval_s: PollInterval = 5
    """Time between two looks at the directory of models in poll control."""

    host: IPvAnyAddress = IPv4Address("127.0.0.1")
    """Address to listen on."""

    port: Port = 8000
    """Port to listen on; 0 takes a free one."""

    metrics_port: Port | None = None
    """Port of a second listener that serves /metrics alone; off unless set."""

    api_keys_file: Path | None = None
    """File of the keys that clients send, one role:sha256 a line; no key is needed unless set."""

    allow_anonymous: bool = False
    """Listen where others are although no keys are set."""

    metrics_without_key: bool = False
    """Let everyone read /metrics where keys are set."""

    cors_origins: str = ""
    """Origins of pages that may ask from a browser, with commas between; none unless set."""

    root_path: PathPrefix = ""
    """Path prefix under which a proxy serves this server."""

    provider: Literal["auto", "cpu", "cuda"] = "auto"
    """Where onnxruntime computes; auto takes CUDA where it works, cuda refuses all else."""

    cuda_device: NonNegativeInt = 0
    """Number of the GPU that computes, of those that CUDA_VISIBLE_DEVICES leaves."""

    cuda_tf32: bool = False
    """Round what is multiplied in float32 to TF32's 10 bits: faster, with 3 right digits."""

    cuda_arena_bytes: PositiveInt | None = None
    """Most memory of the GPU for each graph's arena; all there is unless set; see below."""

    cuda_join_tokens: NonNegativeInt = 32_768
    """Most query and key tokens, padding included, in a run of several requests on CUDA."""

    cuda_join_delay_us: NonNegativeInt = 200
    """Longest wait for requests to join on CUDA; 0 joins none, and a model's config goes first."""

    workers: PositiveInt = 1
    """Processes that serve; each has its share of the cores and of the bounds of all requests."""

    inference_threads: NonNegativeInt = 0
    """Requests computed at the same time; 0 takes one for each core that the process may use."""

    intra_op_threads: NonNegativeInt = 0
    """Cores for one request; 0 takes all for one that is alone, and else one."""

    max_batch_size: PositiveInt = 256
    """Most sequences in one request."""

    max_request_bytes: PositiveInt = 64 * MIB
    """Largest request body."""

    max_json_depth: JsonDepth = 64
    """Most lists and objects in each other in a JSON body; a tensor of V2 has up to 7."""

    max_tokens: PositiveInt = 2**20
    """Most query and key tokens in one request, all sequences together."""

    max_score_bytes: PositiveInt = 1024 * MIB
    """Scores that a run may hold: 4 bytes for each item, head, query and key; see below."""

    max_output_bytes: PositiveInt = 128 * MIB
    """Largest answer: 4 bytes for each number of the output and of the weights asked for."""

    max_queue_requests: PositiveInt = 256
    """Requests that may wait for a thread; further ones get 503."""

    max_queue_bytes: PositiveInt = 512 * MIB
    """Bytes of tensors that may wait for a thread; further requests get 503."""

    max_body_bytes_in_flight: PositiveInt = 80 * MIB
    """Bytes of request bodies held at the same time; further ones wait unread, then get 503."""

    max_answer_bytes_in_flight: PositiveInt = 512 * MIB
    """Bytes of answers held until their clients took them; further requests wait, then get 503."""

    max_models: PositiveInt = 256
    """Most versions of models that are served at the same time."""

    max_connections: PositiveInt = 1024
    """Most connections at the same time; further ones get 503."""

    header_timeout_s: PositiveInt = 10
    """Time for a request line and its headers to come; then 408."""

    body_timeout_s: PositiveInt = 60
    """Time for a body to come, not counting when the server does not read it; then 408."""

    request_timeout_ms: NonNegativeInt = 60_000
    """Time from the whole body to the computed answer; then 503. 0 is no end."""

    answer_timeout_s: PositiveInt = 60
    """Time for a client to take its answer; then its connection is closed."""

    keep_alive_timeout_s: PositiveInt = 75
    """Time for which a connection may wait for its next request."""

    stuck_timeout_s: PositiveInt = 120
    """Longest time of one inference; a thread that takes longer counts as stuck."""

    drain_delay_ms: NonNegativeInt = 0
    """Time for which requests are served still after the signal to stop, while ready says no."""

    shutdown_timeout_s: NonNegativeInt = 20
    """Time to finish requests in flight when the server is told to stop."""

    log_level: Literal["debug", "info", "warning", "error"] = "info"
    """Least severe messages that are logged."""

    log_format: Literal["auto", "json", "text"] = "auto"
    """Form of the log; auto is text on a terminal, and a JSON object a line elsewhere."""

    log_requests: bool = True
    """Log a line for each request."""

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
