"""Jupyter notebooks as Markdown: its texts as they are, its code in fences, without outputs."""

import json
from typing import Any

from dartboard.errors import IngestError
from dartboard.ingest.limits import check_json


def notebook_text(text: str) -> str:
    """The cells of a notebook of format 4, one below the other."""
    check_json(text)
    try:
        stored = json.loads(text)
        cells = stored["cells"]
        language = stored.get("metadata", {}).get("kernelspec", {}).get("language", "python")
        parts = [_cell(cell, str(language)) for cell in cells]
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        raise IngestError(f"is no notebook of format 4: {type(error).__name__}") from error
    return "\n\n".join(part for part in parts if part)


def _cell(cell: dict[str, Any], language: str) -> str:
    source = cell["source"]
    body = (source if isinstance(source, str) else "".join(source)).strip()
    return f"```{language}\n{body}\n```" if body and cell["cell_type"] == "code" else body
