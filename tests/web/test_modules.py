"""The pure modules, run by the browser; and what must hold of every file."""

import re
import shutil
import subprocess
from html.parser import HTMLParser

import pytest

from dartboard.web import static_folder

STATIC = static_folder()
SHARED = (
    "index.html",
    "api.js",
    "app.css",
    "chrome.js",
    "dom.js",
    "numbers.js",
    "table.js",
    "theme.js",
    "icon.svg",
)
OURS = sorted([*STATIC.joinpath("playground").iterdir(), *(STATIC / name for name in SHARED)])
FORBIDDEN = r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(|new Function"


@pytest.fixture
def run(open_page, served):
    page = open_page(expect_errors=True)  # a picture has no icon
    page.goto(f"{served.url}/static/icon.svg")

    def call(module, body, *arguments):
        return page.evaluate(
            f"async (given) => {{ const m = await import('/static/playground/{module}.js'); {body} }}",
            list(arguments),
        )

    return call


class TestDiff:
    def diff(self, run, left, right):
        return run("diff", "return m.diffWords(...given)", left, right)

    def test_the_parts_give_the_texts_again(self, run):
        pairs = [
            ("The cat sat on the mat.", "the Cat sat, on a mat!"),
            ("  leading and trailing  ", ""),
            ("", "only right"),
            ("日本語の文章です", "日本の文章でした"),
            ("emoji 👩‍👩‍👧 same", "emoji 👍 same"),
            ("(a) [b] {c}", "a b c"),
        ]
        for left, right in pairs:
            diff = self.diff(run, left, right)
            assert "".join(one["text"] for one in diff["left"]) == left
            assert "".join(one["text"] for one in diff["right"]) == right

    def test_the_longest_common_words(self, run):
        diff = self.diff(run, "we fix slow queries and batch rows", "they fix the slow rows and batch them")
        same = "".join(one["text"] for one in diff["left"] if one["same"]).split()
        assert same == ["fix", "slow", "and", "batch"]
        assert diff["shared"] == 4
        assert diff["share"] == pytest.approx(4 / 7)

    def test_against_a_plain_oracle(self, run):
        left = list("abcabbacde")
        right = list("cbabacadeb")

        def longest(a, b):
            table = [[0] * (len(b) + 1) for _ in range(len(a) + 1)]
            for i, x in enumerate(a):
                for j, y in enumerate(b):
                    table[i + 1][j + 1] = table[i][j] + 1 if x == y else max(table[i][j + 1], table[i + 1][j])
            return table[-1][-1]

        assert self.diff(run, " ".join(left), " ".join(right))["shared"] == longest(left, right)

    def test_symbols_count_as_words(self, run):
        diff = self.diff(run, "🎯🎯 👩‍👩‍👧 👍🏽 broker lag", "The broker has lag!")
        assert diff["shared"] == 2
        assert diff["share"] == pytest.approx(2 / 6)
        assert [one["text"] for one in diff["left"]] == ["🎯🎯 👩‍👩‍👧 👍🏽 ", "broker lag"]
        assert self.diff(run, "🎯! (👍) 5 €", "(🎯) 👍, 5 €.")["share"] == 1
        assert self.diff(run, "👍🏽", "👍")["share"] == 0
        assert self.diff(run, "a < b", "a > b")["share"] == pytest.approx(2 / 3)

    def test_marks_that_only_set_a_text_do_not_count(self, run):
        assert self.diff(run, "| **one** | `two` |", "~one~ - two.")["share"] == 1

    def test_long_texts_are_cut_and_say_so(self, run):
        diff = self.diff(run, "word " * 4000, "word " * 4000)
        assert diff["cut"] is True
        assert diff["share"] == 1


class TestPermalink:
    def test_there_and_back(self, run):
        state = """
          const s = await import('/static/playground/state.js');
          const state = { ...s.initialState(), query: 'a & b = ü #1', collection: 'x y', k: 7, sigma: 0.0312,
            also: ['c & d?', '#2'], seen: ['x&1', 'y'],
            step: 3, why: 'id/1?&', marks: new Set(['p', 'q&']), pool: 80, mmr: 0, filter: "a = 'b'" };
          const view = m.fromHash('#' + m.toHash(state, s.initialState()));
          return { ...view, marks: [...view.marks] };
        """
        assert run("permalink", state) == {
            "query": "a & b = ü #1",
            "also": ["c & d?", "#2"],
            "seen": ["x&1", "y"],
            "collection": "x y",
            "size": "k",
            "k": 7,
            "sigma": 0.0312,
            "step": 3,
            "why": "id/1?&",
            "marks": ["p", "q&"],
            "pool": 80,
            "mmr": 0,
            "filter": "a = 'b'",
        }

    def test_nonsense_is_left_out(self, run):
        body = "return m.fromHash(given[0])"
        assert run("permalink", body, "#k=x&sigma=NaN&step=-1&pool=&tokens=1e999&%%%") == {}
        assert run("permalink", body, "") == {}

    def test_further_questions_are_told_once_and_are_no_more_than_the_service_takes(self, run):
        hash_ = "also=a&also=+a+&also=&also=b&seen=x&seen=x" + "".join(f"&also=n{at}" for at in range(20))
        view = run("permalink", "return m.fromHash(given[0])", hash_)
        assert view["also"][:3] == ["a", "b", "n0"] and len(view["also"]) == 15
        assert view["seen"] == ["x"]

    def test_a_budget_wins_over_a_number(self, run):
        view = run("permalink", "return m.fromHash(given[0])", "tokens=300")
        assert view == {"tokens": 300, "size": "tokens"}


def test_numbers(run):
    shares = [0, 0.00001, 0.0042, 0.031, 0.0996, 0.5, 1]
    assert run("../numbers", "return given[0].map(m.percent)", shares) == [
        text.replace(" ", "\u00a0")
        for text in ("0 %", "< 0.01 %", "0.42 %", "3.1 %", "10 %", "50 %", "100 %")
    ]


def test_the_files_are_small():
    assert sum(path.stat().st_size for path in OURS) < 160 * 1024
    assert max(len(path.read_text().splitlines()) for path in OURS if path.suffix == ".js") <= 360


class Inline(HTMLParser):
    def __init__(self):
        super().__init__()
        self.found = []

    def handle_starttag(self, tag, attrs):
        names = dict(attrs)
        self.found += [(tag, name) for name in names if name == "style" or name.startswith("on")]
        if tag == "style" or (tag == "script" and "src" not in names):
            self.found.append((tag, "inline"))
        self.found += [(tag, value) for value in names.values() if value and "//" in value]


def test_the_page_has_no_inline_code_and_nothing_from_elsewhere():
    parser = Inline()
    parser.feed((STATIC / "index.html").read_text(encoding="utf-8"))
    assert parser.found == []
    for path in OURS:
        text = path.read_text(encoding="utf-8")
        assert not re.search(FORBIDDEN, text), path.name
        foreign = set(re.findall(r"https?://[\w.]+", text)) - {"http://www.w3.org"}
        assert foreign == set(), path.name


PARSE = """
const { readFileSync } = require("node:fs");
const { SourceTextModule } = require("node:vm");
for (const path of process.argv.slice(1))
  new SourceTextModule(readFileSync(path, "utf8"), { identifier: path });
"""


@pytest.mark.skipif(shutil.which("node") is None, reason="no node to check the syntax")
def test_every_module_parses(tmp_path):
    def parse(*paths):
        command = ["node", "--experimental-vm-modules", "--no-warnings", "-e", PARSE, "--", *map(str, paths)]
        return subprocess.run(command, capture_output=True, text=True)

    done = parse(*(path for path in OURS if path.suffix == ".js"))
    assert done.returncode == 0, done.stderr
    (tmp_path / "wrong.js").write_text("export const = 1;")
    assert "SyntaxError" in parse(tmp_path / "wrong.js").stderr
