"""Options that belong together, defined once for all commands that take them.

typer reads the options of a command from the parameters of its function. A group is a frozen dataclass whose
fields are annotated as such parameters are; a command that is :func:`spelled_out` takes it as one parameter,
and typer is shown the fields in its place. Groups without slots hand all their options on with ``vars``.
"""

from collections.abc import Callable, Iterator
from dataclasses import MISSING, fields, is_dataclass
from functools import wraps
from inspect import Parameter, Signature, signature
from typing import Any, get_type_hints


def spelled_out(command: Callable[..., None]) -> Callable[..., None]:
    """The command, as typer needs it: each group among its parameters is spelled out, in its place."""
    groups: dict[str, type[Any]] = {}
    shown: list[Parameter] = []
    for parameter in signature(command).parameters.values():
        kind: Any = parameter.annotation
        if isinstance(kind, type) and is_dataclass(kind):
            groups[parameter.name] = kind
            shown += _options(kind)
        else:
            shown.append(parameter.replace(kind=Parameter.KEYWORD_ONLY))

    @wraps(command)
    def called(**given: Any) -> None:
        made = {
            name: group(**{field.name: given.pop(field.name) for field in fields(group)})
            for name, group in groups.items()
        }
        command(**given, **made)

    called.__signature__ = Signature(shown)  # type: ignore[attr-defined]
    return called


def _options(group: type[Any]) -> Iterator[Parameter]:
    """The fields of a group as parameters."""
    hints = get_type_hints(group, include_extras=True)
    for field in fields(group):
        default = Parameter.empty if field.default is MISSING else field.default
        yield Parameter(field.name, Parameter.KEYWORD_ONLY, default=default, annotation=hints[field.name])
