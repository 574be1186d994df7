"""The part of JSON Schema that the server's OpenAPI description uses, checked by hand."""

import re
from collections.abc import Callable
from typing import Any, Final

TYPES: Final[dict[str, tuple[type, ...]]] = {
    "array": (list,),
    "boolean": (bool,),
    "integer": (int,),
    "null": (type(None),),
    "number": (int, float),
    "object": (dict,),
    "string": (str,),
}
BOUNDS: Final[dict[str, Callable[[Any, Any], bool]]] = {
    "minimum": lambda value, bound: value >= bound,
    "maximum": lambda value, bound: value <= bound,
    "minItems": lambda value, bound: len(value) >= bound,
    "maxItems": lambda value, bound: len(value) <= bound,
    "minLength": lambda value, bound: len(value) >= bound,
    "maxLength": lambda value, bound: len(value) <= bound,
    "maxProperties": lambda value, bound: len(value) <= bound,
    "pattern": lambda value, pattern: bool(re.search(pattern, value)),
}
KNOWN: Final = {
    "$ref",
    "additionalProperties",
    "anyOf",
    "const",
    "enum",
    "items",
    "properties",
    "required",
    "type",
    *BOUNDS,
}
SILENT: Final = {"default", "description", "example", "examples", "format", "title"}


def find_faults(value: Any, schema: dict[str, Any], document: dict[str, Any]) -> list[str]:
    """What is wrong with `value`; nothing where it fits `schema`.

    Args:
        value: a JSON value.
        schema: what it should be.
        document: in which references are looked up.
    """
    assert schema.keys() <= KNOWN | SILENT, f"a keyword is not checked here: {sorted(schema)}"
    if "$ref" in schema:
        return find_faults(value, look_up(schema["$ref"], document), document)
    if "anyOf" in schema:
        attempts = [find_faults(value, one, document) for one in schema["anyOf"]]
        return [] if [] in attempts else [fault for faults in attempts for fault in faults]
    faults = find_scalar_faults(value, schema)
    if isinstance(value, list):
        faults += [
            f for item in value for f in find_faults(item, schema.get("items", {}), document)
        ]
    if isinstance(value, dict):
        faults += find_member_faults(value, schema, document)
    return faults


def look_up(reference: str, document: dict[str, Any]) -> dict[str, Any]:
    """The schema behind a reference into the document."""
    found: Any = document
    for step in reference.removeprefix("#/").split("/"):
        found = found[step]
    assert isinstance(found, dict)
    return found


def find_scalar_faults(value: Any, schema: dict[str, Any]) -> list[str]:
    """What is wrong with the type, the choice or the bounds of a value."""
    faults = []
    if "type" in schema:
        is_boolean = isinstance(value, bool) and schema["type"] != "boolean"
        if is_boolean or not isinstance(value, TYPES[schema["type"]]):
            faults.append(f"{value!r:.80} is no {schema['type']}")
    if value not in schema.get("enum", [value]) or value != schema.get("const", value):
        faults.append(f"{value!r:.80} is none of the choices")
    if not faults:
        broken = [name for name in BOUNDS.keys() & schema if not BOUNDS[name](value, schema[name])]
        faults += [f"{value!r:.80} breaks {name} {schema[name]}" for name in broken]
    return faults


def find_member_faults(
    value: dict[str, Any], schema: dict[str, Any], document: dict[str, Any]
) -> list[str]:
    """What is wrong with the members of an object."""
    properties = schema.get("properties", {})
    faults = [f"{name} is missing" for name in schema.get("required", []) if name not in value]
    others = schema.get("additionalProperties", {})
    for name, member in value.items():
        if name in properties or isinstance(others, dict):
            faults += find_faults(member, properties.get(name, others), document)
        elif others is False:
            faults.append(f"{name} is unknown")
    return faults
