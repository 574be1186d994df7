"""docs/settings.md says what the code does."""

import re
from pathlib import Path

from service.settings import PREFIX, Settings

PAGE = Path(__file__).parents[2] / "docs" / "settings.md"


def spell(default: object) -> str:
    """A default as the page spells it."""
    if default is None:
        return ""
    return str(default).lower() if isinstance(default, bool) else str(default)


def test_every_setting_is_documented_with_its_default_and_meaning() -> None:
    rows = re.findall(r"^\| `(\w+)` \| `(.*?)` \| (.*) \|$", PAGE.read_text(), re.MULTILINE)
    documented = {name: (default, meaning) for name, default, meaning in rows}
    assert documented == {
        PREFIX + name.upper(): (spell(field.default), field.description)
        for name, field in Settings.model_fields.items()
    }
