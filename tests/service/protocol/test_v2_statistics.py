"""The answer of the statistics extension, member by member."""

import json
from typing import Any

import pytest
from pydantic import ValidationError

from service.protocol.v2_statistics import describe_statistics
from service.statistics import BatchCounts, ModelCounts


def make_counts(**changes: Any) -> ModelCounts:
    """Counts of one version, all different."""
    members: dict[str, Any] = {
        "name": "demo",
        "version": "2",
        "last_inference_ms": 1_700_000_000_123,
        "inference_count": 30,
        "success_count": 10,
        "success_ns": 10_001,
        "queue_ns": 12_000,
        "input_ns": 13_000,
        "infer_ns": 14_000,
        "output_ns": 15_000,
        "fail_ns": 11_000,
        "failures": {"REJECTED": 1, "CANCELED": 2, "BACKEND": 3, "OTHER": 4},
        "batches": {
            12: BatchCounts(12, 2, input_ns=33_000, infer_ns=34_000, output_ns=35_000),
            3: BatchCounts(3, 7, input_ns=23_000, infer_ns=24_000, output_ns=25_000),
        },
    }
    return ModelCounts(**members | changes)


def test_the_answer_is_that_of_the_extension_with_batch_sizes_ascending() -> None:
    answer = describe_statistics([make_counts()])
    assert json.loads(answer.model_dump_json()) == {
        "model_stats": [
            {
                "name": "demo",
                "version": "2",
                "last_inference": 1_700_000_000_123,
                "inference_count": 30,
                "execution_count": 9,
                "inference_stats": {
                    "success": {"count": 10, "ns": 10_001},
                    "fail": {"count": 10, "ns": 11_000},
                    "queue": {"count": 10, "ns": 12_000},
                    "compute_input": {"count": 10, "ns": 13_000},
                    "compute_infer": {"count": 10, "ns": 14_000},
                    "compute_output": {"count": 10, "ns": 15_000},
                    "cache_hit": {"count": 0, "ns": 0},
                    "cache_miss": {"count": 0, "ns": 0},
                },
                "response_stats": {},
                "batch_stats": [
                    {
                        "batch_size": 3,
                        "compute_input": {"count": 7, "ns": 23_000},
                        "compute_infer": {"count": 7, "ns": 24_000},
                        "compute_output": {"count": 7, "ns": 25_000},
                    },
                    {
                        "batch_size": 12,
                        "compute_input": {"count": 2, "ns": 33_000},
                        "compute_infer": {"count": 2, "ns": 34_000},
                        "compute_output": {"count": 2, "ns": 35_000},
                    },
                ],
                "memory_usage": [],
            }
        ]
    }


def test_nothing_served_is_an_empty_list() -> None:
    assert describe_statistics([]).model_dump_json() == '{"model_stats":[]}'


def test_the_order_is_kept() -> None:
    versions = ["9", "10", "1"]
    answer = describe_statistics([make_counts(version=version) for version in versions])
    assert [each.version for each in answer.model_stats] == versions


@pytest.mark.parametrize(
    "change",
    [
        {"version": 2},  # perf_analyzer ends with a null string
        {"queue_ns": -1},
        {"inference_count": 1.5},
        {"last_inference_ms": None},
    ],
    ids=str,
)
def test_what_a_client_could_not_read_is_never_sent(change: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        describe_statistics([make_counts(**change)])
