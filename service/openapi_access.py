"""What the OpenAPI description says of requests that are refused for who sends them.

It is that of this server. Where keys are set, each operation names the key that it takes: a scheme
that is always there and optional would promise a lock to a reader of a server that has none.
https://spec.openapis.org/oas/v3.1.0#security-scheme-object
"""

from typing import Any, Final

from service.http.access import SAFE, Access
from service.settings import Settings

SCHEME: Final = "key"
SCHEMES: Final = {
    SCHEME: {
        "type": "http",
        "scheme": "bearer",
        "description": "A key of LIMELIGHT_API_KEYS_FILE. Its role is infer, or admin.",
    }
}
NO_KEY: Final = "No key came, or one that is not known."
WRONG_ROLE: Final = "The key has the role infer, and this needs admin."
ANOTHER_SITE: Final = "A page of another site sent this, and its origin is not listed."

Operation = dict[str, Any]


def add_access(document: dict[str, Any], settings: Settings, error: dict[str, Any]) -> None:
    """Let every operation say whose requests it refuses, and how.

    Args:
        document: of OpenAPI.
        settings: of the process.
        error: the content of an answer that tells of an error.
    """
    if settings.api_keys_file is not None:
        document["components"]["securitySchemes"] = SCHEMES
    for path, operations in document["paths"].items():
        for method, operation in operations.items():
            for status, text in list_refusals(settings, method.upper(), path).items():
                operation["responses"][status] = {"description": text, "content": error}
            if "401" in operation["responses"]:
                operation["security"] = [{SCHEME: []}]


def list_refusals(settings: Settings, method: str, path: str) -> dict[str, str]:
    """The statuses of refusals, each with what it means.

    Args:
        settings: of the process.
        method: in capitals.
        path: with the names of its parameters in braces.
    """
    if settings.api_keys_file is None:
        return {} if method in SAFE else {"403": ANOTHER_SITE}
    need = Access(settings.metrics_without_key).find_need(method, path)
    if need == "nothing":
        return {}
    return {"401": NO_KEY} | ({"403": WRONG_ROLE} if need == "admin" else {})
