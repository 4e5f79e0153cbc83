"""The reference of the service's HTTP interface, made from its OpenAPI document."""

from collections.abc import Iterator
from typing import Any

PATH = "reference/rest.md"

_START = """\
# REST

On this page you look up every operation of the service, its fields and its errors, as in `/openapi.json`.
Limits are the defaults. [The service](../api.md) has examples; [Security](../security.md) explains keys.

"""

Schema = dict[str, Any]


def pages() -> dict[str, str]:
    """The page: path in the documentation, Markdown."""
    from dartboard.api import ServiceSettings, create_app

    document = create_app(ServiceSettings(workers=2)).openapi()
    parts = [_START, _overview(document), *_operations(document), _REFUSALS, *_shapes(document)]
    return {PATH: "\n".join(parts)}


def operations(document: Schema) -> Iterator[tuple[str, str, Schema]]:
    """Method, path and operation, in the order of the document."""
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            yield method.upper(), path, operation


def _overview(document: Schema) -> str:
    lines = ["| | |", "|---|---|"]
    for method, path, operation in operations(document):
        lines.append(f"| [`{method} {path}`](#{operation['operationId']}) | {_cell(_title(operation))} |")
    return "\n".join(lines) + "\n"


def _operations(document: Schema) -> Iterator[str]:
    for method, path, operation in operations(document):
        yield f"## {method} {path} {{ #{operation['operationId']} }}\n"
        yield _text(operation.get("description") or _title(operation)) + "\n"
        if parameters := operation.get("parameters"):
            yield "| parameter | in | type | meaning |\n|---|---|---|---|"
            for one in parameters:
                name = f"`{one['name']}`" + (" (required)" if one.get("required") else "")
                said = _cell(one.get("description", ""))
                yield f"| {name} | {one['in']} | {kind(one['schema'])} | {said} |"
            yield ""
        for media, content in operation.get("requestBody", {}).get("content", {}).items():
            yield f"Takes {kind(content.get('schema', {}))} as `{media}`.\n"
        for status, answer in operation["responses"].items():
            if status != "default":
                yield _answer(status, answer)


def _answer(status: str, answer: Schema) -> str:
    content = answer.get("content", {})
    shapes = [f"{kind(one.get('schema', {}))} as `{media}`" for media, one in content.items()]
    said = "; ".join(shapes) or _cell(answer.get("description", ""))
    return f"Returns {status}: {said}.\n"


_REFUSALS = """\
## Errors { #refusals }

Errors are [`Problem`](#schema-problem) as `application/problem+json`;
[The service](../api.md#errors) says which status means what.
"""


def _shapes(document: Schema) -> Iterator[str]:
    yield "## Schemas { #shapes }\n"
    for name, schema in sorted(document["components"]["schemas"].items()):
        yield f"### {name} {{ #{_anchor(name)} }}\n"
        if schema.get("description"):
            yield _text(schema["description"]) + "\n"
        if "enum" in schema:
            yield "One of " + ", ".join(f"`{one}`" for one in schema["enum"]) + ".\n"
        if fields := schema.get("properties"):
            yield "| field | type | default | meaning |\n|---|---|---|---|"
            for field, described in fields.items():
                label = f"`{field}`" + (" (required)" if field in schema.get("required", ()) else "")
                yield (
                    f"| {label} | {kind(described)} | {_default(described)} "
                    f"| {_cell(described.get('description', ''))} |"
                )
            yield ""


def kind(schema: Schema) -> str:
    """What a value is, in a few words, with a link where it has a shape of its own."""
    if "$ref" in schema:
        name = schema["$ref"].rpartition("/")[2]
        return f"[`{name}`](#{_anchor(name)})"
    for together in ("anyOf", "oneOf"):
        if together in schema:
            return " or ".join(dict.fromkeys(kind(one) for one in schema[together]))
    if "allOf" in schema:
        return kind(schema["allOf"][0])
    if "enum" in schema or "const" in schema:
        return ", ".join(f"`{one}`" for one in schema.get("enum", [schema.get("const")]))
    if schema.get("type") == "array":
        return f"list of {kind(schema.get('items', {}))}" + _range(schema, "minItems", "maxItems")
    said = {"null": "nothing", "object": "object", "integer": "whole number"}.get(
        str(schema.get("type")), schema.get("type")
    )
    if said is None:
        return "anything"
    return str(said) + _range(schema, "minimum", "maximum") + _range(schema, "minLength", "maxLength")


def _range(schema: Schema, low: str, high: str) -> str:
    least, most = schema.get(low), schema.get(high)
    if least is None and most is None:
        return ""
    if most is None:
        return f", {least} or more"
    return f", up to {most}" if least is None else f", {least} to {most}"


def _default(schema: Schema) -> str:
    if "default" not in schema or schema["default"] is None:
        return ""
    value = schema["default"]
    return f"`{str(value).lower() if isinstance(value, bool) else value}`"


def _title(operation: Schema) -> str:
    first = str(operation.get("description") or operation.get("summary", ""))
    return " ".join(first.partition("\n\n")[0].split())


def _anchor(name: str) -> str:
    return f"schema-{name.lower()}"


def _text(text: str) -> str:
    from tools.pages.docstrings import plain_roles

    return plain_roles(text)


def _cell(text: str) -> str:
    return " ".join(_text(text).split()).replace("|", "\\|").replace("<", "&lt;")
