"""Source code in sections: Python by its grammar, other languages by their look."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dartboard.ingest.code import other_sections, python_sections
from dartboard.ingest.readers import kind_of, language_of

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


def parts(text, sections):
    assert "".join(text[s.start : s.end] for s in sections) == text
    return [(s.title, text[s.start : s.end].strip().split("\n")[0], s.context) for s in sections]


def test_python():
    base = "class Base(\n    object,\n):\n"
    assert parts(PYTHON, python_sections(PYTHON)) == [
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
    assert python_sections("def f(:\n") is None
    assert python_sections("(" * 5000) is None
    assert python_sections("x = '\\d'") is not None  # a warning about the code is none of ours
    assert python_sections("") == ()
    text = "print 'old'\nclass A:\n    def f(self):\n        pass\n"
    assert [s.title for s in other_sections(text, "python")] == ["", "A", "A > f"]


@settings(deadline=None)
@given(st.text(alphabet="def class():\n \tA@x#'\"=,", max_size=120))
def test_any_python(text):
    sections = python_sections(text)
    if sections is not None:
        assert "".join(text[s.start : s.end] for s in sections) == text


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
    found = parts(SOURCES[language], other_sections(SOURCES[language], language))
    assert [title for title, _, _ in found] == TITLES[language]


def test_comments_and_context_of_other_languages():
    found = parts(SOURCES["java"], other_sections(SOURCES["java"], "java"))
    assert found[1][1] == "/** Doc. */"
    assert found[3][1:] == ("@Override", "public class User extends Base {\n")


def test_what_is_no_definition():
    assert [s.title for s in other_sections("a = 1\n" * 5, "lua")] == [""]
    assert [s.title for s in other_sections("anything", "other")] == [""]
    assert other_sections("function f() {" + " " * 400 + "}", "javascript")[0].title == ""
    assert other_sections("", "go") == ()


def test_kinds_by_name():
    assert kind_of("a/B.MD") == "markdown"
    assert kind_of("Makefile") == kind_of("x.rs") == "code"
    assert kind_of("LICENSE") == kind_of("a.unknown") == "text"
    assert (language_of("a.tsx"), language_of("a.txt")) == ("javascript", None)
