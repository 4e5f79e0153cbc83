"""What a walk finds, leaves out and reports; and what changed since."""

import os
import socket

import pytest

from dartboard.errors import IngestError
from dartboard.ingest import Problem, SourceFile, hash_file, read_file, walk


def lay(root, *names):
    for name in names:
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"content of {name}")


def sources(found):
    return [entry.source for entry in found if isinstance(entry, SourceFile)]


def test_sorted_and_without_what_is_hidden(tmp_path):
    lay(tmp_path, "b.txt", "a/z.md", "a/b/c.py", ".git/config", ".env", "a/.hidden/x", "node_modules/m/x.js")
    lay(tmp_path, "a-b.txt", "__pycache__/x.pyc")
    assert sources(walk([tmp_path])) == ["a-b.txt", "a/b/c.py", "a/z.md", "b.txt"]
    assert ".env" in sources(walk([tmp_path], hidden=True))
    assert sources(walk([tmp_path / ".env"])) == [".env"]


def test_gitignore(tmp_path):
    lay(
        tmp_path,
        "a.log",
        "keep.log",
        "build/x.txt",
        "sub/build/y.txt",
        "sub/a.log",
        "sub/deep/b.log",
        "top.txt",
    )
    (tmp_path / ".gitignore").write_text("*.log\n!keep.log\nbuild/\n/top.txt\n")
    (tmp_path / "sub" / ".gitignore").write_text("!a.log\n")
    assert sources(walk([tmp_path])) == ["keep.log", "sub/a.log"]
    assert len(sources(walk([tmp_path], gitignore=False))) == 7


@pytest.mark.parametrize(
    ("rule", "left"),
    [
        ("*.txt", ["a.md", "sub/c.md"]),
        ("/a.*", ["b.txt", "sub/c.md", "sub/d.txt"]),
        ("sub/**", ["a.md", "b.txt"]),
        ("**/c.md", ["a.md", "b.txt", "sub/d.txt"]),
        ("[ab].*", ["sub/c.md", "sub/d.txt"]),
        ("s?b/", ["a.md", "b.txt"]),
        ("# a.md\n\n\\#x", ["a.md", "b.txt", "sub/c.md", "sub/d.txt"]),
        ("*\n!a.md", ["a.md"]),
        ("a.md \nb.txt\r", ["sub/c.md", "sub/d.txt"]),
    ],
)
def test_rules_of_gitignore(tmp_path, rule, left):
    lay(tmp_path, "a.md", "b.txt", "sub/c.md", "sub/d.txt")
    (tmp_path / ".gitignore").write_text(f"{rule}\n")
    assert sources(walk([tmp_path])) == left


@pytest.mark.parametrize("rule", ["*a*a*a*a*a*a*a*a*a*ab", "**/a/**/a/**/a/**/a/**/b"])
def test_a_rule_with_many_stars_is_skipped_with_a_note(tmp_path, rule):
    """It would try every way to split a name: a stranger's file must not hang a run."""
    lay(tmp_path, "a" * 200, "b.log", "/".join(["a"] * 30) + "/c")
    (tmp_path / ".gitignore").write_text(f"{rule}\n*.log\n")
    found = list(walk([tmp_path]))
    assert len(sources(found)) == 2
    assert [one.code for one in found if isinstance(one, Problem)] == ["rule"]
    with pytest.raises(IngestError):
        list(walk([tmp_path], excludes=[rule]))


def test_gitignore_of_the_repository_above(tmp_path):
    lay(tmp_path, "docs/a.md", "docs/gen/b.md", "out/c.md")
    (tmp_path / ".gitignore").write_text("docs/gen/\nout/\n")
    assert sources(walk([tmp_path / "docs"])) == ["a.md", "gen/b.md"]  # no repository: not ours to read
    (tmp_path / ".git").mkdir()
    assert sources(walk([tmp_path / "docs"])) == ["a.md"]
    assert sources(walk([tmp_path / "out"])) == ["c.md"]  # named by the caller


def test_excludes_and_includes(tmp_path):
    lay(tmp_path, "a.md", "b.txt", "drafts/c.md", "sub/drafts/d.md", "sub/e.md", "node_modules/f.md")
    assert sources(walk([tmp_path], excludes=["drafts/"])) == ["a.md", "b.txt", "sub/e.md"]
    assert sources(walk([tmp_path], excludes=["/drafts/", "*.txt"])) == [
        "a.md",
        "sub/drafts/d.md",
        "sub/e.md",
    ]
    assert sources(walk([tmp_path], includes=["*.txt"])) == ["b.txt"]
    assert "node_modules/f.md" in sources(walk([tmp_path], excludes=["!node_modules/"]))
    with pytest.raises(IngestError, match="pattern"):
        list(walk([tmp_path], excludes=["!"]))


def test_links(tmp_path):
    root, outside = tmp_path / "root", tmp_path / "outside"
    lay(root, "real/a.txt", ".store/b.txt", "z.txt")
    lay(outside, "secret.txt")
    (root / "to_real").symlink_to(root / "real")
    (root / "loop").symlink_to(root)
    (root / "real" / "up").symlink_to("..")
    (root / "alias.txt").symlink_to("z.txt")
    (root / "shown").symlink_to(".store")
    (root / "out").symlink_to(outside)
    (root / "out.txt").symlink_to(outside / "secret.txt")
    (root / "broken").symlink_to("nowhere")
    (root / "itself").symlink_to("itself")
    (root / ".hidden_link").symlink_to("z.txt")
    found = list(walk([root]))
    assert sources(found) == ["real/a.txt", "shown/b.txt", "z.txt"]
    problems = {entry.source: entry for entry in found if isinstance(entry, Problem)}
    assert set(problems) == {"out", "out.txt", "broken", "itself"}
    assert all(problem.code == "link" for problem in problems.values())
    assert sources(walk([root / "out.txt"])) == ["out.txt"]  # named by the caller
    (missing,) = walk([root / "broken"])
    assert "no such file" in missing.reason


def test_several_paths(tmp_path):
    lay(tmp_path, "a/README.md", "b/README.md", "b/x.md")
    found = list(walk([tmp_path / "a", tmp_path / "b"]))
    assert sources(found) == ["README.md", "x.md"]
    (clash,) = (entry for entry in found if isinstance(entry, Problem))
    assert clash.code == "clash"
    assert "give a common root" in clash.reason
    assert sources(walk([tmp_path / "a", tmp_path / "b"], root=tmp_path)) == [
        "a/README.md",
        "b/README.md",
        "b/x.md",
    ]
    assert sources(walk([tmp_path / "a", tmp_path / "a" / "README.md"])) == ["README.md", "README.md"]
    with pytest.raises(IngestError, match="not below the root"):
        list(walk([tmp_path / "a"], root=tmp_path / "b"))


def test_relative_paths(tmp_path, monkeypatch):
    lay(tmp_path, "docs/a.md", "x.md")
    monkeypatch.chdir(tmp_path / "docs")
    assert sources(walk(["."])) == ["a.md"]
    assert sources(walk(["../docs"], root="..")) == ["docs/a.md"]


def test_special_files_and_odd_names(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(tmp_path / "socket"))
        found = list(walk([tmp_path]))
    assert {(entry.source, entry.code) for entry in found} == {("pipe", "special"), ("socket", "special")}
    odd = tmp_path / os.fsdecode(b"caf\xe9.txt")
    odd.write_text("x")
    (entry,) = (entry for entry in walk([tmp_path]) if isinstance(entry, SourceFile))
    assert entry.source == "caf\\udce9.txt"
    assert next(read_file(entry)).text == "x"


def test_unreadable_folder(tmp_path, monkeypatch):
    lay(tmp_path, "a/x.txt", "b/y.txt")
    real = os.scandir

    def scandir(path):
        if str(path).endswith("/a"):
            raise PermissionError(13, "Permission denied")
        return real(path)

    monkeypatch.setattr(os, "scandir", scandir)
    found = list(walk([tmp_path]))
    assert sources(found) == ["b/y.txt"]
    problem = next(entry for entry in found if isinstance(entry, Problem))
    assert (problem.source, problem.reason) == ("a", "folder cannot be read: Permission denied")


def test_the_hash_of_a_file_is_that_of_its_documents(tmp_path):
    lay(tmp_path, "same.txt")
    (file,) = walk([tmp_path])
    (document,) = read_file(file)
    assert document.document_hash == hash_file(tmp_path / "same.txt")


def test_a_file_that_vanished_is_a_problem(tmp_path):
    lay(tmp_path, "vanishing.txt")
    (file,) = walk([tmp_path])
    (tmp_path / "vanishing.txt").unlink()
    (problem,) = read_file(file)
    assert (problem.source, problem.code) == ("vanishing.txt", "unreadable")
