"""Collections in Milvus, by URL (see :mod:`dartboard.stores.milvus.connection`)."""

from pathlib import Path
from typing import Any, Self

from pymilvus import MilvusClient

from dartboard.errors import StoreError
from dartboard.stores.base import DEFAULT_COLLECTION
from dartboard.stores.checks import check_name, exists_already, missing
from dartboard.stores.manifest import Manifest
from dartboard.stores.milvus.collection import MilvusCollection
from dartboard.stores.milvus.connection import Connection, parse_address
from dartboard.stores.milvus.rows import Lexemes
from dartboard.stores.milvus.schema import (
    CollectionLayout,
    build_schema,
    choose_layout,
    collection_name,
    index_kinds,
    is_ours,
    properties,
    read_properties,
    readable_name,
)
from dartboard.stores.snapshot_file import read_snapshot_file


class MilvusStore:
    """Milvus Lite in this process, a server or a cluster; collections of other programs are not listed."""

    def __init__(self, url: str, *, read_only: bool = False) -> None:
        self._address = parse_address(url)
        self._connection = Connection(self._address, read_only=read_only)

    @property
    def url(self) -> str:
        """The URL of the store, without its token."""
        return self._address.shown

    def collections(self) -> list[str]:
        """The names of dartboard's collections, sorted."""
        stored = [name for name in self._connection.call("list_collections") if is_ours(name)]
        return sorted(readable_name(name) or self._described(name)[1].name for name in stored)

    def create(self, name: str, manifest: Manifest) -> MilvusCollection:
        """A new empty collection; others see it when it is complete."""
        check_name(name)
        self._connection.check_writable()
        Lexemes.of(manifest)  # raises for invalid settings before anything is created
        if self._exists(name):
            raise exists_already(name)
        layout = choose_layout(name, is_lite=self._connection.is_lite, index=self._address.index)
        stored = collection_name(name)
        self._connection.call(
            "create_collection",
            stored,
            schema=build_schema(manifest, layout),
            properties=properties(manifest, layout),
            consistency_level="Strong",
        )
        try:
            self._make_ready(stored, manifest, layout)
        except StoreError:
            self._connection.call("drop_collection", stored)
            raise
        return MilvusCollection(self._connection, manifest, layout, fresh=True)

    def open(self, name: str = DEFAULT_COLLECTION) -> MilvusCollection:
        """Open and load a collection; indexes missing after an interrupted create are built."""
        if not self._exists(name):
            raise missing(name, self.collections())
        stored = collection_name(name)
        manifest, layout = self._described(stored)
        self._make_ready(stored, manifest, layout)
        return MilvusCollection(self._connection, manifest, layout)

    def drop(self, name: str) -> None:
        """Delete a collection with all its records."""
        self._connection.check_writable()
        if not self._exists(name):
            raise missing(name, self.collections())
        self._connection.call("drop_collection", collection_name(name))

    def restore(self, path: str | Path, name: str | None = None) -> MilvusCollection:
        """A new collection from a snapshot; removed again if it cannot be filled."""
        self._connection.check_writable()
        stored_name, manifest, batches = read_snapshot_file(path)
        collection = self.create(name or stored_name, manifest)
        try:
            for batch in batches:
                collection.upsert(batch)
        except Exception:
            self.drop(collection.name)
            raise
        return collection

    def close(self) -> None:
        """Close the connection; closing twice does nothing."""
        self._connection.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _exists(self, name: str) -> bool:
        return bool(self._connection.call("has_collection", collection_name(name)))

    def _described(self, stored: str) -> tuple[Manifest, CollectionLayout]:
        described = self._connection.call("describe_collection", stored)
        return read_properties(dict(described.get("properties") or {}), f"collection {stored!r}")

    def _make_ready(self, stored: str, manifest: Manifest, layout: CollectionLayout) -> None:
        present = self._connection.call("list_indexes", stored)
        wanted = index_kinds(manifest, layout)
        # Milvus Lite names an index after its field plus a suffix, a server uses the given name.
        lacking = {name: kind for name, kind in wanted.items() if not {name, f"{name}_idx"} & set(present)}
        for name, kind in lacking.items() if not self._connection.read_only else ():
            params = _index_params(name, kind, is_lite=self._connection.is_lite)
            try:
                self._connection.call("create_index", stored, index_params=params, sync=False)
            except StoreError:
                if name != "terms":  # filters also work without this index
                    raise
        self._connection.call("load_collection", stored)


def _index_params(name: str, kind: dict[str, Any], *, is_lite: bool) -> Any:
    build = kind.get("params", {})
    # The client flattens the parameters for servers; Milvus Lite expects them in one entry of that name.
    given = {**kind, "params": {"params": build} if is_lite and build else build}
    params = MilvusClient.prepare_index_params()
    params.add_index(field_name=name, index_name=name, **given)
    return params
