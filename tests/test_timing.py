"""No test depends on the speed of the machine: no sleep, and no time-out that a slow machine can reach.

A line that needs one of them gives the reason in a comment: ``# timing: why no slow machine fails here``.
"""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

TESTS = Path(__file__).parent
SHORTEST = 30
"""Seconds; what is to happen within fewer may be late on a busy machine."""
REASON = re.compile(r"# timing: \w.{8,}")
SLEEPS = {"sleep", "wait_for_timeout"}
WAITS = {"deadline", "join", "result", "wait", "wait_for", "wait_until"}
LIMIT = re.compile(r"(^|_)(timeout|deadline|patience|seconds)$", re.IGNORECASE)


def constants(tree: ast.Module) -> dict[str, float]:
    """Numbers that the module gives a name."""
    found = {}
    for node in tree.body:
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Constant):
            for target in node.targets:
                if isinstance(target, ast.Name) and isinstance(node.value.value, int | float):
                    found[target.id] = node.value.value
    return found


def number(node: ast.expr, names: dict[str, float]) -> float | None:
    if isinstance(node, ast.Name):
        return names.get(node.id)
    if isinstance(node, ast.Constant) and type(node.value) in (int, float):
        return node.value
    return None


def timing(source: str) -> Iterator[tuple[int, str]]:
    """Line and what is wrong with it, for calls without a reason."""
    tree, lines = ast.parse(source), source.splitlines()
    names = constants(tree)
    for call in ast.walk(tree):
        if not isinstance(call, ast.Call):
            continue
        name = getattr(call.func, "attr", getattr(call.func, "id", ""))
        given = [(call.args[0], name)] if call.args and name in WAITS else []
        given += [(one.value, one.arg) for one in call.keywords if one.arg and LIMIT.search(one.arg)]
        found = [(value, what) for node, what in given if (value := number(node, names)) is not None]
        problems = [f"{what} of {value:g} s" for value, what in found if 0 < value < SHORTEST]
        if name in SLEEPS and not (call.args and number(call.args[0], names) == 0):
            problems.append(f"calls {name}")
        last = call.end_lineno or call.lineno
        if problems and not any(REASON.search(line) for line in lines[call.lineno - 1 : last]):
            yield call.lineno, ", ".join(problems)


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
        ("event.wait(20)", "wait of 20 s"),
        ("thread.join(timeout=29.5)", "timeout of 29.5 s"),
        ("thread.join(SHORT)", "join of 5 s"),
        ("with deadline(0.5): pass", "deadline of 0.5 s"),
        ("run(answer_timeout=2, first_wait=1)", "answer_timeout of 2 s"),
    ],
)
def test_what_is_found(line, problem):
    assert list(timing(f"SHORT = 5\n{line}\n")) == [(2, problem)]
    assert list(timing(f"SHORT = 5\n{line}  # timing: the behaviour under test\n")) == []
    assert list(timing(f"SHORT = 5\n{line}  # timing:\n")) == [(2, problem)], "a reason is a sentence"


@pytest.mark.parametrize(
    "line", ["asyncio.sleep(0)", "event.wait(30)", "thread.join()", "', '.join(names)", "run(timeout=0)"]
)
def test_what_may_stay(line):
    assert list(timing(line)) == []
