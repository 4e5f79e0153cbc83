"""Which state of a collection a connection sees."""

import json
import sqlite3
from dataclasses import dataclass
from functools import lru_cache

from dartboard.errors import CollectionError
from dartboard.stores.embedded.sums import COLLECTION, check_collection, damaged, has_collection_sums
from dartboard.stores.manifest import Manifest, manifest_from_json, manifest_to_json


@dataclass(frozen=True, slots=True, kw_only=True)
class Revision:
    """A collection at one moment: every write raises ``number``; rows up to ``last_row`` are given out."""

    number: int
    floor: int
    records: int
    last_row: int
    manifest_text: str

    @property
    def manifest(self) -> Manifest:
        """What the collection was made with; shared by all readers, so nobody may change its settings."""
        return parsed_manifest(self.manifest_text)


def revision_of(connection: sqlite3.Connection, collection: int, name: str) -> Revision:
    """The collection's state, or an error where it was dropped."""
    stored = "sum" if has_collection_sums(connection) else "NULL"
    found = connection.execute(
        f"SELECT {COLLECTION}, {stored}, next_row - 1 FROM collections, counters WHERE key = ?",  # noqa: S608
        (collection,),
    ).fetchone()
    if found is None:
        raise CollectionError(f"collection {name!r} was dropped meanwhile")
    *said, kept, last_row = found
    check_collection(collection, said, kept)
    _, text, records, number, floor = said
    if not isinstance(last_row, int):
        raise damaged("the count of rows")
    return Revision(number=number, floor=floor, records=records, last_row=last_row, manifest_text=text)


def manifest_text(manifest: Manifest) -> str:
    """A manifest as it stands in the file."""
    return json.dumps(manifest_to_json(manifest), ensure_ascii=False)


@lru_cache(maxsize=64)
def parsed_manifest(text: str) -> Manifest:
    """The manifest that stands in the file."""
    try:
        return manifest_from_json(json.loads(text))
    except (TypeError, ValueError) as error:
        raise damaged(f"the collection's manifest ({error})") from error
