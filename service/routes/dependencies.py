"""What endpoints ask FastAPI for."""

from typing import Annotated

from fastapi import Depends, Request

from service.state import State


async def get_state(request: Request) -> State:
    """The state of the application that a request came to."""
    # Not a plain function: FastAPI would run that on a thread, a hop of 0.1 ms.
    state: State = request.app.state.service
    return state


StateDep = Annotated[State, Depends(get_state)]
