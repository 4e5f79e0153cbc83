"""The user's confirmations, in the folder ``trusted`` of the user's configuration folder.

One small file per place (a store, a snapshot, a settings file), setting and name.
"""

import hashlib
import json
import logging
import os
import re
from contextlib import suppress
from pathlib import Path

VARIABLE = "DARTBOARD_TRUST_MODELS"
"""Names of models and retrievers that any index may choose, separated by semicolons."""

logger = logging.getLogger(__name__)

_this_process: dict[str, bool] = {}


def folder() -> Path:
    """The folder of confirmations."""
    from platformdirs import user_config_path

    return user_config_path("dartboard") / "trusted"


def known(place: str, setting: str, name: str) -> bool | None:
    """Whether a key may be sent for a confirmed name; None if the name is not confirmed for the place."""
    mark = _mark(place, setting, name)
    try:
        kept = json.loads((folder() / f"{mark}.json").read_text(encoding="utf-8"))
        if (kept["place"], kept["setting"], kept["name"]) == (place, setting, name.strip()):
            return kept["with_key"] is True
    except (OSError, ValueError, KeyError, TypeError):
        pass
    return _this_process.get(mark)


def _mark(place: str, setting: str, name: str) -> str:
    """The file name of a confirmation."""
    parts = json.dumps([place, setting, _located(setting, name.strip())])
    return hashlib.sha256(parts.encode("utf-8", "surrogatepass")).hexdigest()[:32]


def _located(setting: str, name: str) -> str:
    """The name, with the current folder if it is a relative path, which means another file elsewhere."""
    kind, _, rest = name.partition(":")
    if setting == "model" and kind in ("onnx", "sentence-transformers"):
        relative = not Path(rest).is_absolute() and Path(rest).exists()
    else:
        paths = re.findall(r"(?:colbert|splade):([^,]+)", name) if setting == "retriever" else []
        relative = any(not Path(path).is_absolute() for path in paths)
    return f"{name} in {Path.cwd()}" if relative else name


def keep(place: str, setting: str, name: str, with_key: bool) -> None:
    """Write one file, atomically and readable only by its owner; in memory if that fails."""
    mark, where = _mark(place, setting, name), folder()
    if place.startswith("memory:"):
        _this_process[mark] = with_key
        return
    facts = {"place": place, "setting": setting, "name": name, "with_key": with_key}
    part = where / f".{mark}.{os.getpid()}.part"
    try:
        where.mkdir(parents=True, exist_ok=True, mode=0o700)
        part.unlink(missing_ok=True)
        with os.fdopen(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as stream:
            json.dump(facts, stream, indent=2)
            stream.flush()
            os.fsync(stream.fileno())
        part.replace(where / f"{mark}.json")
    except OSError as error:
        _this_process[mark] = with_key
        logger.warning(
            "what you trust cannot be stored in %s (%s): name the model each time, or set %s",
            where,
            error.strerror or error,
            VARIABLE,
        )
    finally:
        with suppress(OSError):
            part.unlink(missing_ok=True)
