"""What a model's ``config.pbtxt`` says of how it is served.

The fields are those of Triton's ModelConfig,
https://github.com/triton-inference-server/common/blob/main/protobuf/model_config.proto
"""

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from model.contract import CONFIG_FILE
from service.engine.files import explain, read_bounded
from service.engine.model_fault import ModelFaultError, UnreadableError
from service.engine.text_proto import Field, Message, TextProtoError, Value, Word, parse_text

MAX_CONFIG_BYTES: Final = 2**20
MAX_INT32: Final = 2**31 - 1
MAX_UINT64: Final = 2**64 - 1
# What these say is in the graphs too, or in the name of their file.
SILENT: Final = frozenset({"default_model_filename", "input", "output"})
# What the model has to be for Triton to load it as this server does.
RUNTIMES: Final = {"platform": "onnxruntime_onnx", "backend": "onnxruntime"}


class ConfigError(ModelFaultError):
    """``config.pbtxt`` is malformed, or describes another model."""


@dataclass(frozen=True, slots=True)
class ModelConfig:
    """The fields of Triton's ModelConfig that are honoured.

    Attributes:
        max_batch_size: most sequences in one request or joined run; absent where the file is
            silent. 0 says that the batch axis is an axis like any other.
        max_queue_delay_us: how long a request may wait for others to be joined with; 0 joins
            none.
        instance_count: most runs at the same time; absent: as many as there are threads.
        ignored: names of the fields that are set and have no effect.
    """

    max_batch_size: int | None = None
    max_queue_delay_us: int = 0
    instance_count: int | None = None
    ignored: tuple[str, ...] = ()


def read_model_config(directory: Path) -> ModelConfig:
    """Read ``config.pbtxt`` of a model's directory; all is left open where there is none.

    Raises:
        ConfigError: if it is malformed, or describes another model.
        UnreadableError: if it cannot be read.
    """
    try:
        content = read_bounded(directory / CONFIG_FILE, MAX_CONFIG_BYTES)
    except FileNotFoundError:
        return ModelConfig()
    except OSError as error:
        raise UnreadableError(f"{CONFIG_FILE} cannot be read: {explain(error)}") from None
    return parse_model_config(content, directory.absolute().name)


def parse_model_config(content: bytes, name: str) -> ModelConfig:
    """Read the text of a ``config.pbtxt``.

    Args:
        content: UTF-8.
        name: of the model's directory.

    Raises:
        ConfigError: if it is malformed, or describes another model; the text names the line.
    """
    try:
        message = parse_text(content)
        check_identity(message, name)
        delay_us, ignored = read_batching(message)
        count, further = read_instances(message)
        return ModelConfig(
            max_batch_size=read_number(message, "max_batch_size", MAX_INT32),
            max_queue_delay_us=delay_us,
            instance_count=count,
            ignored=(*find_ignored(message), *ignored, *further),
        )
    except TextProtoError as error:
        raise ConfigError(f"{CONFIG_FILE}: {error}") from None


def check_identity(message: Message, name: str) -> None:
    """Hold the name, platform and backend against the model's.

    Raises:
        ConfigError: if one is another's.
    """
    for member, expected in {"name": name, **RUNTIMES}.items():
        field = find_single(message, member)
        if field is None:
            continue
        (value,) = field.values
        if not isinstance(value, bytes):
            raise misfit(field, "a string in quotes")
        if value not in (b"", expected.encode()):
            where = ", the name of its directory" if member == "name" else ""
            raise misfit(field, f'"{expected}"{where}')


def read_batching(message: Message) -> tuple[int, list[str]]:
    """The delay of ``dynamic_batching`` in µs, and its fields that have no effect.

    Raises:
        ConfigError: if a value does not fit.
    """
    field = find_single(message, "dynamic_batching")
    if field is None:
        return 0, []
    batching, delay = read_message(field, field.values[0]), "max_queue_delay_microseconds"
    ignored = list_names(batching, "dynamic_batching.", without={delay})
    return read_number(batching, delay, MAX_UINT64) or 0, ignored


def read_instances(message: Message) -> tuple[int | None, list[str]]:
    """The instances of all groups together, and the groups' fields that have no effect.

    Raises:
        ConfigError: if a value does not fit.
    """
    groups = [
        read_message(field, value)
        for field in message.fields
        if field.name == "instance_group"
        for value in field.values
    ]
    # A group that does not say its count, or says 0, has one instance.
    count = sum(read_number(group, "count", MAX_INT32) or 1 for group in groups)
    names = [name for g in groups for name in list_names(g, "instance_group.", without={"count"})]
    return count or None, list(dict.fromkeys(names))


def find_ignored(message: Message) -> list[str]:
    """Names of the fields on the first level that have no effect."""
    honoured = {"name", *RUNTIMES, "max_batch_size", "dynamic_batching", "instance_group"}
    return list_names(message, "", without=honoured | SILENT)


def list_names(message: Message, prefix: str, *, without: Iterable[str]) -> list[str]:
    """Names of the fields that are set, once each."""
    names = [f"{prefix}{field.name}" for field in message.fields if field.name not in without]
    return list(dict.fromkeys(names))


def find_single(message: Message, name: str) -> Field | None:
    """A field that may come once.

    Raises:
        ConfigError: if it comes twice, or as a list.
    """
    found = [field for field in message.fields if field.name == name]
    if len(found) > 1:
        raise ConfigError(f"{CONFIG_FILE}: line {found[1].line}: {name} comes twice, expected once")
    if found and found[0].is_list:
        raise misfit(found[0], "one value")
    return found[0] if found else None


def read_number(message: Message, name: str, most: int) -> int | None:
    """A whole number that is not negative; nothing where it is not set.

    Raises:
        ConfigError: if it is none, or larger than `most`.
    """
    field = find_single(message, name)
    if field is None:
        return None
    (value,) = field.values
    if not isinstance(value, int) or not 0 <= value <= most:
        raise misfit(field, f"a whole number from 0 to {most}")
    return value


def read_message(field: Field, value: Value) -> Message:
    """A value that is a message.

    Raises:
        ConfigError: if it is a scalar.
    """
    if not isinstance(value, Message):
        raise misfit(field, "fields in braces")
    return value


def misfit(field: Field, expected: str) -> ConfigError:
    """The error for a value of another type or range."""
    came = "a list" if field.is_list else describe(field.values[0])
    return ConfigError(
        f"{CONFIG_FILE}: line {field.line}: {field.name} is {came}, expected {expected}"
    )


def describe(value: Value) -> str:
    """A value as a message shows it."""
    if isinstance(value, bytes):
        return f'"{value[:64].decode(errors="backslashreplace")}"'
    if isinstance(value, Word):
        return value.text[:64]
    return "a message" if isinstance(value, Message) else str(value)
