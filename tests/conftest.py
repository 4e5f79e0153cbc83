"""What holds for every test, in one process or in several (``pytest -n 2``).

The tests of a file stay in one process, and so do files that share something dear to start: a server, a
browser, the vectors of the demo. The dearest groups go first, so that none is left over at the end.

Tests that start a server, a browser or another process are marked ``slow`` (see ``slow.py``).
"""

import gc
import os
import signal
import ssl
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cache
from importlib import import_module
from pkgutil import walk_packages

import pytest
from hypothesis import settings

from tests.examples import QUICK, examples
from tests.slow import is_long, is_slow

settings.register_profile("tests", examples(100))
settings.load_profile("tests")

# jsonschema loads its grammars for addresses of RFC 3987 where it is installed: two seconds in each process.
sys.modules.setdefault("rfc3987_syntax", None)  # type: ignore[arg-type]

# Before NumPy is loaded: products in tests are small, and there are as many processes as cores.
for library in ("OMP", "OPENBLAS", "MKL"):
    os.environ.setdefault(f"{library}_NUM_THREADS", "1")

# What a shell without job control starts in the background is deaf to Ctrl-C, and so are its children. A
# handler, even one that does nothing, is not inherited: tests interrupt children, which have to hear it.
_deaf = signal.getsignal(signal.SIGINT) is signal.SIG_IGN
if _deaf and threading.current_thread() is threading.main_thread():
    signal.signal(signal.SIGINT, lambda *_: None)

GROUPS = {
    "tests/web/": "browser",
    "tests/stores/test_postgres": "postgres",
    "tests/stores/test_filter_fields.py": "postgres",
    "tests/test_hostile_index.py": "postgres",
    "tests/embeddings/": "torch",
    "tests/retrievers/test_registry.py": "torch",
    "tests/retrievers/test_splade.py": "torch",
    "tests/test_deadline.py": "torch",
    "tests/test_rerankers.py": "torch",
    "tests/stores/test_milvus": "milvus",
    "tests/cli/test_demo.py": "demo",
    "tests/cli/test_app.py": "demo",
    "tests/cli/test_duplicates.py": "demo",
    "tests/cluster/": "ray",
}
"""What files whose names begin so share; any other file is a group of its own. (torch is slow to load.)"""

DEAREST = (
    "browser",
    "ray",
    "torch",
    "postgres",
    "milvus",
    "tests/stores/test_durability.py",
    "tests/test_packaging.py",
    "demo",
    "tests/cli/test_serve.py",
    "tests/api/test_schema.py",
    "tests/mining/test_mining_commands.py",
    "tests/test_notebooks.py",
    "tests/test_site.py",
)
"""Groups that take longest, in that order; the others follow as they are found."""


LARGE = (
    "faiss",
    "fastapi.testclient",
    "haystack",
    "langchain_classic.retrievers",
    "langchain_core.documents",
    "llama_index.core",
    "matplotlib.pyplot",
    "mcp",
    "pandas",
    "playwright.sync_api",
    "psycopg_pool",
    "pymilvus",
    "schemathesis",
    "scipy.stats",
    "sklearn.metrics",
    "torch",
    "uvicorn",
)
"""Packages that the tests load, and that take long to load."""


def group_of(nodeid: str) -> str:
    path = nodeid.partition("::")[0]
    return next((group for start, group in GROUPS.items() if path.startswith(start)), path)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config, log):
    from xdist.scheduler import LoadScopeScheduling

    class ByGroup(LoadScopeScheduling):
        def _split_scope(self, nodeid: str) -> str:
            return group_of(nodeid)

    config.option.loadscopereorder = False  # which would put many tests, not dear ones, first
    return ByGroup(config, log)


@contextmanager
def untraced() -> Iterator[bool]:
    """Stop measuring the coverage; whether it is measured at all."""
    coverage = sys.modules.get("coverage")
    measuring = coverage.Coverage.current() if coverage else None
    if measuring is None:
        yield False
        return
    measuring.stop()
    try:
        yield True
    finally:
        measuring.start()


def load_package() -> None:
    """Load the package while its coverage is measured, but not the large ones of others that it needs.

    One of several processes does so for all: what stands outside of functions counts once.
    """
    with untraced() as measured:
        for name in LARGE if measured else ():
            with suppress(ImportError):
                import_module(name)
    if not measured or os.environ.get("PYTEST_XDIST_WORKER", "gw0") != "gw0":
        return
    import dartboard

    for module in walk_packages(dartboard.__path__, "dartboard."):
        if not module.name.endswith("__main__"):
            with suppress(ImportError):
                import_module(module.name)


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_collection(session):
    """Load everything without tracing it, and without looking for what can be freed.

    Every process loads all tests, and what they are about: some millions of objects. The process that only
    hands out tests to others loads nothing.
    """
    if session.config.getoption("dist", "no") != "no" and not hasattr(session.config, "workerinput"):
        return (yield)
    gc.disable()
    try:
        load_package()
        with untraced():
            return (yield)
    finally:
        gc.freeze()
        gc.enable()


def pytest_ignore_collect(collection_path, config):
    """Files that ``make test-quick`` leaves out as a whole are not even loaded."""
    if not QUICK:
        return None
    return is_long(f"{collection_path.relative_to(config.rootpath).as_posix()}/") or None


@pytest.hookimpl(tryfirst=True)  # before tests are chosen by their marks
def pytest_collection_modifyitems(config, items):
    for item in items:
        if is_slow(item):
            item.add_marker(pytest.mark.slow)
        if is_long(item.nodeid):
            item.add_marker(pytest.mark.no_cover)
    if hasattr(config, "workerinput"):
        place = {group: at for at, group in enumerate(DEAREST)}
        items.sort(key=lambda item: place.get(group_of(item.nodeid), len(place)))


@pytest.fixture(scope="session")
def demo_vectors(tmp_path_factory):
    """A cache that holds the vectors of the demo: made once in a run, for all its processes; copy it."""
    from dartboard.file_lock import file_lock
    from tests.cli.running import run

    base = tmp_path_factory.getbasetemp()
    folder = (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / "demo-vectors"
    with file_lock(folder.with_suffix(".lock")):
        if not folder.exists():
            done = run("demo", cache=folder.with_suffix(".new"))
            assert done.returncode == 0, done.stderr
            folder.with_suffix(".new").rename(folder)
    return folder


@pytest.fixture(scope="session", autouse=True)
def own_configuration(tmp_path_factory):
    """No test reads or writes the configuration of whoever runs it; processes that tests start neither."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CONFIG_HOME", str(tmp_path_factory.mktemp("config")))
        yield


@pytest.fixture(scope="session", autouse=True)
def one_model():
    """The default model is loaded once in a process: most of what it takes to start a service."""
    from dartboard.embeddings.onnx import OnnxModel

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(OnnxModel, "bundled", staticmethod(cache(OnnxModel.bundled)))
        yield


@pytest.fixture(scope="session", autouse=True)
def one_set_of_certificates():
    """Every client for HTTP would read some hundred certificates, which takes longer than most requests."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ssl, "create_default_context", cache(ssl.create_default_context))
        yield
