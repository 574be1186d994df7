"""Who may reach the server: a machine's own users, or everyone on its networks."""

import logging
from ipaddress import IPv4Address, IPv6Address

from service.errors import StartError

log = logging.getLogger("limelight")


def check_exposure(
    host: IPv4Address | IPv6Address, *, has_keys: bool, allow_anonymous: bool
) -> None:
    """Refuse to listen where others are, without keys, unless that is said to be wanted.

    Args:
        host: address to listen on.
        has_keys: whether clients need a key.
        allow_anonymous: whether it is wanted that they need none.

    Raises:
        StartError: if everyone who reaches the address could use the server.
    """
    if host.is_loopback or has_keys:
        return
    if not allow_anonymous:
        raise StartError(
            f"everyone who reaches {host} could use this server: name a file of keys in "
            "LIMELIGHT_API_KEYS_FILE (limelight-serve hash-key --new makes one), or say that this "
            "is wanted with --allow-anonymous (LIMELIGHT_ALLOW_ANONYMOUS=true)"
        )
    log.warning("no keys are set: everyone who reaches %s may use this server", host)
