"""What Prometheus gets: names, units, and labels that cannot grow."""

import os
import subprocess
import sys

import pytest
from prometheus_client.parser import text_string_to_metric_families
from starlette.testclient import TestClient

from dartboard.api.metrics import Metrics
from dartboard.version import __version__
from tests.api.small_app import BASE, small_app


@pytest.fixture
def metrics():
    return Metrics()


def value(metrics, name, **labels):
    return metrics.registry.get_sample_value(f"dartboard_{name}", labels)


def test_everything_is_there_in_the_text_format(metrics):
    metrics.observe_request("/retrieve", "POST", 200, 0.02)
    metrics.observe_search({"seconds": {"select": 0.001}, "candidates": 10, "near_copies": 3}, 2)
    metrics.work("searches", 3, 5)
    metrics.cache(True)
    metrics.cache(False)
    metrics.batch(4)
    metrics.rejected("busy")
    metrics.job("done")
    metrics.observe_request("/retrieve", "MARKED", 200, 0.02)
    assert list(text_string_to_metric_families(metrics.render().decode()))
    assert value(metrics, "request_seconds_count", route="/retrieve", method="POST", status="200") == 1
    assert value(metrics, "request_seconds_count", route="/retrieve", method="OTHER", status="200") == 1
    assert value(metrics, "query_cache_total", result="hit") == 1
    assert value(metrics, "work_running", work="searches") == 3
    assert value(metrics, "work_waiting", work="searches") == 5
    assert value(metrics, "picks_sum") == 2 and value(metrics, "candidates_sum") == 10
    assert value(metrics, "near_copies_total") == 3
    assert value(metrics, "rejected_total", reason="busy") == 1
    assert value(metrics, "jobs_total", state="done") == 1
    assert value(metrics, "encoder_batch_size_sum") == 4
    assert value(metrics, "build_info", version=__version__) == 1


def test_processes_answer_for_each_other(tmp_path):
    code = (
        "from dartboard.api.metrics import Metrics; m = Metrics(); m.cache(True); print(m.render().decode())"
    )
    shared = {**os.environ, "PROMETHEUS_MULTIPROC_DIR": str(tmp_path)}
    for times in (1, 2):
        said = subprocess.run(
            [sys.executable, "-c", code], env=shared, capture_output=True, text=True, check=True
        ).stdout
        assert f'dartboard_query_cache_total{{result="hit"}} {times}.0' in said
        assert f'dartboard_build_info{{version="{__version__}"}} 1.0' in said


def test_paths_of_requests_never_become_labels():
    app = small_app()
    with TestClient(app, base_url=BASE) as client:
        for number in range(30):
            client.get(f"/read/marked{number}")
            client.get(f"/nothing/marked{number}")
            client.request(f"MARKED{number}", "/read/a")
    text = app.state.service.metrics.render().decode()
    assert "marked" not in text.lower()
    assert 'method="GET",route="/read/{name}",status="200"} 30.0' in text
    assert 'route="unmatched"' in text


def test_two_applications_do_not_share_counters():
    first, second = Metrics(), Metrics()
    first.cache(True)
    assert value(second, "query_cache_total", result="hit") == 0
