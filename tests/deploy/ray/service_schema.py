"""The schema of KubeRay's RayService, strictly: a field that is unknown fails.

KubeRay publishes its API as Go types (`ray-operator/apis/ray/v1`), and as definitions of 1 MB that
repeat Kubernetes' own. Here are their fields as of KubeRay 1.3; what is Kubernetes' refers to it.
"""

from collections.abc import Callable, Collection
from typing import Any, Final

Schema = dict[str, Any]

TEXT: Final[Schema] = {"type": "string"}
COUNT: Final[Schema] = {"type": "integer"}
FLAG: Final[Schema] = {"type": "boolean"}
TEXTS: Final[Schema] = {"type": "object", "additionalProperties": TEXT}


def make_schema(refer: Callable[[str], Schema]) -> Schema:
    """The schema of a whole manifest.

    Args:
        refer: gives the schema of a type of Kubernetes by its name.
    """
    spec = describe({"serveConfigV2": TEXT, "rayClusterConfig": describe_cluster(refer)})
    spec["required"] = ["serveConfigV2", "rayClusterConfig"]
    return describe(
        {
            "apiVersion": {"const": "ray.io/v1"},
            "kind": {"const": "RayService"},
            "metadata": refer("V1ObjectMeta"),
            "spec": spec | {"properties": spec["properties"] | describe_rollout(refer)},
        },
        ["apiVersion", "kind", "metadata", "spec"],
    )


def describe(fields: Schema, needed: Collection[str] = ()) -> Schema:
    """An object with these fields and no other."""
    return {
        "type": "object",
        "properties": fields,
        "required": list(needed),
        "additionalProperties": False,
    }


def describe_rollout(refer: Callable[[str], Schema]) -> Schema:
    """Fields of a service beside what it serves, and where."""
    upgrade = describe({"type": {"enum": ["NewCluster", "None"]}})
    return {
        "serveService": refer("V1Service"),
        "upgradeStrategy": upgrade,
        "excludeHeadPodFromServeSvc": FLAG,
    }


def describe_cluster(refer: Callable[[str], Schema]) -> Schema:
    """Of rayClusterConfig."""
    group = {"rayStartParams": TEXTS, "template": refer("V1PodTemplateSpec")}
    head = {"serviceType": TEXT, "headService": refer("V1Service"), "enableIngress": FLAG}
    worker = {
        "groupName": TEXT,
        **dict.fromkeys(("replicas", "minReplicas", "maxReplicas"), COUNT),
        **dict.fromkeys(("numOfHosts", "idleTimeoutSeconds"), COUNT),
        "suspend": FLAG,
    }
    workers = describe(worker | group, ["groupName", "minReplicas", "maxReplicas", *group])
    return describe(
        {
            "rayVersion": TEXT,
            "headGroupSpec": describe(head | group, group),
            "workerGroupSpecs": {"type": "array", "items": workers},
            "enableInTreeAutoscaling": FLAG,
            "autoscalerOptions": describe_autoscaler(refer),
            "headServiceAnnotations": TEXTS,
            "suspend": FLAG,
        },
        ["headGroupSpec"],
    )


def describe_autoscaler(refer: Callable[[str], Schema]) -> Schema:
    """Of autoscalerOptions."""
    return describe(
        {
            "resources": refer("V1ResourceRequirements"),
            "image": TEXT,
            "imagePullPolicy": TEXT,
            "env": {"type": "array", "items": refer("V1EnvVar")},
            "envFrom": {"type": "array", "items": refer("V1EnvFromSource")},
            "volumeMounts": {"type": "array", "items": refer("V1VolumeMount")},
            "securityContext": refer("V1SecurityContext"),
            "idleTimeoutSeconds": COUNT,
            "upscalingMode": {"enum": ["Default", "Aggressive", "Conservative"]},
        }
    )
