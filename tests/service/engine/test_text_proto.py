"""Protobuf's text format, held against protobuf's own parser and printer."""

import math
import re
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.engine.text_proto import Field, Message, TextProtoError, Value, Word, parse_text
from tests.service.engine.triton_config import draw_message, load_module

NUMBER_FOR_NAME = re.compile(r"expected the name of a field, found '[\d.]")
Tree = dict[str, list[Any]]

PIECES = [
    "a", "b_1", "inf", "true", "max_batch_size", ":", ":", ":", "{", "}", "<", ">", "[", "]", ",",
    ";", "-", "0", "7", "017", "0x1F", "1.5", ".5e3", "2f", '"x"', "'y'", '"\\n\\x41"', "#c\n",
]  # fmt: skip
LAYOUTS = [
    {},
    {"as_one_line": True},
    {"as_utf8": True},
    {"use_short_repeated_primitives": True, "pointy_brackets": True},
    {"use_index_order": True, "as_one_line": True, "use_short_repeated_primitives": True},
]


def gather(message: Message) -> Tree:
    """Values by name: where a field stands among the others says nothing."""
    tree: Tree = {}
    for field in message.fields:
        values = [gather(v) if isinstance(v, Message) else v for v in field.values]
        tree.setdefault(field.name, []).extend(values)
    return tree


def describe(message: Any) -> Tree:
    """The same of a message of protobuf."""
    tree: Tree = {}
    for field, value in message.ListFields():
        if field.message_type and field.message_type.GetOptions().map_entry:
            entries: list[Any] = [{"key": key, "value": value[key]} for key in value]
            kinds = field.message_type.fields_by_name
            tree[field.name] = [
                {
                    name: [describe_value(kinds[name], part)]
                    for name, part in entry.items()
                    if kinds[name].message_type or part  # defaults are not printed
                }
                for entry in entries
            ]
        else:
            values = value if field.is_repeated else [value]
            tree[field.name] = [describe_value(field, part) for part in values]
    return tree


def describe_value(field: Any, value: Any) -> Any:
    if field.message_type:
        return describe(value)
    if field.type == field.TYPE_ENUM:
        return Word(field.enum_type.values_by_number[value].name)
    if field.type == field.TYPE_BOOL:
        return Word(str(value).lower())
    return value.encode() if isinstance(value, str) else value


def same(ours: Any, theirs: Any) -> bool:
    """Whether two values agree; numbers as float32 too, in whose digits they were printed."""
    if isinstance(theirs, dict):
        return ours.keys() == theirs.keys() and all(same(ours[k], theirs[k]) for k in theirs)
    if isinstance(theirs, list):
        return len(ours) == len(theirs) and all(map(same, ours, theirs))
    if isinstance(theirs, float):
        number = float(ours.text) if isinstance(ours, Word) else float(ours)
        return number == theirs or np.float32(number) == theirs or math.isnan(number + theirs)
    return bool(ours == theirs) and type(ours) is type(theirs)


@given(message=draw_message(), layout=st.sampled_from(LAYOUTS))
def test_what_protobuf_prints_is_read_with_the_same_fields(
    message: Any, layout: dict[str, Any]
) -> None:
    text = load_module("text_format").MessageToString(message, **layout)
    assert same(gather(parse_text(text.encode())), describe(message))


def find_fault(content: bytes) -> str:
    """What is wrong with a text; empty where nothing is."""
    try:
        parse_text(content)
    except TextProtoError as error:
        return str(error)
    return ""


def accepts(text: str) -> bool:
    """Whether protobuf reads a text, all of whose fields it does not know."""
    empty = load_module("empty_pb2").Empty()
    try:
        load_module("text_format").Parse(text, empty, allow_unknown_field=True)
    except load_module("text_format").ParseError:
        return False
    return True


def is_told_apart(pieces: list[str]) -> bool:
    """Whether protobuf's parser in Python follows the specification for these pieces.

    Of fields it does not know it takes a list only behind a colon, and it takes a sign for a part
    of the number behind it, but only without space between.
    """
    return "-" not in pieces and not any(
        piece == "[" and before != ":" for before, piece in zip(["", *pieces], pieces, strict=False)
    )


@given(st.lists(st.sampled_from(PIECES), max_size=12).filter(is_told_apart))
def test_pieces_in_any_order_are_taken_or_refused_as_protobuf_does(pieces: list[str]) -> None:
    text = " ".join(pieces)
    fault = find_fault(text.encode())
    # Numbers of fields pass for their names in Python's parser, but not in the specification.
    if not NUMBER_FOR_NAME.search(fault):
        assert accepts(text) == (not fault)


@given(st.text(max_size=40) | st.binary(max_size=40).map(repr))
def test_any_text_is_read_or_refused(text: str) -> None:
    fault = find_fault(text.encode(errors="surrogatepass"))
    assert not fault or fault.startswith("line ")


def read(text: str) -> list[tuple[str, Value]]:
    return [(field.name, *field.values) for field in parse_text(text.encode()).fields]  # type: ignore[misc]


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("0", 0), ("-8", -8), ("- 8", -8), ("0x1f", 31), ("0X1F", 31), ("-0x10", -16), ("017", 15),
        ("18446744073709551615", 2**64 - 1), ("1.5", 1.5), ("1.", 1.0), (".5", 0.5), ("1e3", 1e3),
        ("-1.5E-3", -1.5e-3), ("2f", 2.0), ("1.5F", 1.5), ("-inf", -math.inf),
        ("-Infinity", -math.inf), ("inf", Word("inf")), ("true", Word("true")),
        ("KIND_GPU", Word("KIND_GPU")), ('"x"', b"x"), ("'x'", b"x"), ('"it\'s"', b"it's"),
        ('"a" \'b\'\n"c"', b"abc"), ('""', b""), ('"\N{SNOWMAN}"', "\N{SNOWMAN}".encode()),
        ('"# no comment"', b"# no comment"), ("{}", Message(())), ("<>", Message(())),
    ],
)  # fmt: skip
def test_values_of_every_kind_are_read(text: str, value: Value) -> None:
    ((_, found),) = read(f"a: {text}")
    assert found == value
    assert type(found) is type(value)


def test_a_message_may_come_without_colon_and_a_list_of_messages_too() -> None:
    message = Message((Field("b", 1, (1,)),))
    for text in ("a { b: 1 }", "a: { b: 1 }", "a < b: 1 >", "a: <b: 1>"):
        assert read(text) == [("a", message)]
    for text in ("a [ { b: 1 }, < b: 1 > ]", "a: [{b:1},{b:1}]"):
        assert parse_text(text.encode()).fields == (Field("a", 1, (message, message), True),)


def test_a_list_may_be_empty_and_says_that_it_is_one() -> None:
    assert parse_text(b"a: []").fields == (Field("a", 1, (), True),)
    assert parse_text(b"a: [1]").fields == (Field("a", 1, (1,), True),)


def test_fields_may_be_separated_or_not_and_commented() -> None:
    text = "a: 1, b: 2; c: 3 d: 4 # e: 5\n#f: 6\n\tg: 7"
    assert [name for name, _ in read(text)] == ["a", "b", "c", "d", "g"]


def test_a_field_knows_its_line() -> None:
    fields = parse_text(b"# 1\na: 1\n\nb {\n  c: 2\n}").fields
    assert [field.line for field in fields] == [2, 4]


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("[a.b]: 1", "a.b"),
        ("[type.googleapis.com/a.B] { c: 1 }", "type.googleapis.com/a.B"),
        ("[ a-b.c / d ]: 1", "a-b.c/d"),
    ],
)
def test_extensions_and_any_types_are_fields_with_longer_names(text: str, name: str) -> None:
    ((found, _),) = read(text)
    assert found == name


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("a:", "line 1: expected a value, found the end of the file"),
        ("a\n1", "line 2: expected ':', found '1'"),
        ("a: 08", "line 1: cannot read '08'"),
        ("a: 5x", "line 1: cannot read '5x'"),
        ("a: 1.2.3", "line 1: cannot read '1.2.3'"),
        ("a: --1", "line 1: expected a value, found '-'"),
        ("a: -x", "line 1: expected a value, found 'x'"),
        ("a: [1 2]", "line 1: expected ',' or ']', found '2'"),
        ("a: [1,]", "line 1: expected a value, found ']'"),
        ("a: [[1]]", "line 1: expected a value, found '['"),
        ("a [1]", "line 1: expected ':', found '1'"),
        ("a {", "line 1: expected the name of a field, found the end of the file"),
        ("a { >", "line 1: expected the name of a field, found '>'"),
        ("}", "line 1: expected the name of a field, found '}'"),
        ("1: 2", "line 1: expected the name of a field, found '1'"),
        ("a: 1,, b: 2", "line 1: expected the name of a field, found ','"),
        ("[a", "line 1: expected the name of an extension and ']', found the end of the file"),
        ('a: "x', "line 1: cannot read '\"x'"),
        ('a: "x\ny"', "line 1: cannot read '\"x'"),
        ('a: "\\q"', "line 1: '\\\\q' is no escape of a string"),
        ('\n\na: "\\400"', "line 3: '\\\\400' is no escape of a string"),
        ("a: \0", "line 1: cannot read '\\x00'"),
        ("a: 1 \x1c", "line 1: cannot read '\\x1c'"),
        (f"a: {'x' * 50}y: 1 {'z' * 50}", "line 1: expected the name of a field, found ':'"),
        (f"a {'x' * 50}", f"line 1: expected ':', found '{'x' * 40}...'"),
        (f"a: {'1' * 5000}", f"line 1: '{'1' * 40}...' has too many digits"),
    ],
)  # fmt: skip
def test_a_fault_is_told_with_its_line(text: str, said: str) -> None:
    with pytest.raises(TextProtoError) as caught:
        parse_text(text.encode())
    assert str(caught.value) == said


def test_a_text_that_is_not_utf8_is_refused() -> None:
    with pytest.raises(TextProtoError, match=r"^line 2: is not UTF-8$"):
        parse_text(b'a: 1\nb: "\xff"')


@pytest.mark.parametrize(("begin", "end"), ["{}", "<>"])
def test_nesting_is_bounded(begin: str, end: str) -> None:
    for depth in (63, 64, 100_000):
        text = f"{f'a {begin}' * depth}{end * depth}".encode()
        if depth == 63:
            parse_text(text)
            continue
        with pytest.raises(TextProtoError, match=r"^line 1: messages are nested more than 64 deep"):
            parse_text(text)
