"""What a server says of itself and of its models."""

from model.contract import AttentionSpec
from service.protocol.v2_metadata import describe_model, describe_server

SPEC = AttentionSpec(d_model=6, num_heads=3, kdim=8, vdim=10)


def test_a_server_names_the_extensions_that_work() -> None:
    assert describe_server("1.2", can_load=False).model_dump() == {
        "name": "limelight",
        "version": "1.2",
        "extensions": [
            "binary_tensor_data",
            "model_configuration",
            "parameters",
            "schedule_policy",
            "statistics",
        ],
    }


def test_loading_is_named_where_clients_may_load() -> None:
    can, cannot = (describe_server("1.2", can_load=can).extensions for can in (True, False))
    assert can == [*cannot, "model_repository"]


def test_a_model_names_its_tensors_with_the_sizes_that_are_fixed() -> None:
    said = describe_model("demo", ["1", "3"], SPEC, "cpu").model_dump()
    tensors = {t["name"]: (t["datatype"], t["shape"]) for t in said["inputs"] + said["outputs"]}
    assert tensors == {
        "query": ("FP32", [-1, -1, 6]),
        "key": ("FP32", [-1, -1, 8]),
        "value": ("FP32", [-1, -1, 10]),
        "mask": ("BOOL", [-1, 1, -1, -1]),
        "key_mask": ("BOOL", [-1, -1]),
        "bias": ("FP32", [-1, 1, -1, -1]),
        "output": ("FP32", [-1, -1, 6]),
        "attention_weights": ("FP32", [-1, 3, -1, -1]),
    }
    assert (said["name"], said["versions"]) == ("demo", ["1", "3"])
    assert said["platform"] == "onnxruntime_onnx"


def test_a_model_says_where_it_computes_and_its_sizes() -> None:
    assert describe_model("demo", ["1"], SPEC, "cuda").properties == {
        "provider": "cuda",
        "d_model": "6",
        "num_heads": "3",
        "kdim": "8",
        "vdim": "10",
    }
