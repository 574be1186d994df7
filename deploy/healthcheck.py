"""Exit with 0 if the server in this container is ready to answer, else with 1."""

import http.client
import os
import sys


def is_ready(port: int) -> bool:
    """Whether the server on this machine says so within four seconds."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=4)
    connection.request("GET", "/v2/health/ready")
    return connection.getresponse().status == http.HTTPStatus.OK


if __name__ == "__main__":
    sys.exit(0 if is_ready(int(os.environ.get("LIMELIGHT_PORT", "8000"))) else 1)
