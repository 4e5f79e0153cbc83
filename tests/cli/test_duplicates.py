"""``dartboard duplicates`` as a user runs it."""

import json

import pytest

from dartboard.cli import main
from tests.cli.running import run

FEE = (
    "The monthly fee of the basic plan is 5 euros for every user, and it is billed at the end of the month "
    "to the card that is on file, without any further notice to the owner of the account."
)

OTHERS = ("kitchen", "library", "garage", "garden", "lift")


@pytest.fixture
def rows(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    texts = [("a", FEE, "1.9"), ("b", FEE, "1.10"), ("c", FEE + " Ask us.", "1.2")]
    texts += [(word, f"The {word} is cleaned on Friday.", "1.9") for word in OTHERS]
    lines = [json.dumps({"id": id, "text": text, "version": version}) for id, text, version in texts]
    (tmp_path / "rows.jsonl").write_text("\n".join(lines))
    return tmp_path / "rows.jsonl"


def test_a_file_is_looked_at_without_an_index(rows, cache, capsys):
    assert main(["duplicates", str(rows), "--no-vectors"]) == 0
    said = capsys.readouterr().out
    assert "8 chunks: 1 are exact copies of another, 1 more have nearly the same words." in said
    assert "version: 1.10 and 1.2 share 1 group" in said and "+Ask us." in said
    assert main(["duplicates", str(rows), "--json", "--similarity", "0.9"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["repeats"]["top_k"] > found["repeats"]["dartboard"] and found["groups"][0]["size"] == 3
    assert not (rows.parent / "index.dartboard").exists()


def test_deleting_asks_first_and_can_be_undone(rows, cache, capsys):
    assert main(["index", str(rows)]) == 0
    delete = ["duplicates", "--no-vectors", "--delete", "--keep", "newest"]
    assert main(delete) == 0
    assert "2 of 8 chunks would go" in capsys.readouterr().out
    assert main([*delete, "--yes", "--undo-to", "gone", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)["deletion"]
    assert len(found["deleted"]) == 2 and found["undo"] == "gone"
    assert all("#b#" in kept for kept in found["planned"].values())  # 1.10 is newer than 1.9
    assert main(["duplicates", "--undo", "gone"]) == 0
    assert "2 chunks back; 0 were there" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("options", "code", "message"),
    [
        (["--yes"], 2, "go with --delete"),
        (["rows.jsonl", "--delete", "--yes"], 2, "not an index"),
        (["rows.jsonl", "--no-vectors", "--by", "vectors", "--delete"], 2, "--no-vectors excludes"),
        (["rows.jsonl", "--no-vectors", "--field", "colour"], 2, "no chunk has the metadata field 'colour'"),
        (["rows.jsonl", "--no-vectors", "--delete", "--keep", "best"], 2, "newest, longest, first"),
        (["missing.jsonl", "--no-vectors"], 1, "missing.jsonl"),
        (["--keep", "newest"], 2, "go with --delete"),
        (["--delete", "--newest-by", "version"], 2, "--newest-by goes with --keep newest"),
        (["--undo", "x.snapshot", "--delete"], 2, "--undo brings back and deletes nothing"),
        ([], 1, "there is no index"),
        (["--undo", "missing"], 1, "there is no index"),
    ],
)
def test_wrong_use_is_one_line(rows, capsys, options, code, message):
    assert main(["duplicates", *options]) == code
    said = capsys.readouterr().err
    assert message in said and said.count("\n") == 1


def test_it_runs_as_a_process(rows, cache):
    done = run("duplicates", str(rows), "--no-vectors", cache=cache)
    assert done.returncode == 0 and done.stderr == "" and done.stdout.startswith("25% of the chunks")
