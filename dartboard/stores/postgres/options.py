"""How a collection's approximate index is built: ``settings["hnsw"]`` of its manifest.

{"m": 16, "ef_construction": 64, "above": 10000}
"""

from collections.abc import Mapping
from dataclasses import dataclass, fields

from dartboard.errors import ConfigError
from dartboard.stores.manifest import Manifest


@dataclass(frozen=True, slots=True, kw_only=True)
class HnswOptions:
    """pgvector's ``m`` and ``ef_construction``; up to ``above`` records there is no index."""

    m: int = 16
    ef_construction: int = 64
    above: int = 10_000

    def __post_init__(self) -> None:
        for name, least, most in (("m", 2, 100), ("ef_construction", 4, 1000), ("above", 100, 10**12)):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
                raise ConfigError(f"hnsw setting {name} must be a number {least} to {most}, got {value!r}")
        if self.ef_construction < 2 * self.m:
            raise ConfigError(f"hnsw setting ef_construction must be at least 2 m = {2 * self.m}")

    @classmethod
    def of(cls, manifest: Manifest) -> "HnswOptions":
        """The options that the manifest gives."""
        given = manifest.settings.get("hnsw", {})
        known = [option.name for option in fields(cls)]
        if not isinstance(given, Mapping):
            raise ConfigError(f"hnsw settings must be an object of {', '.join(known)}; got {given!r}")
        if unknown := sorted(set(given) - set(known)):
            raise ConfigError(f"unknown hnsw setting {unknown[0]!r}: use {', '.join(known)}")
        return cls(**given)
