"""schemathesis: what OpenAPI says is what is served, and nothing ends in a fault of ours."""

import os
import subprocess
import sys
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path

import pytest

# A schema cannot say that data has as many elements as the shape asks for, or that two tensors
# have one batch size: most random requests that fit the schema are refused, and rightly.
UNSAYABLE = "positive_data_acceptance"
# Parts of the protocol that are not offered are answered 501, as the protocol wants it.
CONFIGURATION = """
[checks.not_a_server_error]
expected-statuses = ["2xx", "4xx", "501"]
"""

pytestmark = pytest.mark.skipif(not find_spec("schemathesis"), reason="schemathesis is missing")


def test_nothing_undocumented_is_answered_and_nothing_fails(
    server_url: str, auth_headers: Mapping[str, str], tmp_path: Path
) -> None:
    headers = [part for name, text in auth_headers.items() for part in ("-H", f"{name}: {text}")]
    (tmp_path / "schemathesis.toml").write_text(CONFIGURATION)
    command = [sys.executable, "-m", "schemathesis.cli", "run", f"{server_url}/openapi.json"]
    options = ["--max-examples", "30", "--seed", "1", "--continue-on-failure"]
    checks = ["--checks", "all", "--exclude-checks", UNSAYABLE]
    done = subprocess.run(
        [*command, *options, *checks, *headers],
        cwd=tmp_path,
        env=os.environ | {"NO_COLOR": "1"},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-8000:] + done.stderr[-2000:]
