"""A snapshot: one collection as a file that any store can restore (compressed JSON lines).

The first line is the manifest, each further line a record with its numbers in base64, and the last line the
number of records. A file without that line is incomplete; gzip's own checksum finds damage.
"""

import base64
import gzip
import json
import os
import secrets
import zlib
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from dartboard.errors import DartboardError, StoreError, StoreFormatError
from dartboard.stores.manifest import FORMAT_VERSION, Manifest, manifest_from_json, manifest_to_json
from dartboard.stores.records import Record, SparseVector
from dartboard.types import FloatArray

KIND = "dartboard snapshot"
_BATCH = 1000
_LONGEST_LINE = 64 * 1024 * 1024
"""Maximum bytes of a record: a small compressed file could expand to a line that fills the memory."""
_LEVEL = 1  # vectors hardly compress, and text compresses well at any level


def write_snapshot_file(
    path: str | Path, name: str, manifest: Manifest, batches: Iterable[list[Record]]
) -> None:
    """Write all records; the file gets its name only when it is complete."""
    target = Path(path)
    part = target.with_name(f"{target.name}.{secrets.token_hex(6)}.part")
    try:
        try:
            with part.open("xb") as raw:
                with gzip.GzipFile(fileobj=raw, mode="wb", compresslevel=_LEVEL, mtime=0) as stream:
                    head = {
                        "kind": KIND,
                        "format": FORMAT_VERSION,
                        "name": name,
                        **manifest_to_json(manifest),
                    }
                    stream.write(_line(head))
                    count = 0
                    for batch in batches:
                        stream.writelines(_line(_record_to_json(record)) for record in batch)
                        count += len(batch)
                    stream.write(_line({"records": count}))
                raw.flush()
                os.fsync(raw.fileno())
            part.replace(target)
        finally:
            part.unlink(missing_ok=True)
    except OSError as error:
        raise StoreError(f"cannot write the snapshot {target}: {error.strerror or error}") from error


def read_snapshot_file(path: str | Path) -> tuple[str, Manifest, Iterator[list[Record]]]:
    """Name, manifest, and records in batches.

    The file is read once, so damage may be found only after some batches: undo what was done with them.

    Raises:
        StoreFormatError: at the start or by the iterator: the file is damaged or not a snapshot.
    """
    source = Path(path)
    lines = _lines(source)
    head = _parsed(source, next(lines, b""))
    name = head.get("name")
    if head.get("kind") != KIND or not isinstance(name, str):
        raise StoreFormatError(f"{source} is not a dartboard snapshot")
    return name, manifest_from_json(head), _batches(source, lines)


def _batches(source: Path, lines: Iterator[bytes]) -> Iterator[list[Record]]:
    batch: list[Record] = []
    count, last = 0, None
    for line in lines:
        stored = _parsed(source, line)
        if last is not None or "id" not in stored:
            last = stored.get("records", 0)
            continue
        try:
            batch.append(_record_from_json(stored))
        except DartboardError:
            raise
        except (AttributeError, KeyError, TypeError, ValueError) as error:  # foreign content
            raise StoreFormatError(f"{source} holds no records of ours ({error!r})") from error
        count += 1
        if len(batch) == _BATCH:
            yield batch
            batch = []
    if last != count:
        raise StoreFormatError(f"{source} is damaged or was not finished: take the snapshot again")
    if batch:
        yield batch


def _lines(source: Path) -> Iterator[bytes]:
    try:
        with gzip.open(source, "rb") as stream:
            while line := stream.readline(_LONGEST_LINE + 1):
                if len(line) > _LONGEST_LINE:
                    raise StoreFormatError(
                        f"{source} has a record of more than {_LONGEST_LINE // 2**20} MB: dartboard did "
                        "not write this snapshot"
                    )
                yield line
    except FileNotFoundError:
        raise StoreError(f"there is no snapshot {source}") from None
    except (OSError, EOFError, zlib.error) as error:
        raise StoreFormatError(f"{source} is damaged or not a snapshot ({error})") from error


def _parsed(source: Path, line: bytes) -> dict[str, Any]:
    try:
        stored = json.loads(line)
    except ValueError as error:
        raise StoreFormatError(f"{source} is damaged or not a snapshot ({error})") from error
    if not isinstance(stored, dict):
        raise StoreFormatError(f"{source} is not a dartboard snapshot")
    return stored


def _line(row: dict[str, Any]) -> bytes:
    return json.dumps(row, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "surrogatepass") + b"\n"


def _record_to_json(record: Record) -> dict[str, Any]:
    row: dict[str, Any] = {
        "id": record.id,
        "text": record.text,
        "metadata": record.metadata,
        "embedding": _packed(record.embedding),
    }
    if record.vectors:
        row["vectors"] = {name: _packed(vector) for name, vector in sorted(record.vectors.items())}
    if record.sparse:
        row["sparse"] = {
            name: [_packed(vector.terms), _packed(vector.weights)]
            for name, vector in sorted(record.sparse.items())
        }
    if record.blobs:
        row["blobs"] = {name: base64.b64encode(data).decode() for name, data in sorted(record.blobs.items())}
    return row


def _record_from_json(row: dict[str, Any]) -> Record:
    return Record(
        row["id"],
        row["text"],
        _floats(row["embedding"]),
        row["metadata"],
        vectors={name: _floats(packed) for name, packed in row.get("vectors", {}).items()},
        sparse={
            name: SparseVector(np.frombuffer(base64.b64decode(terms), "<i4"), _floats(weights))
            for name, (terms, weights) in row.get("sparse", {}).items()
        },
        blobs={name: base64.b64decode(packed) for name, packed in row.get("blobs", {}).items()},
    )


def _packed(values: np.ndarray[Any, np.dtype[Any]]) -> str:
    little = "<i4" if values.dtype.kind == "i" else "<f4"
    return base64.b64encode(np.ascontiguousarray(values, dtype=little).tobytes()).decode()


def _floats(packed: str) -> FloatArray:
    return np.frombuffer(base64.b64decode(packed), "<f4").astype(np.float32)
