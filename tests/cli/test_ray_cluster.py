"""What is said of a cluster before work goes there."""

import pytest

from dartboard.cli import ray_cluster


@pytest.mark.parametrize(
    ("machines", "slots", "said"),
    [
        (1, 1, "1 machine of the cluster, 1 list of passages at a time\n"),
        (2, 4, "2 machines of the cluster, 4 lists of passages at a time\n"),
    ],
)
def test_one_is_not_many(capsys, machines, slots, said):
    ray_cluster._say(machines, slots, "list", "of passages")
    assert capsys.readouterr().err == said
