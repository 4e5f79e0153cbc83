"""The fingerprint that is kept with a record, so that near-duplicates are found without reading texts.

It is a blob like those of retrievers. Records without one, written by an older version or by other code, are
as good: whoever needs the fingerprint makes it from the text.
"""

from collections.abc import Iterable
from dataclasses import replace

from dartboard.near_duplicates import fingerprint
from dartboard.stores.records import Record

FINGERPRINT = "fingerprint"
"""The blob's name."""


def with_fingerprints(records: Iterable[Record]) -> list[Record]:
    """Return the records with the fingerprints of their texts."""
    return [
        replace(record, blobs={**record.blobs, FINGERPRINT: fingerprint(record.text)}) for record in records
    ]
