"""Every test begins with an empty cache, and hears nothing of pools that were embedded unless it asks."""

import pytest

from dartboard.integrations import document_vectors, vector_source


@pytest.fixture(autouse=True)
def nothing_is_kept(monkeypatch):
    document_vectors.clear()
    monkeypatch.setattr(vector_source, "_warned", True)
