"""What every answer of a model carries, whatever its door."""

from fastapi import Response

from service.inference import Answer


def respond(content: bytes, headers: dict[str, str], answer: Answer) -> Response:
    """A response with the times and the graph of its answer.

    https://www.w3.org/TR/server-timing/: durations are in milliseconds.
    """
    timing = f"queue;dur={answer.queue_ms:.3f}, compute;dur={answer.compute_ms:.3f}"
    marks = {"Server-Timing": timing, "Limelight-Graph": answer.graph}
    return Response(content, headers=headers | marks)
