"""Faults that come back at every look, said once in the log."""

import logging

import pytest

from service.engine.complaints import Complaints

LOCKED = PermissionError(13, "Permission denied", "/secret/path")


def complain(complaints: Complaints, subject: str, *errors: Exception | None) -> None:
    for error in errors:
        with complaints.about(subject):
            if error is not None:
                raise error


def test_a_fault_is_said_once_until_it_is_another(caplog: pytest.LogCaptureFixture) -> None:
    complain(Complaints(), "the file", LOCKED, LOCKED, OSError("it is gone"), LOCKED)
    assert caplog.messages == [
        "the file cannot be read: Permission denied",
        "the file cannot be read: it is gone",
        "the file cannot be read: Permission denied",
    ]


def test_what_was_well_may_complain_again(caplog: pytest.LogCaptureFixture) -> None:
    complain(Complaints(), "the file", LOCKED, None, LOCKED)
    assert caplog.messages == ["the file cannot be read: Permission denied"] * 2


def test_each_subject_complains_for_itself(caplog: pytest.LogCaptureFixture) -> None:
    complaints = Complaints()
    for subject in ("one", "other", "one"):
        complain(complaints, subject, LOCKED)
    assert [message.split()[0] for message in caplog.messages] == ["one", "other"]


def test_a_fault_of_ours_is_logged_with_where_it_was(caplog: pytest.LogCaptureFixture) -> None:
    complain(Complaints(), "model a", RuntimeError("bug"), RuntimeError("bug"))
    (record,) = caplog.records
    assert (record.message, record.levelno) == ("model a cannot be looked at", logging.ERROR)
    assert record.exc_info


def test_only_errors_are_held_back() -> None:
    with pytest.raises(KeyboardInterrupt), Complaints().about("model a"):
        raise KeyboardInterrupt
