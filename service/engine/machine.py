"""How many cores this process may use: neither the host's count nor a container's is enough."""

import math
import os
from pathlib import Path

CGROUP_V2 = Path("/sys/fs/cgroup/cpu.max")
CGROUP_V1 = Path("/sys/fs/cgroup/cpu")


def count_cores(workers: int = 1) -> int:
    """Cores by affinity, bounded by the control group's quota, for one of `workers`; at least 1.

    A thread pool sized from the host stalls or is throttled in a container with fewer cores
    (onnxruntime issues 8313 and 10113).
    """
    allowed = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    quota = read_quota()
    cores = allowed or 1 if quota is None else min(allowed or 1, math.ceil(quota))
    return max(1, cores // workers)


def read_quota(v2: Path = CGROUP_V2, v1: Path = CGROUP_V1) -> float | None:
    """Cores that the control group grants; nothing where it sets no limit.

    https://docs.kernel.org/admin-guide/cgroup-v2.html, "cpu.max".
    """
    try:
        quota, period = v2.read_text().split()
        return None if quota == "max" else int(quota) / int(period)
    except (OSError, ValueError):
        pass
    try:
        quota_us = int((v1 / "cpu.cfs_quota_us").read_text())
        return quota_us / int((v1 / "cpu.cfs_period_us").read_text()) if quota_us > 0 else None
    except (OSError, ValueError):
        return None
