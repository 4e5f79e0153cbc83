"""What Prometheus gets: names, units, and labels that cannot grow."""

import pytest
from prometheus_client.parser import text_string_to_metric_families
from starlette.testclient import TestClient

from dartboard.api.metrics import Metrics
from dartboard.config import DartboardConfig
from dartboard.core import DartboardRetriever
from dartboard.datasets.demo import chunks, texts
from dartboard.version import __version__
from tests.api.small_app import BASE, small_app
from tests.models import WordBag


@pytest.fixture
def metrics():
    return Metrics()


def value(metrics, name, **labels):
    return metrics.registry.get_sample_value(f"dartboard_{name}", labels)


def test_everything_is_there_in_the_text_format(metrics):
    metrics.observe_request("/retrieve", "POST", 200, 0.02)
    metrics.observe_search({"seconds": {"select": 0.001}, "candidates": 10, "gain": [0.5, 0.2]})
    metrics.queue(3, 5)
    metrics.cache(True)
    metrics.cache(False)
    metrics.batch(4)
    metrics.rejected("busy")
    metrics.job("done")
    families = {family.name for family in text_string_to_metric_families(metrics.render().decode())}
    assert families >= {
        "dartboard_request_seconds",
        "dartboard_stage_seconds",
        "dartboard_queue_waiting",
        "dartboard_workers_busy",
        "dartboard_query_cache",
        "dartboard_encoder_batch_size",
        "dartboard_picks",
        "dartboard_candidates",
        "dartboard_redundancy_removed_ratio",
        "dartboard_rejected",
        "dartboard_jobs",
        "dartboard_build_info",
    }
    assert value(metrics, "request_seconds_count", route="/retrieve", method="POST", status="200") == 1
    assert value(metrics, "query_cache_total", result="hit") == 1
    assert (value(metrics, "workers_busy"), value(metrics, "queue_waiting")) == (3, 5)
    assert value(metrics, "picks_sum") == 2 and value(metrics, "candidates_sum") == 10
    assert value(metrics, "rejected_total", reason="busy") == 1
    assert value(metrics, "jobs_total", state="done") == 1
    assert value(metrics, "encoder_batch_size_sum") == 4
    assert value(metrics, "build_info", version=__version__) == 1


@pytest.mark.parametrize(
    ("stands_for", "candidates", "removed"),
    [
        ([["a", "b", "c"], ["d"]], 6, 0.5),
        ([["a"], ["b"]], 12, 0.0),
        ([["a", "b", "c"], ["d", "e", "f"]], 6, 1.0),
        ([["a"], ["b"]], 2, None),
        (None, 5, None),
    ],
)
def test_redundancy_removed_is_the_share_of_the_left_out_that_a_pick_stands_for(
    metrics, stands_for, candidates, removed
):
    metrics.observe_search({"gain": [1.0, 0.5], "stands_for": stands_for, "candidates": candidates})
    assert value(metrics, "redundancy_removed_ratio_count") == (removed is not None)
    assert value(metrics, "redundancy_removed_ratio_sum") == (removed or 0.0)


def test_vocabulary_targets_are_no_candidates(metrics):
    metrics.observe_search({"gain": [1.0], "stands_for": [[1, 2]], "candidates": 5, "targets": "vocabulary"})
    assert value(metrics, "redundancy_removed_ratio_count") == 0


def test_odd_metadata_are_passed_over(metrics):
    metrics.observe_search({})
    metrics.observe_search({"seconds": {"select": float("nan")}, "candidates": None})
    assert value(metrics, "candidates_count") == 0


def test_a_real_search_is_counted(metrics):
    model = WordBag()
    corpus = chunks(model.encode(texts()))
    result = DartboardRetriever(DartboardConfig(top_k=3), model).choose(
        "what is it?", model.encode_query("what is it?"), corpus, k=3
    )
    metrics.observe_search(result.metadata)
    assert value(metrics, "picks_sum") == 3
    assert value(metrics, "candidates_sum") == len(corpus)
    assert value(metrics, "stage_seconds_count", stage="select") == 1
    assert value(metrics, "redundancy_removed_ratio_count") == 1


def test_labels_cannot_grow_without_bound(metrics):
    for number in range(500):
        metrics.rejected(f"reason {number}")
        metrics.job("x" * (100 + number))
        metrics.observe_request("/a", f"M{number}", 200, 0.1)
    text = metrics.render().decode()
    assert text.count("dartboard_rejected_total{") == 51
    assert text.count("dartboard_jobs_total{") == 6
    assert text.count("dartboard_request_seconds_count{") == 1
    assert value(metrics, "request_seconds_count", route="/a", method="OTHER", status="200") == 500


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
