"""Source code in sections: Python by its grammar, other languages by their look."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dartboard.ingest import chunk
from dartboard.ingest.chunker import ChunkingConfig, sections_of
from dartboard.ingest.readers import kind_of, language_of
from tests.ingest.files import read_one, titles

PYTHON = '''"""Module."""
import os

LIMIT = 3


# Explains the decorator.
@decorate(
    1,
)
def first(a,
          b):
    """Doc."""
    def inner():
        pass
    return inner


class Base(
    object,
):
    """A base."""

    size = 1

    # about run
    def run(self):
        return 1

    other = 2

    @property
    async def go(self): ...

    class Inner:
        def deep(self):
            pass


if True:
    def conditional(): pass
'''


SUFFIXES = {
    **{"javascript": "ts", "java": "kt", "go": "go", "rust": "rs", "c": "cpp", "ruby": "rb", "php": "php"},
    **{"swift": "swift", "shell": "sh", "sql": "sql", "lua": "lua", "elixir": "ex", "r": "r", "julia": "jl"},
    **{"perl": "pl", "other": "css", "python": "py"},
}


def parts(text, language):
    """The sections of a source file: title, first line, and the lines that their pieces repeat."""
    document = read_one(text, f"a.{SUFFIXES[language]}")
    found = sections_of(document)
    assert "".join(text[one.start : one.end] for one in found) == text
    return [
        (" > ".join(one.path), text[one.start : one.end].strip().split("\n")[0], "".join(one.around))
        for one in found
        if text[one.start : one.end].strip()
    ]


def test_python():
    base = "class Base(\n    object,\n):\n"
    assert parts(PYTHON, "python") == [
        ("", '"""Module."""', ""),
        ("first", "# Explains the decorator.", ""),
        ("Base", "class Base(", ""),
        ("Base > run", "# about run", base),
        ("Base", "other = 2", base),
        ("Base > go", "@property", base),
        ("Base > Inner", "class Inner:", base),
        ("Base > Inner > deep", "def deep(self):", f"{base}    class Inner:\n"),
        ("", "if True:", ""),
    ]


def test_python_that_does_not_parse():
    text = "print 'old'\nclass A:\n    def f(self):\n        pass\n"
    assert [title for title, _, _ in parts(text, "python")] == ["", "A", "A > f"]
    for odd in ("(" * 5000, "x = '\\d'"):  # a warning about the code is none of ours
        assert titles(read_one(odd, "a.py")) == [""]


@settings(deadline=None)
@given(st.text(alphabet="def class():\n \tA@x#'\"=,", min_size=1, max_size=120))
def test_any_python(text):
    if text.strip():
        parts(text, "python")


def test_a_class_with_a_long_head_is_not_repeated_whole():
    """A class with twenty thousand others in it: each repeated the whole head."""
    head = "class Outer(\n" + "".join(f"    Base{n},\n" for n in range(300)) + "):\n"
    inner = "".join(f"    class Inner{n}:\n        x = {n}\n\n" for n in range(300))
    pieces = chunk(read_one(head + inner, "a.py"), ChunkingConfig(size=60))
    later = [piece.text for piece in pieces if "Inner200:" in piece.text]
    assert later and all(text.startswith("class Outer(\n    class Inner") for text in later)


def test_lines_of_white_space_take_no_time():
    """No time is asserted: a pattern that tries every way to split the spaces would take minutes."""
    text = ("impl" + " " * 290 + ";\n") * 1600
    assert len(chunk(read_one(text, "a.rs"))) > 1


SOURCES = {
    "javascript": """import x from 'y';
// adds
export function add(a, b) {
  function helper() { return 1; }
  return a + b;
}
const twice = (n) => n * 2;
export default class Shape extends Base {
  constructor(x) {
    if (x) {
    }
  }
  async area() {
    return 1;
  }
}
interface Point { x: number }
""",
    "java": """package a;
/** Doc. */
@Entity
public class User extends Base {
    private int id;
    public int getId() {
        return id;
    }
    @Override
    public String toString() {
        return call(x);
    }
}
fun <T> List<T>.second(): T = this[1]
""",
    "go": "package a\n\n// Doc.\nfunc (s *Server) Run(x int) error {\n}\n\ntype Server struct {\n}\n",
    "rust": """use std::io;
#[derive(Debug)]
pub struct Point { x: i32 }
impl<T> Shape for Point {
    pub fn area(&self) -> i32 { 1 }
}
pub(crate) async fn run() {}
""",
    "c": """#include <x.h>
#define MAX(a, b) a
static int add(int a, int b)
{
    return add2(a, b);
}
class Foo : public Bar {
  void method(int x) {
  }
};
Foo::~Foo() {
}
struct forward;
""",
    "ruby": "module Shop\n  class Cart\n    def total?\n    end\n    def self.make\n    end\n  end\nend\n",
    "php": "<?php\nclass A {\n    public static function make() {\n    }\n}\nfunction top() {\n}\n",
    "swift": "struct A {\n    init(x: Int) {\n    }\n    mutating func go() {\n    }\n}\n",
    "shell": "#!/bin/sh\nset -e\nbuild() {\n  ls\n}\nfunction clean-up {\n}\n",
    "sql": 'CREATE TABLE IF NOT EXISTS users (id int);\n\ncreate or replace view "v" as select 1;\n',
    "lua": "local function a()\nend\nM.b = function()\nend\n",
    "elixir": "defmodule A.B do\n  def go(x), do: x\n  defp hide(x), do: x\nend\n",
    "r": "square <- function(x) x^2\n",
    "julia": "module M\nfunction f(x)\nend\nend\n",
    "perl": "package A;\nsub run {\n}\n",
}
TITLES = {
    "javascript": ["", "add", "twice", "Shape", "Shape > constructor", "Shape > area", "Point"],
    "java": ["", "User", "User > getId", "User > toString", "second"],
    "go": ["", "Run", "Server"],
    "rust": ["", "Point", "Shape for Point", "Shape for Point > area", "run"],
    "c": ["", "MAX", "add", "Foo", "Foo > method", "Foo::~Foo"],
    "ruby": ["Shop", "Shop > Cart", "Shop > Cart > total?", "Shop > Cart > make"],
    "php": ["", "A", "A > make", "top"],
    "swift": ["A", "A > init", "A > go"],
    "shell": ["", "build", "clean-up"],
    "sql": ["users", '"v"'],
    "lua": ["a", "M.b"],
    "elixir": ["A.B", "A.B > go", "A.B > hide"],
    "r": ["square"],
    "julia": ["M", "f"],
    "perl": ["A", "run"],
}


@pytest.mark.parametrize("language", SOURCES)
def test_other_languages(language):
    found = parts(SOURCES[language], language)
    assert [title for title, _, _ in found] == TITLES[language]


def test_comments_and_context_of_other_languages():
    found = parts(SOURCES["java"], "java")
    assert found[1][1] == "/** Doc. */"
    assert found[3][1:] == ("@Override", "public class User extends Base {\n")


def test_what_is_no_definition():
    assert titles(read_one("a = 1\n" * 5, "a.lua")) == [""]
    assert titles(read_one("anything", "a.css")) == [""]
    assert titles(read_one("function f() {" + " " * 400 + "}", "a.js")) == [""]


def test_kinds_by_name():
    assert kind_of("a/B.MD") == "markdown"
    assert kind_of("Makefile") == kind_of("x.rs") == "code"
    assert kind_of("LICENSE") == kind_of("a.unknown") == "text"
    assert (language_of("a.tsx"), language_of("a.txt")) == ("javascript", None)
