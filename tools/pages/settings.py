"""Every setting with its variable, its default and its meaning, made from the code."""

import ast
import inspect
from dataclasses import MISSING, fields
from typing import Any

PATH = "reference/settings.md"

_START = """\
# Settings

On this page you look up every setting with its variable and default. A flag wins over a variable, a variable
over `dartboard.toml`: the file that `DARTBOARD_CONFIG` names, else the one in this folder, else the one in
your configuration folder. `dartboard config` shows every setting and where it comes from.

```toml
# dartboard.toml
store = "postgresql://me@localhost/docs"
retriever = "hybrid:0.6"
k = 8

[serve]
port = 9000
timeout = 10.0
```

## Shared by all commands

"""
_SERVICE = """
## The service

`dartboard serve` reads flags, then `DARTBOARD_SERVE_NAME`, then the table `[serve]` of the file. Store,
collection, model and retriever fall back to the settings above. [Security](../security.md) has the limits.

"""
_OTHER = """
## Variables without a setting

| variable | meaning |
|---|---|
| `DARTBOARD_CONFIG` | the settings file |
| `DARTBOARD_CACHE` | the folder for cached vectors, instead of the user's cache folder |
| `DARTBOARD_DATA` | the folder of data sets for `dartboard eval`, `calibrate` and `datasets`; else `./data` |
| `DARTBOARD_KEYS` | the file with the keys of the service |
| `DARTBOARD_MILVUS_TOKEN` | the token of a Milvus server, so that it stands in no URL |
| `OPENAI_API_KEY`, `GEMINI_API_KEY` | for models and judges behind an endpoint |
| `NO_COLOR`, `COLUMNS` | colours and width of terminal output |
"""


def pages() -> dict[str, str]:
    """The page: path in the documentation, Markdown."""
    from dartboard.api.settings import ServiceSettings
    from dartboard.engine.settings import MEANING, PREFIX, Settings

    shared = _table(Settings, PREFIX, MEANING)
    service = _table(ServiceSettings, f"{PREFIX}SERVE_", attribute_docstrings(ServiceSettings))
    return {PATH: _START + shared + _SERVICE + service + _OTHER}


def _table(owner: Any, prefix: str, meaning: Any) -> str:
    lines = ["| setting | variable | default | meaning |", "|---|---|---|---|"]
    for field in fields(owner):
        said = " ".join(str(meaning.get(field.name, "")).split()).replace("|", "\\|").replace("``", "`")
        lines.append(f"| `{field.name}` | `{prefix}{field.name.upper()}` | {_default(field)} | {said} |")
    return "\n".join(lines) + "\n"


def _default(field: Any) -> str:
    if field.name == "workers":
        return "four times the processors, 4 to 32"
    value = None if field.default is MISSING else field.default
    if value in (None, (), ""):
        return ""
    return f"`{str(value).lower() if isinstance(value, bool) else value}`"


def attribute_docstrings(owner: Any) -> dict[str, str]:
    """What stands as a string below each attribute of a class."""
    (body,) = ast.parse(inspect.getsource(owner)).body
    found: dict[str, str] = {}
    last = ""
    for statement in body.body if isinstance(body, ast.ClassDef) else []:
        if isinstance(statement, ast.AnnAssign) and isinstance(statement.target, ast.Name):
            last = statement.target.id
        elif last and isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant):
            found[last] = str(statement.value.value)
            last = ""
        else:
            last = ""
    return found
