"""The settings of a replica."""

import math

from service.errors import StartError
from service.settings import Settings


def load_settings(cores: float) -> Settings:
    """Read the environment, and share out the cores.

    Several replicas may be on one machine, and Ray binds none of them to its cores: what is not
    set follows from what the replica was granted. A request gets one core, for nobody knows here
    whether it is alone.

    Args:
        cores: that Ray granted, perhaps a part of one (`num_cpus`).

    Raises:
        SettingsError: if a setting does not fit.
        StartError: if it does not fit a replica, or the application is open to everyone without
            that being said to be wanted.
    """
    settings = Settings.load()
    check_fit(settings)
    return settings.model_copy(
        update={
            "inference_threads": settings.inference_threads or max(1, math.ceil(cores)),
            "intra_op_threads": settings.intra_op_threads or 1,
        }
    )


def check_fit(settings: Settings) -> None:
    """Refuse what a replica cannot do.

    Raises:
        StartError: saying what, and what to set instead.
    """
    if settings.model_control == "explicit":
        raise StartError(
            "LIMELIGHT_MODEL_CONTROL is 'explicit': a request to load a model would reach one "
            "replica of several, expected 'none' or 'poll'"
        )
    if settings.metrics_port is not None:
        raise StartError(
            f"LIMELIGHT_METRICS_PORT is {settings.metrics_port}: a replica listens on no port, "
            "expected none; GET /metrics answers for one replica, Ray's own metrics for all"
        )
    if settings.api_keys_file is None and not settings.allow_anonymous:
        raise StartError(
            "everyone who reaches Serve's proxies could use this application: name a file of keys "
            "in LIMELIGHT_API_KEYS_FILE, or say that this is wanted with "
            "LIMELIGHT_ALLOW_ANONYMOUS=true"
        )
