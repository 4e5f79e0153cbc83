"""Ignore rules: as git reads them, and without searching twice."""

import random
import shutil
import subprocess

import pytest

from dartboard.errors import IngestError
from dartboard.ingest import walk
from dartboard.ingest.gitignore import IgnoreRules

PARTS = (
    "a",
    "b",
    "c",
    "-",
    " ",
    "*",
    "?",
    "[ab]",
    "[!a]",
    "[a-]",
    "[]a]",
    "[^b-c]",
    "[c-a]",
    "[[:alpha:]]",
    "\\a",
)
ODD_PARTS = ("\\*", "!", "#", "[", "\\", "[[:none:]]", "[b/c]")


@pytest.mark.parametrize(
    ("rule", "path", "matches"),
    [
        ("*.md", "x/y.md", True),
        ("/*.md", "x/y.md", False),
        ("a*b*c", "aXbYc", True),
        ("a*bc*c", "abc", False),
        ("*ab", "aab", True),
        ("**/b", "b", True),
        ("a/**", "a", False),
        ("a/**", "a/b/c", True),
        ("a/**/b", "a/b", True),
        ("a/**/b", "a/x/y/b", True),
        ("a/*/b", "a/x/y/b", False),
        ("**/a/**/b", "x/a/y/a/b", True),
        ("**/a/b/**/c", "a/a/b/c", True),
        ("***/b", "a/b", True),
        ("a?c", "a/c", False),
        ("a[!b]c", "a/c", False),
        ("x\\ ", "x ", True),
        ("x  ", "x", True),
        ("\\#x", "#x", True),
        ("\\!x", "!x", True),
        ("[[:digit:]]x", "7x", True),
        ("a//b", "a/b", False),
    ],
)
def test_one_rule(rule, path, matches):
    assert bool(IgnoreRules([rule]).verdict(path, is_dir=False)) is matches


def test_the_last_rule_counts_and_a_slash_means_folders():
    rules = IgnoreRules(["*.log", "!keep.log", "build/", "# a comment", ""])
    assert rules.verdict("a.log", is_dir=False) is True
    assert rules.verdict("keep.log", is_dir=False) is False
    assert rules.verdict("other", is_dir=False) is None
    assert rules.verdict("x/build", is_dir=True) is True
    assert rules.verdict("x/build", is_dir=False) is None
    assert rules.covers("x/build/y/z.md", is_dir=False)
    assert not rules.covers("x/keep.log", is_dir=False)


@pytest.mark.parametrize("rule", ["!", "/", "a\\", "[a", "[[:none:]]", "[[:alpha:x", "[", "[!", "[a\\]"])
def test_a_rule_that_can_match_nothing(rule):
    with pytest.raises(IngestError, match="the pattern"):
        IgnoreRules([rule], strict=True)
    assert IgnoreRules([rule, "b"]).verdict("b", is_dir=False) is True


@pytest.mark.parametrize(
    "rule",
    ["*a" * 40 + "*b", "*?" * 40 + "*b", "*[ab]" * 40 + "*c", "*a" * 50_000 + "*b", "**/" * 30_000 + "b"],
)
def test_stars_within_a_name_are_not_searched_twice(tmp_path, rule):
    """A search that goes back over the stars would not end."""
    (tmp_path / ("a" * 200 + ".md")).write_text("text")
    (tmp_path / ".gitignore").write_text(rule + "\n")
    assert len(list(walk([tmp_path]))) == 1


@pytest.mark.parametrize("rule", ["**/a/" * 30 + "b", "**/*a*/" * 30 + "b", "**/a/" * 10_000 + "b"])
def test_folders_between_double_stars_are_not_searched_twice(tmp_path, rule):
    deep = tmp_path.joinpath(*["a"] * 60)
    deep.mkdir(parents=True)
    (deep / "x.md").write_text("text")
    (tmp_path / ".gitignore").write_text(rule + "\n")
    assert len(list(walk([tmp_path]))) == 1


@pytest.mark.skipif(shutil.which("git") is None, reason="needs git")
def test_as_git_has_it(tmp_path):
    chance = random.Random(18)
    subprocess.run(["git", "init", "-q", tmp_path], check=True)

    def rule():
        names = ["".join(chance.choices(PARTS, k=chance.randint(1, 3))) for _ in range(chance.randint(1, 4))]
        for at in range(len(names)):
            if chance.random() < 0.3:
                names[at] = "**"
            elif chance.random() < 0.1:
                names[at] += chance.choice(ODD_PARTS)
        return chance.choice(("", "", "!", "/")) + "/".join(names) + chance.choice(("", "", "/"))

    def path():
        return "/".join(
            "".join(chance.choices("abc-*", k=chance.randint(1, 3))) for _ in range(chance.randint(1, 4))
        )

    for _ in range(200):
        lines = [rule() for _ in range(chance.randint(1, 4))]
        paths = sorted({path() for _ in range(30)})
        (tmp_path / ".gitignore").write_text("\n".join(lines) + "\n")
        listed = subprocess.run(
            ["git", "-C", tmp_path, "check-ignore", "--no-index", "--stdin"],
            input="\n".join(paths),
            capture_output=True,
            text=True,
            check=False,
        )
        rules = IgnoreRules(lines)
        assert [one for one in paths if left_out(rules, one)] == listed.stdout.splitlines(), lines


def left_out(rules, path):
    """A file whose name, or that of a folder above it, is named."""
    parts = path.split("/")
    above = any(rules.verdict("/".join(parts[:end]), is_dir=True) for end in range(1, len(parts)))
    return above or bool(rules.verdict(path, is_dir=False))
