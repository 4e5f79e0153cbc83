"""Whether a name from a file may choose what is loaded and where data is sent.

An index stores the names of its model and its retriever, and a ``dartboard.toml`` may be in any folder.
Either may come from an untrusted source. Without confirmation, such a name can choose only what ships with
dartboard. Everything else (an endpoint, weights in a folder or on a hub, a plug-in, a server) is rejected
until the user has confirmed it:

- by naming exactly the same model (``--model``, ``model=…``, ``DARTBOARD_TRUST_MODELS``), or by having made
  the index with it on this machine;
- by ``--trust-model``, or ``trust_model=True`` in Python, for all names in this index.

Confirmations are stored with the user (:mod:`dartboard.engine.trust_store`), never in the index.

API keys are sent to the provider's own host and to hosts that the user named. ``--trust-model`` alone sends
no key to a host that only the index names.
"""

import hashlib
import os
import secrets
from collections.abc import Mapping, Sequence
from pathlib import Path
from urllib.parse import unquote, urlsplit
from weakref import WeakKeyDictionary

from dartboard.embeddings.by_name import GEMINI_URL, OPENAI_URL, endpoint_name
from dartboard.engine.trust_store import VARIABLE, keep, known
from dartboard.errors import UntrustedModelError
from dartboard.plain_text import shortened
from dartboard.plugins import names
from dartboard.retrievers.registry import loads_foreign
from dartboard.selection.select import METHODS
from dartboard.stores import Store
from dartboard.stores.urls import without_password

STORED = ("model", "retriever")
"""The settings of a collection that hold names."""

_in_memory: "WeakKeyDictionary[Store, str]" = WeakKeyDictionary()
_LONGEST = 300


def foreign(setting: str, name: str) -> str | None:
    """What a name would send or load, as text; None if it chooses only what ships with dartboard."""
    name = name.strip()
    match setting:
        case "model":
            return None if name == "default" else _of_model(name)
        case "answer_model":
            return _of_model(name) if name else None
        case "retriever":
            return _of_retriever(name) if loads_foreign(name) else None
        case "pair_scorer":
            path = shown(name.partition(":")[2])
            own = name in ("none", "late-interaction")
            return None if own else f"weights would be loaded from {path!r}"
        case "method":
            own = name in METHODS or name not in names("selector")
            return None if own else f"the plug-in {shown(name)!r} would be run"
        case "store":
            scheme = name.partition("://")[0].lower() if "://" in name else ""
            own = scheme in ("", "file", "memory")
            return (
                None if own else f"questions and documents would be sent to {shown(without_password(name))}"
            )
        case "ray":
            own = name in ("off", "auto", "local")
            return None if own else f"work would be sent to the cluster {shown(name)}"
        case "trust_models":
            return "names in other files would be trusted" if name else None
    return None


def confirm(
    store: Store,
    setting: str,
    name: str,
    *,
    collection: str,
    trust: bool | Sequence[str] = False,
) -> bool:
    """Check that a stored name may be used; returns whether an API key may be sent to its host.

    ``trust`` is True for any stored name, or the names that the user gave.

    Raises:
        UntrustedModelError: the name needs a confirmation and has none.
    """
    what = foreign(setting, name)
    if what is None or name.strip() in _named(trust):
        return True
    with_key = known(place_of(store), setting, name)
    if with_key is None and trust is not True:
        raise UntrustedModelError(_refusal(store, setting, name, what, collection))
    return bool(with_key) or _users_host(name)


def remember(place: str, setting: str, name: str, *, with_key: bool) -> None:
    """Store that the user confirmed a name for a place; names that need no confirmation are not stored."""
    if foreign(setting, name) is None or known(place, setting, name) in (True, with_key):
        return
    keep(place, setting, name.strip(), with_key)


def trust_stored(store: Store, collections: Sequence[str]) -> list[str]:
    """Confirm the names in collections of a store (``--trust-model``); returns messages for the user."""
    told = []
    for collection in collections:
        for setting, name in stored_names(store.open(collection).manifest.settings).items():
            what = foreign(setting, name)
            if what is None:
                continue
            remember(place_of(store), setting, name, with_key=False)
            key = _key_of(name)
            if key and not confirm(store, setting, name, collection=collection, trust=True):
                what += f"; {key} is not sent there"
            told.append(f"trusted from now on: {shown(name)!r} of {shown(store.url)}. {what}")
    return list(dict.fromkeys(told))


def carry(source: str, target: str, settings: Mapping[str, object]) -> None:
    """Copy confirmations of one place to its copy: a snapshot, or a restored collection."""
    for setting, name in stored_names(settings).items():
        with_key = known(source, setting, name)
        if with_key is not None:
            remember(target, setting, name, with_key=with_key)


def trust_file(file: Path) -> None:
    """Confirm a settings file with its current content; a change needs a new confirmation."""
    keep(_path(file), "settings", _digest(file), True)


def is_trusted_file(file: Path) -> bool:
    """Whether the file was confirmed with its current content."""
    return known(_path(file), "settings", _digest(file)) is not None


def stored_names(settings: Mapping[str, object]) -> dict[str, str]:
    """The names among the settings of a collection."""
    return {setting: str(settings[setting]) for setting in STORED if settings.get(setting)}


def names_in(text: str) -> tuple[str, ...]:
    """Split names at semicolons."""
    return tuple(name.strip() for name in text.split(";") if name.strip())


def place_of(store: Store | str | Path) -> str:
    """The identity of a store or file in confirmations: an absolute path, or a URL without its password."""
    if isinstance(store, (str, Path)):
        return _path(Path(store))
    url = without_password(store.url)
    if url.startswith("memory:"):
        return _in_memory.setdefault(store, f"memory:{secrets.token_hex(8)}")
    if url.startswith("file:"):
        return _path(Path(unquote(urlsplit(url).path)))
    return url if "://" in url else _path(Path(url))


def shown(text: str) -> str:
    """A name from a file, shortened and safe to print on a terminal."""
    return shortened(text, _LONGEST)


def _of_model(name: str) -> str:
    kind, _, rest = name.partition(":")
    named = endpoint_name(name)
    if named is not None:
        url, origin = shown(named.base_url), _origin(named.base_url)
        if not url.isascii():  # may contain letters that look like those of another host
            url = f"{url!a}, the host {origin[1] if origin else '?'}"
        return f"questions and texts would be sent to {url}"
    if kind == "onnx":
        return f"weights would be loaded from the folder {shown(rest)!r}"
    if kind == "sentence-transformers":
        return f"weights would be loaded from {shown(rest)!r}, a folder or a name on the Hugging Face hub"
    return "it is not a model that ships with dartboard"


def _of_retriever(name: str) -> str:
    if name.partition(":")[0] in names("retriever"):
        return f"the plug-in {shown(name.partition(':')[0])!r} would be run"
    return f"weights, or a plug-in, would be loaded for {shown(name)!r}"


def _refusal(store: Store, setting: str, name: str, what: str, collection: str) -> str:
    option = "--model (of ask: --embedding-model)" if setting == "model" else "--retriever"
    key = _key_of(name)
    stays = f"; {key} is then not sent to a host that only the index names" if key else ""
    goes = f" and {key} goes there" if key else ""
    return (
        f"collection {collection!r} of {shown(store.url)} asks for the {setting} {shown(name)!r}: {what}. "
        "The name came from the index, not from you, so nothing was sent or loaded. If you know who made "
        f"this index, confirm it once by dartboard search --trust-model{stays}. Or give {option} with "
        f"exactly this name: it then counts as yours{goes}. Services and programs: {VARIABLE}, {setting}=…, "
        "trust_model=True"
    )


def _key_of(name: str) -> str:
    named = endpoint_name(name)
    return "" if named is None else f"{named.kind.upper()}_API_KEY"


def _users_host(name: str) -> bool:
    """Whether the host is the provider's own, or the one in the user's environment."""
    named = endpoint_name(name)
    if named is None:
        return True
    own = OPENAI_URL if named.kind == "openai" else GEMINI_URL
    theirs = os.environ.get("OPENAI_BASE_URL", "").strip() if named.kind == "openai" else ""
    return _origin(named.base_url) in {_origin(url) for url in (own, theirs) if url}


def _origin(url: str) -> tuple[str, str, int | None] | None:
    """Scheme, host and port, as the client reads them; None if it is not a URL."""
    import httpx

    try:
        read = httpx.URL(url)
    except (httpx.InvalidURL, TypeError):
        return None
    return read.scheme, read.raw_host.decode("ascii"), read.port


def _named(trust: bool | Sequence[str]) -> set[str]:
    given = () if isinstance(trust, bool) else (trust,) if isinstance(trust, str) else trust
    return {name.strip() for name in (*given, *names_in(os.environ.get(VARIABLE, "")))}


def _path(path: Path) -> str:
    return os.path.realpath(path.expanduser())


def _digest(file: Path) -> str:
    return hashlib.sha256(file.read_bytes()).hexdigest()
