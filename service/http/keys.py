"""The keys that clients send, and the role of each.

A key is a long random text; the server holds its SHA-256 alone. A slow hash (bcrypt, argon2) is for
passwords, which people choose and others guess: nobody guesses 256 random bits, however fast each
try is, and a slow hash on every request would be a way to keep the server busy.
"""

import hashlib
import hmac
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Literal, cast

from service.errors import StartError

Role = Literal["infer", "admin"]

SETTING: Final = "LIMELIGHT_API_KEYS_FILE"
MAX_KEY_BYTES: Final = 512
LINE: Final = re.compile(r"(infer|admin):([0-9A-Fa-f]{64})")
FORM: Final = (
    "role:hash, where role is infer or admin and hash is 64 hexadecimal digits; "
    "limelight-serve hash-key prints such a line"
)


class KeysError(StartError):
    """A file of keys cannot be used; the text says what to change, and quotes no part of it."""


@dataclass(frozen=True, slots=True)
class Key:
    """What the server knows of one key.

    Attributes:
        role: infer may read and infer; admin may do everything.
        digest: SHA-256 of the key, 32 bytes.
    """

    role: Role
    digest: bytes

    @property
    def label(self) -> str:
        """Tells keys apart in a log: the role, and the first 32 of the 256 bits of the hash."""
        return f"{self.role}:{self.digest[:4].hex()}"


@dataclass(frozen=True, slots=True)
class Keys:
    """All keys of a server."""

    known: Sequence[Key]

    def find(self, key: bytes) -> Key | None:
        """What is known of a key that a client sent; none if it is not one of ours.

        Every key is compared, each in constant time, so that the time tells nothing.
        """
        if len(key) > MAX_KEY_BYTES:
            return None
        digest, found = hash_key(key), None
        for each in self.known:
            if hmac.compare_digest(digest, each.digest):
                found = each
        return found


def hash_key(key: bytes) -> bytes:
    """SHA-256 of a key, 32 bytes."""
    return hashlib.sha256(key).digest()


def parse_keys(data: bytes) -> Keys:
    """Read the content of a file of keys: one ``role:hash`` a line, ``#`` begins a comment.

    Raises:
        KeysError: if a line is anything else, a key comes twice, or there is none.
    """
    lines: dict[bytes, int] = {}
    known = []
    for number, text in enumerate(decode(data).split("\n"), start=1):
        entry = text.partition("#")[0].strip()
        if not entry:
            continue
        key = parse_line(entry, number)
        if key.digest in lines:
            first = lines[key.digest]
            raise KeysError(f"{SETTING}, line {number}: the key of line {first} again; remove one")
        lines[key.digest] = number
        known.append(key)
    if not known:
        raise KeysError(f"{SETTING} holds no key; limelight-serve hash-key --new makes one")
    return Keys(known)


def decode(data: bytes) -> str:
    """The text of a file of keys, without the mark that some editors put first.

    Raises:
        KeysError: if it is not text.
    """
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise KeysError(f"{SETTING} is not a text file, expected lines of {FORM}") from None


def parse_line(entry: str, number: int) -> Key:
    """Read one line.

    Raises:
        KeysError: if it is not of the form; what stands there may be a key, and is not quoted.
    """
    found = LINE.fullmatch(entry)
    if not found:
        raise KeysError(f"{SETTING}, line {number}: expected {FORM}")
    return Key(cast("Role", found[1]), bytes.fromhex(found[2]))
