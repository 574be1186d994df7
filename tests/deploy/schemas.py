"""Strict schemas of Kubernetes objects: a field that is unknown fails, as does a wrong type.

Those of Kubernetes itself come from `kubernetes-validate`, which carries what the API server
publishes. Those of KServe are read off the classes of its SDK, which are generated from its API; a
field that holds a type of Kubernetes refers to the schema of that type. That of KubeRay is written
down in `tests/deploy/ray/service_schema.py`.
"""

import json
import re
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from typing import Any, Final

import jsonschema
import kubernetes_validate
from referencing import Registry, Resource

from tests.deploy.ray.service_schema import make_schema

KUBERNETES: Final = "1.37"
DEFINITIONS: Final = files(kubernetes_validate).joinpath(
    f"kubernetes-json-schema/v{KUBERNETES}.0-local-strict/_definitions.json"
)
PLAIN: Final = {"str": "string", "int": "integer", "bool": "boolean", "object": "object"}
CONTAINERS: Final = re.compile(r"(list|dict)[\[(](?:str, )?(\w+)[\])]")

Schema = dict[str, Any]


def find_faults(manifest: Mapping[str, Any]) -> list[str]:
    """What is wrong with a manifest, each with the path to it; nothing where it is right."""
    version = manifest["apiVersion"]
    if version.startswith("serving.kserve.io/"):
        return find_faults_for_kserve(manifest)
    if version.startswith("ray.io/"):
        return find_faults_by(make_schema(refer), manifest)
    try:
        kubernetes_validate.validate(dict(manifest), KUBERNETES, strict=True)
    except kubernetes_validate.ValidationError as error:
        return [describe(error)]
    return []


def find_faults_for_kserve(manifest: Mapping[str, Any]) -> list[str]:
    """The same for an object of KServe."""
    version = manifest["apiVersion"].rpartition("/")[2]
    name = f"{version.capitalize()}{manifest['kind']}"
    return find_faults_by({"$ref": f"#/$defs/{name}", "$defs": collect(name)}, manifest)


def find_faults_by(schema: Schema, manifest: Mapping[str, Any]) -> list[str]:
    """The same by a schema that may refer to those of Kubernetes."""
    resource = Resource.from_contents(read_definitions())
    validator = jsonschema.Draft202012Validator(schema, registry=resource @ Registry())
    return [describe(error) for error in validator.iter_errors(manifest)]


def describe(error: jsonschema.ValidationError) -> str:
    """One line that names the place and the fault."""
    place = ".".join(map(str, error.absolute_path))
    return f"{place}: {error.message}"


def collect(name: str) -> dict[str, Schema]:
    """The schemas of a class of KServe's SDK and of all that it holds."""
    schemas: dict[str, Schema] = {}
    missing = {name}
    while missing:
        found = missing.pop()
        schemas[found] = describe_class(found)
        missing |= set(re.findall(r'"#/\$defs/(\w+)"', json.dumps(schemas[found]))) - schemas.keys()
    return schemas


def describe_class(name: str) -> Schema:
    """The schema of one class: its fields, those that it must have, and no other."""
    kind = find_class(name)
    fields = {
        kind.attribute_map[attribute]: describe_type(text)
        for attribute, text in kind.openapi_types.items()
        if attribute != "status"  # the cluster's to write
    }
    needed = [kind.attribute_map[each] for each in kind.openapi_types if is_needed(kind, each)]
    return {
        "type": "object",
        "properties": fields,
        "required": needed,
        "additionalProperties": False,
    }


def describe_type(text: str) -> Schema:
    """The schema of a type as the SDK writes it, such as ``list[V1Container]``."""
    if found := CONTAINERS.fullmatch(text):
        kind, inner = found.groups()
        if kind == "list":
            return {"type": "array", "items": describe_type(inner)}
        return {"type": "object", "additionalProperties": describe_type(inner)}
    if text in PLAIN:
        return {"type": PLAIN[text]}
    if find_class(text):
        return {"$ref": f"#/$defs/{text}"}
    return refer(text)


def refer(name: str) -> Schema:
    """The schema of a type of Kubernetes, such as ``V1Container``."""
    definition = find_definition(name)
    if definition is None:
        return {"not": {}}  # the SDK lacks this class: what cannot be checked is refused
    return {"$ref": f"{read_definitions()['$id']}#/$defs/{definition}"}


def find_class(name: str) -> Any:
    """The class of KServe's SDK of that name, or None: then it is a type of Kubernetes."""
    import kserve.models

    return getattr(kserve.models, name, None)


def find_definition(name: str) -> str | None:
    """The name that Kubernetes has for a type such as ``V1Container`` or ``ResourceQuantity``."""
    ending = name.removeprefix("K8sIo").lower()
    found = [each for each in read_definitions()["$defs"] if flatten(each).endswith(ending)]
    return min(found, key=lambda each: (".core." not in each, each), default=None)


def flatten(name: str) -> str:
    """``io.k8s.api.core.v1.Container`` without dots and capitals."""
    return name.replace(".", "").lower()


def is_needed(kind: Any, attribute: str) -> bool:
    """Whether an object must have a field: the SDK's classes refuse None there."""
    from kserve.configuration import Configuration

    empty = kind.__new__(kind)
    empty.local_vars_configuration = Configuration()
    try:
        setattr(empty, attribute, None)
    except ValueError:
        return True
    return False


@cache
def read_definitions() -> Schema:
    """The schemas of all types of Kubernetes, by name."""
    definitions: Schema = json.loads(DEFINITIONS.read_text())
    return definitions
