"""A house on disk, as ``dartboard mine`` is told of it."""

import pytest

from tests.mining.doors import write_house


@pytest.fixture
def house(tmp_path):
    """The registry and the corpus as arguments."""
    registry, corpus = write_house(tmp_path)
    return [str(registry), "--corpus", corpus]
