"""What one of several workers may use of what the settings give all of them."""

from typing import Final

from service.engine.machine import count_cores
from service.settings import Settings

# What all requests of the server take together. What bounds one request is the same in every
# worker, or it would depend on their number whether a request is answered.
DIVIDED: Final = (
    "max_queue_requests",
    "max_queue_bytes",
    "max_body_bytes_in_flight",
    "max_answer_bytes_in_flight",
    "max_connections",
)


def divide(settings: Settings) -> Settings:
    """The settings of each worker: its part of the threads and of the bounds, 1 at least."""
    workers = settings.workers
    parts = {name: max(1, getattr(settings, name) // workers) for name in DIVIDED}
    threads = settings.inference_threads // workers if settings.inference_threads else 0
    parts["inference_threads"] = max(1, threads) if threads else count_cores(workers)
    return settings.model_copy(update=parts)
