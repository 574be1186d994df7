"""Lines of a file of keys, and how keys are found."""

import hashlib
import hmac
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.http.keys import MAX_KEY_BYTES, Key, Keys, KeysError, hash_key, parse_keys

FORM = (
    "role:hash, where role is infer or admin and hash is 64 hexadecimal digits; "
    "limelight-serve hash-key prints such a line"
)
INFER, ADMIN = b"the key of a client", b"the key of an operator"


def write_line(role: str, key: bytes) -> str:
    """A line as `sha256sum` would make it."""
    return f"{role}:{hashlib.sha256(key).hexdigest()}"


LINES = [write_line("infer", INFER), write_line("admin", ADMIN)]


def refuse(data: bytes) -> str:
    """What is said of a file."""
    with pytest.raises(KeysError) as caught:
        parse_keys(data)
    return str(caught.value)


def test_each_line_gives_a_key_its_role() -> None:
    known = parse_keys("\n".join(LINES).encode())
    assert known.find(INFER) == Key("infer", hashlib.sha256(INFER).digest())
    assert known.find(ADMIN) == Key("admin", hashlib.sha256(ADMIN).digest())


@pytest.mark.parametrize(
    "text",
    [
        "# ours\n\n{0}  # of the tests\n   \n\t{1}\n",
        "{0}\r\n{1}\r\n",
        "\ufeff{0}\n{1}",
        "#\N{SNOWMAN}\n{0}\n{1}",
    ],
    ids=["comments", "windows", "byte-order-mark", "unicode"],
)
def test_comments_blank_lines_and_ends_of_lines_do_not_count(text: str) -> None:
    found = parse_keys(text.format(*LINES).encode())
    assert [key.role for key in found.known] == ["infer", "admin"]


def test_a_hash_may_be_written_in_capitals() -> None:
    role, _, digest = LINES[0].partition(":")
    assert parse_keys(f"{role}:{digest.upper()}".encode()).find(INFER)


@pytest.mark.parametrize(
    "line",
    [
        "hunter2-hunter2-hunter2",
        "root:" + "0" * 64,
        "INFER:" + "0" * 64,
        "infer:" + "0" * 63,
        "infer:" + "0" * 65,
        "infer:" + "g" * 64,
        "infer: " + "0" * 64,
        "infer" + "0" * 64,
        "infer:" + "0" * 64 + " admin:" + "1" * 64,
        "infer:" + "\N{ARABIC-INDIC DIGIT ZERO}" * 64,
    ],
)
def test_any_other_line_is_refused_by_its_number_and_not_quoted(line: str) -> None:
    said = refuse(f"# ours\n{LINES[0]}\n{line}\n".encode())
    assert said == f"LIMELIGHT_API_KEYS_FILE, line 3: expected {FORM}"


def test_a_key_that_comes_twice_is_refused() -> None:
    """Whatever the roles: the weaker one might be the one that was meant."""
    twice = "\n".join([*LINES, write_line("admin", INFER)])
    assert refuse(twice.encode()) == (
        "LIMELIGHT_API_KEYS_FILE, line 3: the key of line 1 again; remove one"
    )


@pytest.mark.parametrize("data", [b"", b"\n", b"# none yet\n"])
def test_a_file_without_a_key_is_refused(data: bytes) -> None:
    said = "LIMELIGHT_API_KEYS_FILE holds no key; limelight-serve hash-key --new makes one"
    assert refuse(data) == said


def test_a_file_that_is_not_text_is_refused() -> None:
    said = refuse(LINES[0].encode("utf-16"))
    assert said == f"LIMELIGHT_API_KEYS_FILE is not a text file, expected lines of {FORM}"


@given(st.binary() | st.text().map(str.encode))
def test_a_file_is_read_or_refused(data: bytes) -> None:
    try:
        found = parse_keys(data).known
    except KeysError:
        return
    assert found


@given(st.lists(st.sampled_from(["infer", "admin"]), min_size=1, max_size=5), st.data())
def test_what_is_written_is_found(roles: list[Any], data: st.DataObject) -> None:
    texts = data.draw(
        st.lists(st.binary(max_size=40), min_size=len(roles), max_size=len(roles), unique=True)
    )
    lines = [write_line(role, text) for role, text in zip(roles, texts, strict=True)]
    known = parse_keys("\n".join(lines).encode())
    for role, text in zip(roles, texts, strict=True):
        key = known.find(text)
        assert key
        assert key.role == role


@pytest.mark.parametrize("key", [b"", b"other", INFER[:-1], INFER + b"\n", INFER.upper()])
def test_any_other_key_is_not_found(key: bytes) -> None:
    assert parse_keys("\n".join(LINES).encode()).find(key) is None


def test_a_key_that_is_longer_than_any_of_ours_is_not_hashed() -> None:
    long = b"x" * (MAX_KEY_BYTES + 1)
    assert Keys([Key("infer", hash_key(long))]).find(long) is None
    assert Keys([Key("infer", hash_key(long[1:]))]).find(long[1:])


@pytest.mark.parametrize("key", [b"first", b"second", b"third", b"none of them"])
def test_every_key_is_compared_whichever_fits(key: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    compare, compared = hmac.compare_digest, list[bytes]()

    def compare_noted(left: bytes, right: bytes) -> bool:
        compared.append(right)
        return compare(left, right)

    monkeypatch.setattr(hmac, "compare_digest", compare_noted)
    known = Keys([Key("infer", hash_key(each)) for each in (b"first", b"second", b"third")])
    known.find(key)
    assert compared == [each.digest for each in known.known]


def test_a_label_tells_keys_apart_and_not_what_they_are() -> None:
    digest = hashlib.sha256(INFER).hexdigest()
    assert Key("infer", bytes.fromhex(digest)).label == f"infer:{digest[:8]}"
