"""docs/export.md says which families are read and refused."""

import re

import pytest

from export.checkpoints.bert import PLAIN as BERT_SETTINGS
from export.checkpoints.config import Config
from export.checkpoints.detect import FAMILIES
from export.checkpoints.family import Family
from export.checkpoints.gpt2 import PLAIN as GPT2_SETTINGS
from export.checkpoints.places import KINDS, USUAL
from export.checkpoints.refused import REFUSED
from export.checkpoints.tensors import Tensors
from export.commands import app
from export.errors import CheckpointError
from export.record import Source, make_record
from model.contract import AttentionSpec
from tests.docs.markdown import ROOT, read_section, read_table

PAGE = (ROOT / "docs" / "export.md").read_text()
SECTION = read_section(PAGE, "Families")


def give_reason(family: Family) -> str:
    """What a family that is refused does."""
    with pytest.raises(CheckpointError) as caught:
        family.read(Tensors("x.pt", {}), Config(ROOT / "x.pt"), "")
    text = str(caught.value)
    return text.partition(f"{family.name}, which ")[2].partition("; expected")[0]


def test_every_family_that_is_read_has_its_row() -> None:
    rows = read_table(SECTION, "family", "tensors of a layer", "what is particular")
    assert [tuple(row[:2]) for row in rows] == [(one.name, one.tensors) for one in FAMILIES]


def test_every_family_that_is_refused_has_its_row_and_its_reason() -> None:
    rows = read_table(SECTION, "family", "tensors of a layer", "it")
    assert [tuple(row) for row in rows] == [
        (one.name, one.tensors, give_reason(one)) for one in REFUSED
    ]


def test_every_setting_that_is_refused_is_named() -> None:
    for name in (*BERT_SETTINGS, *GPT2_SETTINGS):
        assert f"`{name}`" in SECTION


def test_every_command_has_its_row() -> None:
    rows = [row[0].strip("`").split()[0] for row in read_table(PAGE, "command")]
    assert sorted(rows) == sorted(str(command.name) for command in app.registered_commands)


def test_every_kind_of_file_has_its_row() -> None:
    kinds = [kind for row in read_table(PAGE, "FILE")[:-1] for kind in row[0].split(", ")]
    assert kinds == [f"`{kind}`" for kind in KINDS]
    directory = read_table(PAGE, "FILE")[-1]
    assert re.findall(r"`(.+?)`", directory[1]) == list(USUAL)


def test_every_member_of_the_record_has_its_row() -> None:
    source = Source("family", "layer", {}, [])
    record = make_record(AttentionSpec(12, 3), {"model": {}}, source)
    rows = read_table(PAGE, "member")
    assert [name for row in rows for name in re.findall(r"`(\w+)`", row[0])] == list(record)
    assert re.findall(r"`(\w+)`", rows[0][1]) == list(record["source"])
