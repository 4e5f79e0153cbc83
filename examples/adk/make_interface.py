"""Writes ``interface.json``: what the package offers, read from its source by ``ast`` and never imported.

    python examples/adk/make_interface.py [FOLDER]

FOLDER holds the unpacked package; without it, the installed one is read.
"""

import ast
import json
import sys
from pathlib import Path

from dartboard.mining.corpora.package_corpus import PackageCorpus
from dartboard.mining.corpora.package_source import Definition, is_public

PACKAGE = "google.adk"
PARTS = ("agents", "apps", "artifacts", "code_executors", "events", "memory", "models", "planners", "plugins")
PARTS += ("runners", "sessions", "tools", "utils")
"""Below these, every public name is listed; names elsewhere in the package are not judged."""


def interface(corpus: PackageCorpus) -> dict:
    """Modules, the definition that each other name leads to, and the parameters of each definition."""
    signatures, names = {}, {}
    for document in corpus:
        definition = corpus.meaning(document.fqn)
        if not _listed(document.fqn):
            continue
        if document.metadata["kind"] in ("class", "function") and isinstance(definition, Definition):
            signatures[document.fqn] = ", ".join(_parameters(corpus, definition))
    for module in corpus.modules.values():
        for name, binding in module.bindings.items():
            full = f"{module.fqn}.{name}"
            meaning = corpus.meaning(full)
            if not _listed(full) or name == "logger" or (binding.kind == "import" and not module.is_package):
                continue
            if meaning is not None and meaning.fqn != full:
                names[full] = "" if binding.kind in ("instance", "constant") else meaning.fqn
    return {
        "package": PACKAGE,
        "parts": sorted(PARTS),
        "modules": sorted(filter(_listed, corpus.modules)),
        "names": _sorted(names),
        "signatures": _sorted(signatures),
    }


def _listed(name: str) -> bool:
    inside = name.removeprefix(f"{PACKAGE}.").split(".")
    return is_public(name) and (inside[0] in PARTS or len(inside) == 1)


def _parameters(corpus: PackageCorpus, definition: Definition) -> list:
    if definition.kind == "function":
        return _arguments(definition.nodes[-1].args)
    family = _family(corpus, definition)
    for one in family:
        if one.members.get("__init__") is not None:
            return _arguments(one.members["__init__"].nodes[-1].args)[1:]
    if any(base in ("Enum", "str", "ABC") for one in family for base in one.bases):
        return ["value=", "**"]
    fields: dict = {}
    for one in reversed(family):
        for node in one.nodes:
            fields |= dict(_fields(node))
    return ["*", *fields.values()] if fields else []


def _family(corpus: PackageCorpus, definition: Definition) -> list:
    """The class, then those that it inherits from, the nearest first; those outside are not known."""
    found = [definition]
    for base in definition.bases:
        above = corpus.meaning(f"{definition.module}.{base}")
        if isinstance(above, Definition) and above.kind == "class" and above not in found:
            found += [one for one in _family(corpus, above) if one not in found]
    return found


def _fields(node):
    for statement in node.body:
        match statement:
            case ast.AnnAssign(target=ast.Name(id=name)) if (
                not name.startswith("_") and name != "model_config"
            ):
                written = ast.unparse(statement.annotation)
                if "ClassVar" not in written:
                    yield name, name if _required(statement.value) else f"{name}="


def _required(value):
    if value is None:
        return True
    if isinstance(value, ast.Call) and ast.unparse(value.func).endswith("Field"):
        given = {keyword.arg for keyword in value.keywords}
        bare = not value.args or ast.unparse(value.args[0]) == "..."
        return bare and not given & {"default", "default_factory"}
    return False


def _arguments(arguments: ast.arguments) -> list:
    plain = [*arguments.posonlyargs, *arguments.args]
    free = len(plain) - len(arguments.defaults)
    parts = [argument.arg + "=" * (at >= free) for at, argument in enumerate(plain)]
    if arguments.vararg or arguments.kwonlyargs:
        parts.append("*")
    for argument, default in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True):
        parts.append(argument.arg + "=" * (default is not None))
    return [*parts, "**"] if arguments.kwarg else parts


def _sorted(values: dict) -> dict:
    return dict(sorted(values.items()))


if __name__ == "__main__":
    read = PackageCorpus(PACKAGE, *sys.argv[1:2])
    text = json.dumps(interface(read), indent=0, ensure_ascii=False) + "\n"
    (Path(__file__).parent / "interface.json").write_text(text, encoding="utf-8")
