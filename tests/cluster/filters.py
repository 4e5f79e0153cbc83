"""Warnings of Ray's own, in the process that connects to it."""

import pytest

of_ray = [pytest.mark.filterwarnings("ignore::ResourceWarning:ray.*")]
