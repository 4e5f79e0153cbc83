"""The pages that the service shows in a browser: plain HTML, CSS and ES modules, no build step.

They hold no data of their own: all they show comes from the service's own endpoints.
"""

from pathlib import Path

__all__ = ["static_folder"]


def static_folder() -> Path:
    """Where the files lie; ``index.html`` is the playground."""
    return Path(__file__).parent / "static"
