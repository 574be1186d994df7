"""What tests of held requests share."""

from collections.abc import Callable

import pytest

from service.http import prompting
from tests.service.http.prompter import Prompter


@pytest.fixture
def patience_s(monkeypatch: pytest.MonkeyPatch) -> Callable[[float], None]:
    """Chooses how long a request is held."""
    return lambda seconds: monkeypatch.setattr(prompting, "PATIENCE_S", seconds)


@pytest.fixture
def prompter() -> Prompter:
    """Answers at once what it is asked."""
    return Prompter()
