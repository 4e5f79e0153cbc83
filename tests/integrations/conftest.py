"""Every test begins with an empty cache, and hears nothing of pools that were embedded unless it asks."""

import pytest

from dartboard.integrations import cache, vectors


@pytest.fixture(autouse=True)
def nothing_is_kept(monkeypatch):
    cache.clear()
    monkeypatch.setattr(vectors, "_warned", True)
