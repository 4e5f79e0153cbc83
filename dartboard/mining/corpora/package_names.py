"""From any name under which something can be imported to the place where it is defined.

Imports, stars, ``Agent = LlmAgent``, tables of lazy imports and inherited methods are followed; a circle
of imports ends in nothing. An instance made at the top of a module (``search = SearchTool()``) stands for
its class, and any other value for the module that assigns it.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from dartboard.mining.corpora.package_source import Definition, Module, is_public

Meaning = Definition | Module

_LONGEST_WAY = 150
"""Steps from a name to its definition; what needs more is no honest package."""


@dataclass(slots=True)
class PackageNames:
    """The modules of a package by name, and what dotted names in it mean."""

    modules: Mapping[str, Module]
    _known: dict[str, Meaning | None] = field(default_factory=dict)

    def meaning(self, name: str) -> Meaning | None:
        """The definition, or the module, that a dotted name leads to; None for what is not there."""
        if name not in self._known:
            self._known[name] = self._meaning(name, frozenset())
        return self._known[name]

    def exported(self) -> dict[str, list[str]]:
        """For each definition the public names that lead to it from elsewhere, shortest first."""
        found: dict[str, set[str]] = {}
        for module in self.modules.values():
            for name in self._public_names(module, frozenset()) if is_public(module.fqn) else ():
                meaning = self.meaning(full := f"{module.fqn}.{name}")
                if isinstance(meaning, Definition) and meaning.fqn != full and _offers(module, name, meaning):
                    found.setdefault(meaning.fqn, set()).add(full)
        return {
            fqn: sorted(names, key=lambda name: (name.count("."), len(name), name))
            for fqn, names in found.items()
        }

    def _public_names(self, module: Module, seen: frozenset[str]) -> list[str]:
        names = set(module.exports or ()) | {name for name in module.bindings if is_public(name)}
        for star in module.stars:
            source = self.modules.get(star)
            if source is not None and star not in seen:
                inside = self._public_names(source, seen | {module.fqn})
                names |= {name for name in inside if source.exports is None or name in source.exports}
        return sorted(names)

    def _meaning(self, name: str, seen: frozenset[str]) -> Meaning | None:
        """``seen`` holds the bindings that were followed on the way here: none is followed twice."""
        parts = name.split(".")
        for cut in range(len(parts) - 1, 0, -1):
            module = self.modules.get(".".join(parts[:cut]))
            if module is None:
                continue
            if name in self.modules and parts[cut] not in module.definitions:
                break
            if (found := self._inside(module, parts[cut:], seen)) is not None:
                return found
        return self.modules.get(name)

    def _inside(self, module: Module, parts: list[str], seen: frozenset[str]) -> Meaning | None:
        """A name as the module's own code would mean it."""
        first, rest = parts[0], parts[1:]
        binding = module.bindings.get(first)
        if binding is not None and binding.kind == "definition":
            return self._member(module.definitions[first], rest, seen)
        key = f"{module.fqn}:{first}"
        if key in seen or len(seen) > _LONGEST_WAY:
            return None
        seen |= {key}
        if binding is None:
            found = (self._meaning(".".join([star, *parts]), seen) for star in module.stars)
            return next((one for one in found if one is not None), None)
        if binding.kind == "import":
            return self._meaning(".".join([binding.target, *rest]), seen)
        meaning = None
        if binding.kind != "constant":
            meaning = self._inside(module, [*binding.target.split("."), *rest], seen)
        return module if meaning is None and not rest else meaning

    def _member(self, owner: Definition, rest: list[str], seen: frozenset[str]) -> Meaning | None:
        """An attribute of a class, its own or inherited; what has no definition of its own is the class."""
        if not rest:
            return owner
        if owner.kind != "class":
            return None
        if rest[0] in owner.members:
            return owner.members[rest[0]] or owner
        module = self.modules[owner.module]
        for base in owner.bases:
            if (key := f"{owner.fqn}<{base}") in seen or len(seen) > _LONGEST_WAY:
                continue
            above = self._inside(module, base.split("."), seen)
            if isinstance(above, Definition):
                found = self._member(above, rest, seen | {key})
                if found is not None:
                    return found
        return None


def _offers(module: Module, name: str, meaning: Definition) -> bool:
    """Packages offer what they import; other modules what they rename, or what is private elsewhere."""
    binding = module.bindings.get(name)
    kind = binding.kind if binding is not None else "import"  # by a star
    if kind == "import":
        return module.is_package or not is_public(meaning.fqn)
    return kind == "alias"
