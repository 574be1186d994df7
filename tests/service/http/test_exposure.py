"""Listening where others are, without keys, must be said to be wanted."""

import logging
from ipaddress import ip_address

import pytest

from service.errors import StartError
from service.http.exposure import check_exposure

WIDE = ["0.0.0.0", "::", "192.0.2.1", "10.0.0.7", "169.254.1.1", "fe80::1", "::ffff:192.0.2.1"]  # noqa: S104 - not a bind


@pytest.mark.parametrize("host", ["127.0.0.1", "127.8.9.1", "::1"])
@pytest.mark.parametrize("has_keys", [True, False])
def test_a_machine_s_own_users_are_let_in(
    host: str, has_keys: bool, caplog: pytest.LogCaptureFixture
) -> None:
    check_exposure(ip_address(host), has_keys=has_keys, allow_anonymous=False)
    assert not caplog.records


@pytest.mark.parametrize("host", WIDE)
def test_everyone_is_not_unless_that_is_wanted(host: str) -> None:
    with pytest.raises(StartError) as caught:
        check_exposure(ip_address(host), has_keys=False, allow_anonymous=False)
    assert str(caught.value) == (
        f"everyone who reaches {ip_address(host)} could use this server: name a file of keys in "
        "LIMELIGHT_API_KEYS_FILE (limelight-serve hash-key --new makes one), or say that this is "
        "wanted with --allow-anonymous (LIMELIGHT_ALLOW_ANONYMOUS=true)"
    )


@pytest.mark.parametrize("host", WIDE)
def test_where_it_is_wanted_the_log_says_so(host: str, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        check_exposure(ip_address(host), has_keys=False, allow_anonymous=True)
    assert [record.getMessage() for record in caplog.records] == [
        f"no keys are set: everyone who reaches {ip_address(host)} may use this server"
    ]


@pytest.mark.parametrize("host", WIDE)
@pytest.mark.parametrize("allow_anonymous", [True, False])
def test_keys_are_enough(
    host: str, allow_anonymous: bool, caplog: pytest.LogCaptureFixture
) -> None:
    check_exposure(ip_address(host), has_keys=True, allow_anonymous=allow_anonymous)
    assert not caplog.records
