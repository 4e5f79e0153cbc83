"""Arrays in a folder: replaced atomically and verified when read.

Each array is an ``.npy`` file with a unique name. ``index.json`` lists the valid files with sizes and
checksums (CRC-32), and has a checksum of itself. A save writes new files and then replaces ``index.json``
atomically: readers see the old or the new index, and a full disk or a killed process leaves the old one in
place. CRC-32 detects accidents (truncated files, flipped bits), not forgery, so the caller also checks that
the content is plausible.
"""

import json
import os
import re
import secrets
import stat
import zlib
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from dartboard.errors import StoreFormatError

FORMAT_VERSION = 1
_MANIFEST = "index.json"
_DATA_FILE = re.compile(r"[a-z_]+-[0-9a-f]{16}\.npy|index-[0-9a-f]{16}\.json")
_BLOCK = 1 << 22

Arrays = dict[str, npt.NDArray[Any]]


def save_arrays(
    folder: str | Path, kind: str, header: Mapping[str, Any], arrays: Mapping[str, npt.NDArray[Any]]
) -> None:
    """Replace the content of the folder by these arrays and this header (JSON data)."""
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    token = secrets.token_hex(8)
    written: list[Path] = []
    try:
        files: dict[str, dict[str, Any]] = {}
        for name, array in arrays.items():
            path = folder / f"{name}-{token}.npy"
            written.append(path)
            with path.open("wb") as stream:
                np.save(stream, np.ascontiguousarray(array), allow_pickle=False)
                _flush(stream)
            files[name] = {"file": path.name, "bytes": path.stat().st_size, "crc32": _file_checksum(path)}
        body = {"format_version": FORMAT_VERSION, "kind": kind, "header": dict(header), "files": files}
        draft = folder / f"index-{token}.json"
        written.append(draft)
        with draft.open("w", encoding="utf-8") as text:
            json.dump({**body, "crc32": _json_checksum(body)}, text, indent=1)
            _flush(text)
        draft.replace(folder / _MANIFEST)
    except BaseException:
        for path in written:
            with suppress(OSError):
                path.unlink(missing_ok=True)
        raise
    _sweep(folder, {entry["file"] for entry in files.values()})


def load_arrays(folder: str | Path, kind: str, *, mmap: bool = True) -> tuple[dict[str, Any], Arrays]:
    """Header and arrays as saved; raises :class:`StoreFormatError` if they are damaged."""
    folder = Path(folder)
    body = _read_manifest(folder, kind)
    try:
        return body["header"], _read_arrays(folder, body["files"], mmap)
    except FileNotFoundError:  # another process has replaced the index since the manifest was read
        body = _read_manifest(folder, kind)
        try:
            return body["header"], _read_arrays(folder, body["files"], mmap)
        except FileNotFoundError as error:
            raise _damaged(folder, f"{Path(error.filename).name} is missing") from error


def _read_manifest(folder: Path, kind: str) -> dict[str, Any]:
    try:
        body = json.loads((folder / _MANIFEST).read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        raise StoreFormatError(f"{folder} holds no saved index ({_MANIFEST} is missing)") from error
    except (OSError, ValueError, RecursionError) as error:
        raise _damaged(folder, f"{_MANIFEST} cannot be read") from error
    if not isinstance(body, dict) or body.pop("crc32", None) != _json_checksum(body):
        raise _damaged(folder, f"{_MANIFEST} does not match its checksum")
    version = body.get("format_version")
    if version != FORMAT_VERSION:
        raise StoreFormatError(
            f"{folder} is of format {version}, this release reads format {FORMAT_VERSION}: "
            "build the index again, or use the release that made it"
        )
    if body.get("kind") != kind:
        raise StoreFormatError(f"{folder} holds an index of kind {body.get('kind')!r}, not {kind!r}")
    if not isinstance(body.get("header"), dict) or not isinstance(body.get("files"), dict):
        raise _damaged(folder, f"{_MANIFEST} lacks its header or its files")
    return body


def _read_arrays(folder: Path, files: Mapping[str, Any], mmap: bool) -> Arrays:
    arrays = {}
    for name, entry in files.items():
        if not isinstance(entry, dict) or not _DATA_FILE.fullmatch(str(entry.get("file"))):
            raise _damaged(folder, f"{_MANIFEST} names a strange file for {name!r}")
        path = folder / entry["file"]
        found = path.stat()
        if not stat.S_ISREG(found.st_mode):  # opening a named pipe would block for ever
            raise _damaged(folder, f"{path.name} is not a regular file")
        if found.st_size != entry.get("bytes") or _file_checksum(path) != entry.get("crc32"):
            raise _damaged(folder, f"{path.name} does not match its checksum")
        try:
            # As a plain array: every use of an np.memmap object costs microseconds.
            arrays[name] = np.asarray(np.load(path, mmap_mode="r" if mmap else None, allow_pickle=False))
        except FileNotFoundError:
            raise
        except (OSError, ValueError, EOFError) as error:
            raise _damaged(folder, f"{path.name} is not an array: {error}") from error
    return arrays


def _damaged(folder: Path, what: str) -> StoreFormatError:
    return StoreFormatError(f"the index in {folder} is damaged: {what}. Build it again")


def _flush(stream: Any) -> None:
    stream.flush()
    os.fsync(stream.fileno())


def _sweep(folder: Path, keep: set[str]) -> None:
    """Remove files of earlier saves; files that another process has open may stay until the next save."""
    for path in folder.iterdir():
        if _DATA_FILE.fullmatch(path.name) and path.name not in keep:
            with suppress(OSError):
                path.unlink()


def _file_checksum(path: Path) -> int:
    checksum = 0
    with path.open("rb", buffering=0) as stream:
        while block := stream.read(_BLOCK):
            checksum = zlib.crc32(block, checksum)
    return checksum


def _json_checksum(body: Mapping[str, Any]) -> int:
    return zlib.crc32(json.dumps(body, sort_keys=True).encode())
