"""No test depends on the machine's speed: no sleep, no time-out that a slow machine reaches, no stopwatch.

A line that needs one of them gives the reason in a comment: ``# timing: why no slow machine fails here``.
"""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

pytestmark = pytest.mark.no_cover  # reads sources, and runs nothing of the package

TESTS = Path(__file__).parent
SHORTEST = 30
"""Seconds; what is to happen within fewer may be late on a busy machine."""
REASON = re.compile(r"# timing: \w.{8,}")
SLEEPS = {"sleep", "wait_for_timeout"}
MODULES = {"asyncio", "anyio", "time"}
"""Their ``sleep`` is one even where it is not called, such as ``pause = time.sleep``."""
WAITS = {
    *("acquire", "communicate", "deadline", "fail_after", "join", "move_on_after", "result", "settimeout"),
    *("set_default_navigation_timeout", "set_default_timeout", "timeout", "Timeout", "wait", "wait_for"),
    "wait_until",
}
"""Any number that these get is a limit; of others it is one by its name."""
LIMIT = re.compile(r"(^|_)(timeout|deadline|patience|seconds)$", re.IGNORECASE)
PLAYWRIGHT = re.compile(
    r"(not_)?to_\w+|wait_for_\w+|expect_\w+|set_default_\w+|set_options|goto|reload|launch|"
    r"check|click|dblclick|fill|focus|hover|press|select_option|tap|uncheck"
)
"""Methods that count in milliseconds; ``wait_for`` does, unless it is asyncio's."""
CLOCKS = {"monotonic", "monotonic_ns", "perf_counter", "perf_counter_ns", "process_time", "thread_time"}


def constants(tree: ast.Module) -> dict[str, float]:
    """Numbers that are given a name; of several for the same name, the smallest."""
    found: dict[str, float] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign) and (value := number(node.value, {})) is not None:
            for target in node.targets:
                if isinstance(target, ast.Name):
                    found[target.id] = min(value, found.get(target.id, value))
    return found


def number(node: ast.expr, names: dict[str, float]) -> float | None:
    if isinstance(node, ast.Name):
        return names.get(node.id)
    if isinstance(node, ast.Constant) and type(node.value) in (int, float):
        return node.value
    return None


def name_of(node: ast.expr) -> str:
    return getattr(node, "attr", getattr(node, "id", ""))


def short_limits(call: ast.Call, names: dict[str, float]) -> Iterator[str]:
    name, owner = name_of(call.func), name_of(getattr(call.func, "value", call.func))
    in_ms = PLAYWRIGHT.fullmatch(name) or (name == "wait_for" and owner != "asyncio" and call.keywords)
    given = [(one, name) for one in call.args if name in WAITS]
    given += [(one.value, one.arg) for one in call.keywords if one.arg and LIMIT.search(one.arg)]
    for node, what in given:
        value = number(node, names)
        if value is not None and 0 < value < SHORTEST * (1000 if in_ms else 1):
            yield f"{what} of {value:g} {'ms' if in_ms else 's'}"


def short_defaults(arguments: ast.arguments, names: dict[str, float]) -> Iterator[str]:
    placed = arguments.posonlyargs + arguments.args
    pairs = [*zip(reversed(placed), reversed(arguments.defaults), strict=False)]
    pairs += [
        (one, default) for one, default in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True)
    ]
    for one, default in pairs:
        value = number(default, names) if default else None
        if LIMIT.search(one.arg) and value is not None and 0 < value < SHORTEST:
            yield f"{one.arg} of {value:g} s"


def clocked(tree: ast.AST) -> set[str]:
    """Names whose value was read from a clock, or computed from such names."""
    found: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign) and reads_clock(node.value, found):
            found |= {name_of(getattr(target, "value", target)) for target in node.targets}
    return found


def reads_clock(node: ast.AST, names: set[str]) -> bool:
    for one in ast.walk(node):
        match one:
            case ast.Call(func=ast.Name() | ast.Attribute()) if name_of(one.func) in CLOCKS:
                return True
            case ast.Call(func=ast.Attribute(value=ast.Name(id="time"), attr="time")):
                return True
            case ast.Name() | ast.Attribute() if name_of(one) in names or name_of(one) == "elapsed":
                return True
    return False


def timed_assertions(function: ast.AST) -> Iterator[ast.Assert]:
    asserted = [node for node in ast.walk(function) if isinstance(node, ast.Assert)]
    timed = clocked(function) if asserted else set()
    yield from (node for node in asserted if reads_clock(node.test, timed))


def problems(tree: ast.Module) -> Iterator[tuple[ast.AST, str]]:
    names = constants(tree)
    called = {id(node.func) for node in ast.walk(tree) if isinstance(node, ast.Call)}
    for node in ast.walk(tree):
        match node:
            case ast.Call():
                name = name_of(node.func)
                if name in SLEEPS and not (node.args and number(node.args[0], names) == 0):
                    yield node, f"calls {name}"
                yield from ((node, problem) for problem in short_limits(node, names))
            case ast.Attribute(value=ast.Name(id=module), attr="sleep") if id(node) not in called:
                if module in MODULES:
                    yield node, "another name for sleep"
            case ast.ImportFrom() if any(one.name in SLEEPS and one.asname for one in node.names):
                yield node, "another name for sleep"
            case ast.FunctionDef() | ast.AsyncFunctionDef():
                yield from ((node.args, problem) for problem in short_defaults(node.args, names))
                yield from ((one, "asserts on elapsed time") for one in timed_assertions(node))


def timing(source: str) -> list[tuple[int, str]]:
    """Line and what is wrong with it, for those without a reason."""
    lines, found = source.splitlines(), set()
    for node, problem in problems(ast.parse(source)):
        first = getattr(node, "lineno", None) or min(
            one.lineno for one in ast.walk(node) if hasattr(one, "lineno")
        )
        last = getattr(node, "end_lineno", None) or first
        if not any(REASON.search(line) for line in lines[first - 1 : last]):
            found.add((first, problem))
    return sorted(found)


def test_no_test_depends_on_the_speed_of_the_machine():
    found = [
        f"{path.relative_to(TESTS.parent)}:{line}: {problem}"
        for path in sorted(TESTS.rglob("*.py"))
        for line, problem in timing(path.read_text(encoding="utf-8"))
    ]
    advice = "wait for the event (tests/waiting.py), allow 30 s or more, or say why on the line (# timing: …)"
    assert not found, f"{advice}:\n" + "\n".join(found)


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ("time.sleep(0.1)", "calls sleep"),
        ("sleep(SHORT)", "calls sleep"),
        ("page.wait_for_timeout(500)", "calls wait_for_timeout"),
        ("from time import sleep as pause", "another name for sleep"),
        ("pause = time.sleep", "another name for sleep"),
        ("event.wait(20)", "wait of 20 s"),
        ("await asyncio.wait_for(answer(), 5)", "wait_for of 5 s"),
        ("lock.acquire(True, SHORT)", "acquire of 5 s"),
        ("async with asyncio.timeout(1): pass", "timeout of 1 s"),
        ("thread.join(timeout=29.5)", "timeout of 29.5 s"),
        ("thread.join(SHORT)", "join of 5 s"),
        ("with deadline(0.5): pass", "deadline of 0.5 s"),
        ("run(answer_timeout=2, first_wait=1)", "answer_timeout of 2 s"),
        ("def run(*, timeout=SHORT): pass", "timeout of 5 s"),
        ("def run(what, seconds=3): pass", "seconds of 3 s"),
        ("expect(card).to_have_text('tea', timeout=5000)", "timeout of 5000 ms"),
        ("page.wait_for_selector('.card', timeout=20_000)", "timeout of 20000 ms"),
        ("card.wait_for(timeout=1000)", "timeout of 1000 ms"),
        ("page.set_default_timeout(1000)", "set_default_timeout of 1000 ms"),
        ("assert time.monotonic() - began < 60", "asserts on elapsed time"),
        ("assert answer.elapsed.total_seconds() < 1", "asserts on elapsed time"),
        ("took = time.time() - began; assert took < 60", "asserts on elapsed time"),
    ],
)
def test_what_is_found(line, problem):
    source = "SHORT = 5\nasync def test():\n    {}\n"
    assert timing(source.format(line)) == [(3, problem)]
    assert timing(source.format(f"{line}  # timing: the behaviour under test")) == []
    assert timing(source.format(f"{line}  # timing:")) == [(3, problem)], "a reason is a sentence"


@pytest.mark.parametrize(
    "line",
    [
        *("asyncio.sleep(0)", "event.wait(30)", "thread.join()", "', '.join(names)", "run(timeout=0)"),
        *("limiter(sleep=clock.sleep)", "card.wait_for(timeout=30_000)", "counts.get(name, 5)"),
        *("await asyncio.wait_for(answer(), 60)", "began = time.time()"),
    ],
)
def test_what_may_stay(line):
    assert timing(f"async def test():\n    {line}\n") == []
