"""API keys: made once, shown once, kept as hashes in one small file.

A secret reads ``dbk_<id>_<43 characters>``; the last part is 32 random bytes. It is stored as a plain
SHA-256: slow hashes protect secrets that people think up, and 2²⁵⁶ values cannot be tried out at any speed,
while a slow hash would let anybody keep the server busy with wrong keys. The id is no secret; it names the
key in lists and logs.

The file is JSON with a version, readable by its owner alone, and replaced as a whole. A service looks at it
again as soon as it has changed, so a revoked key stops at once. A file that is damaged or gone lets nobody
in.
"""

import hashlib
import hmac
import json
import logging
import os
import re
import secrets
import stat
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from threading import Lock
from typing import Any, Literal, get_args

from dartboard.errors import ConfigError
from dartboard.file_lock import file_lock

Scope = Literal["read", "write"]
SCOPES: frozenset[Scope] = frozenset(get_args(Scope))
FORMAT_VERSION = 1
LONGEST_NAME = 100
_PREFIX = "dbk"
_SECRET = re.compile(r"dbk_([0-9a-f]{8})_[A-Za-z0-9_-]{43}")
_NOBODY = hashlib.sha256(b"").digest()
_OTHERS_WRITE = stat.S_IWGRP | stat.S_IWOTH
_OTHERS_READ = stat.S_IRGRP | stat.S_IROTH

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Key:
    """What is known of a key; the secret is not."""

    id: str
    name: str
    scopes: frozenset[Scope]
    rate: float | None = None
    """Requests a second; None: what the service allows everybody."""
    created: str = ""
    revoked: str | None = None

    def __post_init__(self) -> None:
        if not self.name.strip() or len(self.name) > LONGEST_NAME or not self.name.isprintable():
            raise ConfigError(f"a key's name is 1 to {LONGEST_NAME} printable characters")
        if not self.scopes or not self.scopes <= SCOPES:
            raise ConfigError("a key's scopes are read, or read and write")
        if "read" not in self.scopes:
            raise ConfigError("a key that may write may read as well: scopes are read, or read and write")
        if self.rate is not None and not 0 < self.rate < float("inf"):
            raise ConfigError("a key's rate is a positive number of requests a second")


@dataclass(frozen=True, slots=True)
class _Entry:
    key: Key
    digest: bytes


class Keys:
    """The keys of one file. Use :meth:`open`."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._lock = Lock()
        self._seen: tuple[int, ...] | None = None
        self._entries: dict[str, _Entry] = {}

    @classmethod
    def open(cls, path: str | Path, *, create: bool = False) -> "Keys":
        """The keys in the file at ``path``; ``create`` begins an empty one where there is none."""
        keys = cls(Path(path))
        if create and not keys.path.exists():
            keys.path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            with keys._writing():
                if not keys.path.exists():
                    keys._write({})
        keys._load()
        return keys

    def create(self, name: str, scopes: Iterable[Scope] = ("read",), rate: float | None = None) -> str:
        """Add a key and return its secret, which cannot be read again."""
        with self._lock, self._writing():
            self._load()
            if any(entry.key.name == name and not entry.key.revoked for entry in self._entries.values()):
                raise ConfigError(
                    "there is a key of this name already: revoke it first, or take another name"
                )
            key_id = secrets.token_hex(4)
            while key_id in self._entries:
                key_id = secrets.token_hex(4)
            key = Key(id=key_id, name=name, scopes=frozenset(scopes), rate=rate, created=_now())
            secret = f"{_PREFIX}_{key_id}_{secrets.token_urlsafe(32)}"
            self._write({**self._entries, key_id: _Entry(key, _digest(secret))})
        return secret

    def list(self) -> tuple[Key, ...]:
        """All keys, revoked ones too, the oldest first."""
        self._refresh()
        return tuple(
            sorted((entry.key for entry in self._entries.values()), key=lambda key: (key.created, key.id))
        )

    def revoke(self, key_id: str) -> Key:
        """Let a key in no more; it stays in the list."""
        with self._lock, self._writing():
            self._load()
            entry = self._entries.get(key_id)
            if entry is None:
                raise ConfigError("there is no key with this id: 'dartboard keys list' shows them")
            if entry.key.revoked is None:
                entry = _Entry(replace(entry.key, revoked=_now()), entry.digest)
                self._write({**self._entries, key_id: entry})
        return entry.key

    def find(self, secret: str) -> Key | None:
        """The key that this secret belongs to, if it is in force; takes as long for a wrong secret."""
        self._refresh()
        shape = _SECRET.fullmatch(secret)
        entry = self._entries.get(shape[1]) if shape else None
        same = hmac.compare_digest(_digest(secret), entry.digest if entry else _NOBODY)
        return entry.key if same and entry is not None and entry.key.revoked is None else None

    def _refresh(self) -> None:
        """Read the file again if it changed; if it cannot be read, no key is in force."""
        with self._lock:
            try:
                if self._seen is None or _mark(self.path.stat()) != self._seen:
                    self._load()
            except (OSError, ConfigError) as error:
                if self._seen is not None or self._entries:
                    logger.error("the key file cannot be used, so no key is valid: %s", error)
                self._seen, self._entries = None, {}

    def _load(self) -> None:
        try:
            with self.path.open("rb") as stream:
                state = os.fstat(stream.fileno())
                _check_mode(self.path, state)
                content = stream.read()
        except FileNotFoundError as error:
            raise ConfigError(
                f"there is no key file {self.path}: make one with 'dartboard keys create'"
            ) from error
        self._entries = _parse(self.path, content)
        self._seen = _mark(state)

    def _write(self, entries: dict[str, _Entry]) -> None:
        document = {
            "kind": "dartboard keys",
            "format": FORMAT_VERSION,
            "keys": [_to_json(entry) for _, entry in sorted(entries.items())],
        }
        part = self.path.with_name(f".{self.path.name}.{os.getpid()}.part")
        part.unlink(missing_ok=True)
        try:
            file = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            with os.fdopen(file, "w", encoding="utf-8") as stream:
                json.dump(document, stream, indent=2)
                stream.write("\n")
                stream.flush()
                os.fsync(stream.fileno())
                state = os.fstat(stream.fileno())
            part.replace(self.path)
        finally:
            part.unlink(missing_ok=True)
        self._entries, self._seen = entries, _mark(state)

    @contextmanager
    def _writing(self) -> Iterator[None]:
        """One process at a time changes the file; readers need no lock, since it is replaced as a whole."""
        with file_lock(self.path.with_name(f".{self.path.name}.lock"), mode=0o600):
            yield


def _digest(secret: str) -> bytes:
    return hashlib.sha256(secret.encode("utf-8", "surrogatepass")).digest()


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")


def _mark(state: os.stat_result) -> tuple[int, ...]:
    """What tells a changed file, or one that others may write to since, from the one that was read."""
    return state.st_mtime_ns, state.st_size, state.st_ino, state.st_mode, state.st_uid


def _check_mode(path: Path, state: os.stat_result) -> None:
    if os.name != "posix":  # pragma: no cover
        return
    if state.st_mode & _OTHERS_WRITE:
        raise ConfigError(f"others may write to {path} and so let themselves in: chmod 600 {path}")
    if state.st_mode & _OTHERS_READ:
        logger.warning("others may read %s; it holds hashes only, but chmod 600 is better", path)


def _to_json(entry: _Entry) -> dict[str, Any]:
    return {**asdict(entry.key), "scopes": sorted(entry.key.scopes), "sha256": entry.digest.hex()}


def _parse(path: Path, content: bytes) -> dict[str, _Entry]:
    """Every entry, or an error: half a list of keys could hide that one was revoked."""
    try:
        document = json.loads(content)
        if document["kind"] != "dartboard keys":
            raise ValueError("it is another kind of file")
        if document["format"] != FORMAT_VERSION:
            raise ConfigError(
                f"{path} has format {document['format']!r}, and this version reads {FORMAT_VERSION}: "
                "use the version of dartboard that wrote it"
            )
        entries = [_from_json(row) for row in document["keys"]]
    except ConfigError:
        raise
    except (ValueError, TypeError, KeyError, RecursionError) as error:
        raise ConfigError(
            f"{path} is not a key file, or is damaged ({type(error).__name__}): restore it from a copy, or "
            "move it away and make keys anew"
        ) from error
    return {entry.key.id: entry for entry in entries}


def _from_json(row: dict[str, Any]) -> _Entry:
    row = dict(row)
    row.pop("burst", None)  # in files of older versions
    digest = bytes.fromhex(row.pop("sha256"))
    if len(digest) != hashlib.sha256().digest_size:
        raise ValueError("a hash of another length")
    return _Entry(Key(**{**row, "scopes": frozenset(row["scopes"])}), digest)
