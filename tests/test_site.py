"""The documentation site builds without a warning, is whole, and fetches nothing from elsewhere."""

import importlib
import os
import re
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path

import pytest

import dartboard
from tools.pages import command_line, docstrings, hooks, rooms

ROOT = Path(__file__).parents[1]
FETCHED = {
    "script": "src",
    "link": "href",
    "img": "src",
    "iframe": "src",
    "source": "src",
    "video": "src",
    "audio": "src",
    "object": "data",
    "use": "href",
}


class Page(HTMLParser):
    """What a page fetches, the ids on it, and whether it has a formula."""

    def __init__(self, text):
        super().__init__()
        self.fetched, self.ids, self.tags = [], set(), set()
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        found = dict(attrs)
        self.tags.add(tag)
        if found.get("id"):
            self.ids.add(found["id"])
        if found.get(FETCHED.get(tag, "")):
            self.fetched.append(found[FETCHED[tag]])
        assert "@import" not in (found.get("style") or "")


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """The built site: every page by its path."""
    folder = tmp_path_factory.mktemp("site")
    done = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(folder)],
        cwd=ROOT,
        env={**os.environ, "NO_MKDOCS_2_WARNING": "1"},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert not re.search(r"WARNING|ERROR", done.stderr), done.stderr
    return {
        path.relative_to(folder).as_posix(): path.read_text(encoding="utf-8")
        for path in folder.rglob("*")
        if path.suffix in (".html", ".css")
    }


def place(page):
    """Where a page of the documentation lies in the site."""
    return page.removesuffix("index.md").removesuffix(".md").rstrip("/") + "/index.html"


def test_every_page_is_built(site):
    pages = {path.relative_to(ROOT / "docs").as_posix() for path in (ROOT / "docs").rglob("*.md")}
    for name in pages | set(hooks.generated()):
        assert place(name).lstrip("/") in site


def test_nothing_comes_from_elsewhere(site):
    for name, text in site.items():
        addresses = Page(text).fetched if name.endswith(".html") else re.findall(r"url\(([^)]*)\)", text)
        for address in addresses:
            assert not re.match(r"[\"']?(?:https?:)?//", address), f"{name} fetches {address}"


@pytest.mark.parametrize("room", rooms.rooms(), ids=lambda room: room.name)
def test_public_names_stand_in_the_reference(site, room):
    page = Page(site[place(room.page)])
    assert {f"dartboard.{name}" for name in room.names} <= page.ids


def test_the_first_names_stand_in_the_reference(site):
    assert rooms.exported() == dartboard.__all__
    overview = site["reference/python/index.html"]
    everywhere = set().union(*(Page(text).ids for name, text in site.items() if "reference/python/" in name))
    for name in dartboard.__all__:
        assert f"<code>{name}</code>" in overview
        assert name == "__version__" or rooms.homes()[name] in everywhere


@pytest.mark.parametrize(
    ("module", "name"),
    [
        ("langchain", "DartboardCompressor"),
        ("langchain", "DartboardRetriever"),
        ("llama_index", "DartboardPostprocessor"),
    ],
)
def test_fields_of_the_integrations_stand_in_the_reference(site, module, name):
    made = getattr(importlib.import_module(f"dartboard.integrations.{module}"), name)
    ours = [kind for kind in made.__mro__ if kind.__module__.startswith("dartboard.")]
    fields = [field for kind in ours for field in vars(kind).get("__annotations__", {}) if field[0] != "_"]
    fields = [field for field in fields if field in made.model_fields]
    place = f"dartboard.integrations.{module}.{name}"
    ids = Page(site["reference/python/integrations/index.html"]).ids
    assert len(fields) > 4 and {f"{place}.{field}" for field in fields} <= ids


def test_formulas_are_drawn_by_the_browser(site):
    text = site["explanation/mathematics/index.html"]
    assert text.count("<math") >= 6 and "\\frac" not in text


def test_no_role_is_left(site):
    for name, text in site.items():
        assert not re.search(r":(?:func|class|mod|meth):<code>", text), name


def test_every_command_and_option_is_told():
    import typer

    from dartboard.cli.app import app

    (page,) = command_line.pages().values()

    def check(command, path):
        assert f" {path} {{ #" in page
        for one in command.params:
            if not getattr(one, "hidden", False) and "--help" not in one.opts:
                shown = [name for name in one.opts if name.startswith("-")] or [
                    one.metavar or one.name.upper()
                ]
                assert any(name in page for name in shown), (path, shown)
        for name, below in getattr(command, "commands", {}).items():
            check(below, f"{path} {name}")

    check(typer.main.get_command(app), "dartboard")


def test_every_operation_and_shape_is_told():
    from dartboard.api import ServiceSettings, create_app

    page = hooks.generated()["reference/rest.md"]
    document = create_app(ServiceSettings()).openapi()
    for path, methods in document["paths"].items():
        for method in methods:
            assert f"## {method.upper()} {path} " in page
    for shape in document["components"]["schemas"]:
        assert f"### {shape} " in page


def test_every_variable_is_told():
    page = hooks.generated()["reference/settings.md"]
    used = set()
    for source in (ROOT / "dartboard").rglob("*.py"):
        used |= set(re.findall(r"\bDARTBOARD_[A-Z_]*[A-Z]\b", source.read_text(encoding="utf-8")))
    assert used - {"DARTBOARD_SERVE_NAME"} <= set(re.findall(r"DARTBOARD_[A-Z_]+", page))


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("See :func:`select`.", "See [`select`][dartboard.selection.select]."),
        ("See :meth:`~a.B.c`.", "See `a.B.c`."),
        ("A tree.\n\n::\n\n    a\n      b\n\nMore.", "A tree.\n\n```text\na\n  b\n```\n\nMore."),
        ("As in::\n\n    a\n", "As in:\n\n```text\na\n```"),
        ("It adds.\n\n>>> 1 + 1\n2\n", "It adds.\n\n```pycon\n>>> 1 + 1\n2\n```"),
        (
            "It adds.\n\nArgs:\n    a, b: numbers\n        of any size.\n    c: more.\n\n"
            "Returns:\n    The sum.\n",
            "It adds.\n\n**Parameters**\n\n- `a`, `b`: numbers\n    of any size.\n- `c`: more.\n\n"
            "**Returns**\n\nThe sum.",
        ),
        (
            "It adds.\n\nExample:\n    >>> 1 + 1\n    2\n",
            "It adds.\n\n**Example**\n\n```pycon\n>>> 1 + 1\n2\n```",
        ),
    ],
)
def test_docstrings_become_markdown(text, wanted):
    assert docstrings.as_markdown(text) == wanted


def test_help_becomes_markdown():
    text = "Do it\nwell.\n\n\b\nExamples:\n  dartboard a\n    b <c>\n"
    wanted = "Do it well.\n\nExamples:\n\n```text\ndartboard a\n  b <c>\n```\n"
    assert command_line.help_text(text) == wanted
