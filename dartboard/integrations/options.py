"""The one field ``options`` of every component, and the keywords that go into it.

``DartboardRetriever(engine=engine, k=3, where="year >= 2020")`` and ``options=SearchOptions(k=3, …)`` are the
same. Names, ranges and aliases (``top_k``, ``filter``) are those of
:class:`~dartboard.search_options.SearchOptions`; a new option of a search needs no line here.
"""

import json
from collections.abc import Mapping
from typing import Any

from pydantic import BaseModel, field_serializer, model_validator

from dartboard.errors import ConfigError
from dartboard.integrations.rerank import KEY
from dartboard.search_options import SearchOptions, declared_options, option_name
from dartboard.selection.select import method_of


def as_options(given: SearchOptions | Mapping[str, Any] | None, changes: Mapping[str, Any]) -> SearchOptions:
    """Options from an object or from what :func:`plain` wrote, with single ones changed."""
    options = SearchOptions(**given) if isinstance(given, Mapping) else given
    named: Any = {option_name(name) or name: value for name, value in changes.items()}
    return SearchOptions.of(options, named, "options")


def gathered(given: Mapping[str, Any], **defaults: Any) -> dict[str, Any]:
    """The settings of a component, with single options gathered in ``options``.

    ``defaults`` are options for a component that is given none of its own.
    """
    changes = {name: value for name, value in given.items() if option_name(name)}
    others = {name: value for name, value in given.items() if name not in changes}
    if others.get("options") is None:
        changes = defaults | changes
    return others | {"options": as_options(others.get("options"), changes)}


def plain(options: SearchOptions) -> dict[str, Any]:
    """The options that differ from the defaults, as JSON has them.

    Raises:
        ConfigError: One of them is an object, which cannot be written down.
    """
    found = {}
    for name, option in declared_options().items():
        value = getattr(options, name)
        if name == "method" and not isinstance(value, str):
            value = value.name if _is_default(value) else value
        if isinstance(value, str | int | float | None) and value == option.default:
            continue
        try:
            value = json.loads(json.dumps(value.tolist() if hasattr(value, "tolist") else value))
        except TypeError as error:
            raise ConfigError(
                f"{name} is a {type(value).__name__}, which cannot be written down: give it by name, or save "
                "the other settings and hand it over when loading",
                field=name,
            ) from error
        if value != [] or option.default != ():
            found[name] = value
    return found


def _is_default(method: Any) -> bool:
    """Whether its name makes the same method again."""
    try:
        return bool(method_of(method.name) == method)
    except ConfigError:
        return False


class OptionsField(BaseModel):
    """The field ``options`` of a component that is a pydantic model; it also takes single options."""

    options: Any = SearchOptions()
    """What is asked for: ``SearchOptions``, or single options as keywords (``k=3``)."""
    metadata_key: str = KEY
    """Where in the metadata the note on each pick is put."""

    @model_validator(mode="before")
    @classmethod
    def _gather(cls, given: Any) -> Any:
        return gathered(given) if isinstance(given, Mapping) else given

    @field_serializer("options")
    def _plain(self, options: SearchOptions) -> dict[str, Any]:
        return plain(options)
