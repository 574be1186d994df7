"""The states of versions."""

from service.engine.model_index import IndexEntry, ModelIndex

A1 = IndexEntry("a", "1", "READY")
B2 = IndexEntry("b", "2", "LOADING")
B10 = IndexEntry("b", "10", "UNAVAILABLE", "weights.bin is missing")
B = IndexEntry("b", "", "UNAVAILABLE", "its directory cannot be read")


def fill(*entries: IndexEntry) -> ModelIndex:
    index = ModelIndex()
    for entry in entries:
        index.put(entry)
    return index


def test_entries_are_sorted_by_name_and_number() -> None:
    index = fill(B10, B2, A1, B)
    assert index.list_all() == [A1, B, B2, B10]
    assert index.list_of("b") == [B, B2, B10]
    assert index.list_of("c") == []


def test_an_entry_takes_the_place_of_the_one_before() -> None:
    ready = IndexEntry("b", "2", "READY")
    index = fill(B2, ready)
    assert index.find(("b", "2")) == ready
    assert index.list_all() == [ready]


def test_what_is_dropped_is_not_known_any_more() -> None:
    index = fill(A1, B2)
    index.drop(("a", "1"))
    assert index.find(("a", "1")) is None
    assert index.list_all() == [B2]
