"""One connection to Milvus: calls with a time limit, and errors that say what to do."""

import threading
from contextlib import AbstractContextManager, nullcontext
from typing import Any

from dartboard.deadline import check, within
from dartboard.errors import MissingExtraError, StoreError
from dartboard.stores.milvus import lite
from dartboard.stores.milvus.address import Address
from dartboard.stores.milvus.faults import is_not_loaded, translate
from dartboard.stores.milvus.quiet import hush, our_call

CONNECT_SECONDS = 5.0
_SECONDS = 60.0
_SLOW_SECONDS = {
    "load_collection": 600.0,
    "flush": 600.0,
    "create_index": 600.0,
    "upsert": 300.0,
    "delete": 300.0,
}
_STRONG = ("search", "query")


class Connection:
    """Calls to a server by the client's method names; ``is_lite`` tells Milvus Lite from a full server."""

    def __init__(self, address: Address, *, read_only: bool) -> None:
        self.address = address
        self._lite_path = ""
        client_class, self._errors = _client_class()
        uri = address.uri
        if address.path:
            uri, self._lite_path = lite.start(address.path, read_only=read_only), address.path
        try:
            with our_call():
                self._client: Any = client_class(
                    uri=uri,
                    token=address.token,
                    db_name=address.database,
                    timeout=CONNECT_SECONDS,
                    dedicated=True,
                )
                self.version = str(self._client.get_server_version(timeout=CONNECT_SECONDS))
                self._client.list_collections(timeout=CONNECT_SECONDS)
        except self._errors as error:
            self.close()
            raise translate(error, address) from None
        self.is_lite = "lite" in self.version.lower()
        # A server takes writes side by side; Milvus Lite must get them one after another.
        self.writing: AbstractContextManager[Any] = threading.RLock() if self.is_lite else nullcontext()

    def call(self, method: str, collection: str = "", *, may_load: bool = True, **given: Any) -> Any:
        """``method`` of the client; a collection that a restart has unloaded is loaded and asked again."""
        if self._client is None:
            raise StoreError("the store is closed: open it again")
        check()
        given.setdefault("timeout", max(0.001, within(_SLOW_SECONDS.get(method, _SECONDS))))
        if method in _STRONG:
            given.setdefault("consistency_level", "Strong")
        if collection:
            given["collection_name"] = collection
        try:
            with our_call():
                return getattr(self._client, method)(**given)
        except self._errors as error:
            check()
            if not (may_load and collection and is_not_loaded(error)):
                raise translate(error, self.address) from error
        self.call("load_collection", collection, may_load=False)
        return self.call(method, may_load=False, **given)

    def close(self) -> None:
        """Give the connection back; closing twice does nothing."""
        client, self._client = getattr(self, "_client", None), None
        if client is not None:
            client.close()
        path, self._lite_path = self._lite_path, ""
        if path:
            lite.stop(path)


def _client_class() -> tuple[Any, tuple[type[Exception], ...]]:
    try:
        import grpc
        from pymilvus import MilvusClient
        from pymilvus.exceptions import MilvusException
    except ImportError as error:
        raise MissingExtraError("pymilvus", "milvus", "a Milvus store") from error
    hush()
    return MilvusClient, (MilvusException, grpc.RpcError, grpc.FutureTimeoutError)
