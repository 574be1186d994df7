"""The command ``limelight-serve hash-key``: from a key to its line in the file of keys."""

import argparse
import getpass
import re
import secrets
import sys
from collections.abc import Sequence
from typing import Final, get_args

from service.errors import StartError
from service.http.keys import MAX_KEY_BYTES, SETTING, Role, hash_key

NEW_KEY_BYTES: Final = 32
MIN_KEY_BYTES: Final = 16
TOKEN: Final = re.compile(rb"[A-Za-z0-9._~+/-]+=*")  # RFC 6750, 2.1: what a header may carry


def run(arguments: Sequence[str]) -> None:
    """Print the line of a key: of one that is read from standard input, or of a new one.

    The line goes to standard output and a new key to standard error, so that
    ``limelight-serve hash-key --new >> keys`` leaves the line alone in the file.

    Raises:
        StartError: if what was read is no key.
    """
    options = read_options(arguments)
    key = make_key() if options.new else read_key()
    check_key(key)
    print(f"{options.role}:{hash_key(key).hex()}", flush=True)  # noqa: T201 - what was asked for


def read_options(arguments: Sequence[str]) -> argparse.Namespace:
    """The options `role` and `new`."""
    parser = argparse.ArgumentParser(
        "limelight-serve hash-key",
        description=f"Print the line of a key for the file that {SETTING} names. The key is read "
        "from standard input.",
    )
    parser.add_argument(
        "--role", choices=get_args(Role), default="infer", help="what the key may do"
    )
    parser.add_argument(
        "--new", action="store_true", help="make a random key, and show it once on standard error"
    )
    return parser.parse_args(arguments)


def make_key() -> bytes:
    """A random key, shown on standard error."""
    key = secrets.token_urlsafe(NEW_KEY_BYTES)
    print(f"key, shown this once: {key}", file=sys.stderr, flush=True)  # noqa: T201 - what was asked for
    return key.encode()


def read_key() -> bytes:
    """A key from standard input, without the end of its line; a terminal does not show it."""
    if sys.stdin.isatty():
        return getpass.getpass("key: ").encode()
    # One byte more than a key and its end of line may have, so that a longer one is seen.
    return sys.stdin.buffer.read(MAX_KEY_BYTES + 3).removesuffix(b"\n").removesuffix(b"\r")


def check_key(key: bytes) -> None:
    """Refuse what is easily guessed, or cannot be sent.

    Raises:
        StartError: saying what a key is; the text does not repeat it.
    """
    if not MIN_KEY_BYTES <= len(key) <= MAX_KEY_BYTES:
        raise StartError(
            f"the key has {count(key)} characters, expected {MIN_KEY_BYTES} to {MAX_KEY_BYTES}; "
            "limelight-serve hash-key --new makes a good one"
        )
    if not TOKEN.fullmatch(key):
        raise StartError(
            "the key has characters that the header 'Authorization: Bearer KEY' cannot carry, "
            "expected letters, digits and any of . _ ~ + / - with = at the end alone"
        )


def count(key: bytes) -> str:
    """How long a key is, as far as it was read."""
    return str(len(key)) if len(key) <= MAX_KEY_BYTES else f"more than {MAX_KEY_BYTES}"
