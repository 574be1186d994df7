"""Departures, cuts, bytes and threads in the metrics."""

from prometheus_client import CollectorRegistry

from service.traffic import Traffic


def test_every_stage_and_setting_is_there_from_the_start() -> None:
    registry = CollectorRegistry()
    Traffic(registry)
    for stage in ("head", "body", "work", "encode", "answer"):
        assert registry.get_sample_value("limelight_departures_total", {"stage": stage}) == 0
    for setting in ("max_connections", "header_timeout_s", "answer_timeout_s"):
        labels = {"setting": setting}
        assert registry.get_sample_value("limelight_connections_cut_total", labels) == 0


def test_clients_that_leave_and_connections_that_are_cut_are_counted() -> None:
    registry = CollectorRegistry()
    traffic = Traffic(registry)
    traffic.count_stage("work")
    traffic.count_stage("work")
    traffic.count_cut("header_timeout_s")
    assert registry.get_sample_value("limelight_departures_total", {"stage": "work"}) == 2
    labels = {"setting": "header_timeout_s"}
    assert registry.get_sample_value("limelight_connections_cut_total", labels) == 1


def test_bytes_and_threads_are_those_of_the_moment() -> None:
    registry = CollectorRegistry()
    traffic, held, stuck = Traffic(registry), [5], [0]
    traffic.watch_held("body", lambda: held[0])
    traffic.watch_threads(lambda: stuck[0])
    held[0], stuck[0] = 7, 2
    assert registry.get_sample_value("limelight_held_bytes", {"kind": "body"}) == 7
    assert registry.get_sample_value("limelight_stuck_threads") == 2
