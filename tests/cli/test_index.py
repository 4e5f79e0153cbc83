"""From a folder to an answer on the command line, and what is said when something is wrong."""

import json
import signal
from contextlib import suppress

import pytest

from dartboard.cli import main
from dartboard.errors import StoreError, install_command
from dartboard.stores.sqlite import SqliteStore
from tests.cli.running import PATIENCE, run, start
from tests.waiting import wait_until


@pytest.fixture(scope="module")
def handbook(tmp_path_factory):
    folder = tmp_path_factory.mktemp("handbook")
    docs = folder / "docs"
    docs.mkdir()
    (docs / "keys.md").write_text(
        "# Keys\n\nRotate the signing keys every ninety days with `keyctl rotate`.\n\n"
        "# Backup\n\nBackups run at two in the morning and are kept for a month.\n"
    )
    (docs / "limits.txt").write_text("A client that asks too often gets status 429 and has to wait a minute.")
    (docs / "empty.txt").write_text("")
    return folder


@pytest.fixture
def inside(handbook, monkeypatch):
    monkeypatch.chdir(handbook)
    monkeypatch.setenv("COLUMNS", "100")
    for name in ("DARTBOARD_STORE", "DARTBOARD_CONFIG", "FORCE_COLOR"):
        monkeypatch.delenv(name, raising=False)
    return handbook


@pytest.fixture
def indexed(inside, capsys):
    if not (inside / "index.dartboard").exists():
        assert main(["index", "docs"]) == 0
        capsys.readouterr()
    return inside


def test_index_again_skips(indexed, capsys):
    assert main(["index", "docs", "--json"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert (report["unchanged"], report["encoded"]) == (2, 0)
    assert report["problems"] == [{"source": "docs/empty.txt", "reason": "is empty", "code": "empty"}]
    assert main(["index", "docs"]) == 0
    shown = capsys.readouterr()
    assert "2 unchanged files" in shown.out and "left out: docs/empty.txt is empty" in shown.err


def test_context(indexed, capsys):
    assert main(["context", "how often do keys change?", "--tokens", "90"]) == 0
    shown = capsys.readouterr()
    assert shown.out.startswith("[1] docs/keys.md:1 | Keys") and "ninety days" in shown.out
    assert "of 90 tokens" in shown.err and "passage" in shown.err
    assert main(["context", "keys", "--format", "xml", "--order", "source", "--no-expand"]) == 0
    shown = capsys.readouterr()
    assert shown.out.startswith('<passage number="1" source="') and "of 2,000 tokens" in shown.err
    assert main(["context", "keys", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["tokens"] <= found["token_budget"] == 2000
    assert found["passages"][0]["chunk_ids"][0].startswith("docs/")
    assert main(["context", "keys", "--filter", "kind = 'pdf'"]) == 0
    assert "0 passages" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("wrong", "code", "said"),
    [
        (["--tokens", "5"], 2, "token_budget 5"),
        (["--order", "best"], 2, "'best'"),
        (["--format", "html"], 2, "'html'"),
        (["--tokenizer", "none.json"], 2, "'none.json'"),
        (["--offset", "5"], 2, "--offset"),
        (["--k", "3"], 2, "--k"),
    ],
)
def test_a_context_that_cannot_be(indexed, capsys, wrong, code, said):
    assert main(["context", "keys", *wrong]) == code
    assert said in capsys.readouterr().err


def test_a_context_has_no_number_of_passages(indexed, capsys):
    assert main(["context", "--help"]) == 0
    shown = capsys.readouterr().out
    assert "--token-budget" in shown and " -k" not in shown and "--offset" not in shown


def test_search(indexed, capsys):
    assert main(["search", "how often do keys change?", "-k", "2", "--explain"]) == 0
    shown = capsys.readouterr().out
    assert "1. docs/keys.md:" in shown and "found by" in shown and "coverage" in shown
    assert "   id docs/keys.md#" in shown
    assert main(["search", "keys", "--json", "--filter", "kind = 'markdown'"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert {chunk["metadata"]["source"] for chunk in found["chunks"]} == {"docs/keys.md"}
    assert found["chunks"][0]["gain"] > 0 and found["retriever"] == "hybrid"
    assert main(["search", "keys", "--tokens", "40", "--method", "top_k", "-r", "bm25"]) == 0
    assert main(["search", "keys", "--filter", "kind = 'pdf'"]) == 0
    assert "Nothing found" in capsys.readouterr().out
    assert main(["search", "keys", "--tokens", "2"]) == 0
    assert "None of the 2 candidates fits" in capsys.readouterr().out


def test_a_pipe_is_wider_than_a_terminal(indexed, capsys, monkeypatch):
    monkeypatch.delenv("COLUMNS")
    assert main(["search", "how often do keys change?", "--explain"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert any("ninety days" in line and len(line) > 80 for line in lines)
    assert next(line for line in lines if line.startswith("ms: ")).endswith(tuple("0123456789"))


def test_search_says_that_nothing_relevant_was_found(indexed, capsys):
    question = "How do I bake sourdough bread?"
    assert main(["search", question, "-k", "2"]) == 0
    shown = capsys.readouterr().out
    assert shown.startswith("Nothing relevant found: ") and "1. docs/" in shown and "2. docs/" in shown
    assert main(["search", question, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["relevance"]["verdict"] == "nothing_relevant" and found["chunks"]
    assert main(["search", "How often are signing keys rotated?"]) == 0
    assert "Nothing relevant" not in capsys.readouterr().out


def found_by(capsys, *arguments):
    assert main(["search", *arguments, "--json"]) == 0
    return json.loads(capsys.readouterr().out)


def test_a_question_with_parts_a_follow_up_and_pages(indexed, capsys):
    parts = ["--also", "What does status 429 mean?"]
    found = found_by(capsys, "How often do keys change?", *parts, "--weights", "1,3", "-k", "2")
    assert [one["text"] for one in found["questions"]] == ["How often do keys change?", parts[1]]
    assert [one["weight"] for one in found["questions"]] == pytest.approx([0.25, 0.75])
    by_source = {chunk["metadata"]["source"]: chunk for chunk in found["chunks"]}
    assert by_source["docs/limits.txt"]["serves"] == 1 and by_source["docs/keys.md"]["serves"] == 0
    assert main(["search", "How often do keys change?", *parts, "-k", "2"]) == 0
    shown = capsys.readouterr().out
    assert "for: What does status 429 mean?" in shown and "of “How often do keys change?”" in shown

    first, second = (found_by(capsys, "keys", "-k", "1", "--offset", at)["chunks"] for at in "01")
    assert [*first, *second] != [] and first[0]["id"] != second[0]["id"]
    more = found_by(capsys, "keys", "--seen", first[0]["id"])
    assert [chunk["id"] for chunk in more["chunks"]] == [second[0]["id"]] and more["covered_before"] > 0
    everything = [option for chunk in (*first, *second) for option in ("--seen", chunk["id"])]
    assert main(["search", "keys", *everything]) == 0
    assert "Nothing new" in capsys.readouterr().out


def test_which_copy_how_many_of_a_kind_and_whose_tokens(inside, capsys, tmp_path):
    text = (
        "The fee of the basic plan is {} euros for every user, and it is billed at the end of the month to "
        "the card that is on file, without any further notice to the owner of the account."
    )
    rows = [
        {"text": text.format(6), "version": "29.10", "by": "x"},
        {"text": text.format(6), "version": "29.9", "by": "x"},
        {"text": text.format(5), "version": "29.8", "by": "x"},
    ]
    (tmp_path / "rows.jsonl").write_text("\n".join(map(json.dumps, rows)))
    store = ["--store", str(tmp_path / "rows.dartboard")]
    assert main(["index", str(tmp_path / "rows.jsonl"), "--text-field", "text", *store]) == 0
    capsys.readouterr()
    fee = ["What is the fee?", *store]
    found = found_by(capsys, *fee, "--prefer", "version", "-k", "2")["chunks"]
    newest = next(chunk for chunk in found if chunk["metadata"]["version"] == "29.10")
    assert {copy["version"]: copy.get("differs") for copy in newest["copies"]} == {
        "29.9": None,
        "29.8": [["6", "5"]],
    }
    assert main(["search", *fee, "--prefer", "version", "-k", "2"]) == 0
    assert 'differs: "6" vs "5" in' in capsys.readouterr().out
    assert len(found_by(capsys, *fee, "--max-per", "by=1", "--max-per", "version=3")["chunks"]) == 1

    from tokenizers import Tokenizer, models, pre_tokenizers

    words = Tokenizer(models.WordLevel({"[UNK]": 0}, unk_token="[UNK]"))
    words.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    words.save(str(tmp_path / "words.json"))
    size = len(rows[0]["text"].split())
    reader = ["--tokenizer", str(tmp_path / "words.json")]
    assert len(found_by(capsys, *fee, "--tokens", str(size), *reader)["chunks"]) == 1
    assert len(found_by(capsys, *fee, "--tokens", str(size - 1), *reader)["chunks"]) == 0


WRONG_INPUT = [
    (["search", "  "], "query"),
    (["search", "keys", "-k", "2", "--tokens", "9"], "exclude each other"),
    (["search", "keys", "-k", "abc"], "'abc'"),
    (["search", "keys", "-k", "2000"], "2000"),
    (["search", "keys", "--filter", "kind ="], "filter"),
    (["search", "keys", "--filter", "kindd = 'pdf'"], "'kindd'"),
    (["search", "keys", "--method", "best"], "method"),
    (["search", "keys", "--sigma", "wide"], "'wide'"),
    (["search", "keys", "--reranker", "magic"], "'magic'"),
    (["search", "keys", "--retriever", "magic"], "retriever"),
    (["search", "keys", "--store", "ftp://x"], "store"),
    (["search", "keys", "--min-similarity", "4"], "min_similarity"),
    (["search", "keys", "--min-gain-share", "2"], "min_gain_share"),
    (["search", "keys", "--tokens", "0"], "token_budget"),
    (["search", "keys", "--tokenizer", "gpt-4o"], "--token-budget"),
    (["search", "keys", "--tokens", "9", "--tokenizer", "no.json"], "no.json"),
    (["search", "keys", "--max-per-source", "0"], "max_per_source"),
    (["search", "keys", "--max-per", "kind"], "--max-per"),
    (["search", "keys", "--max-per", "kind=0"], "max_per"),
    (["search", "keys", "--max-per", "author=1"], "author"),
    (["search", "keys", "--also", " "], "also"),
    (["search", "keys", *["--also", "x"] * 16], "also"),
    (["search", "keys", "--weights", "1,2"], "weights"),
    (["search", "keys", "--also", "x", "--weights", "1"], "weights"),
    (["search", "keys", "--also", "x", "--weights", "1,nan"], "weights"),
    (["search", "keys", "--also", "x", "--weights", "1;2"], "--weights"),
    (["search", "keys", "--seen", "nobody"], "'nobody'"),
    (["search", "keys", "--offset", "-1"], "offset"),
    (["search", "keys", "--prefer", "edition"], "edition"),
    (["search", "keys", "--nonsense"], "--nonsense"),
    (["index", "docs", "--chunk-size", "0"], "--chunk-size"),
    (["index", "docs", "-s", "memory://"], "memory://"),
    (["delete"], "--where"),
    (["delete", "zz"], "'zz'"),
    (["delete", "--filter", "kindd != 'pdf'", "--dry-run"], "'kindd'"),
    (["snapshot", "docs/keys.md"], "exists already"),
]


@pytest.mark.parametrize(("arguments", "said"), WRONG_INPUT)
def test_wrong_input_is_one_line_and_code_2(indexed, capsys, arguments, said):
    assert main(arguments) == 2
    complaint = capsys.readouterr().err
    assert said in complaint and complaint.startswith("dartboard: ") and complaint.count("\n") == 1


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["search", "keys", "--collection", "other"], "'other'"),
        (["search", "keys", "--store", "indx.dartboard"], "index.dartboard"),  # the nearest
        (["search", "keys", "--store", "~nouser/x"], "~nouser/x"),
        (["index", "nowhere"], "nowhere"),
        (["restore", "nowhere.snapshot"], "snapshot"),
        (["restore", "docs/keys.md"], "snapshot"),
    ],
)
def test_what_is_not_there_is_one_line_and_code_1(indexed, capsys, arguments, said):
    assert main(arguments) == 1
    complaint = capsys.readouterr().err
    assert said in complaint and complaint.count("\n") == 1


def test_a_missing_key_is_named_before_anything_is_made(indexed, capsys, monkeypatch, tmp_path):
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    store = tmp_path / "new.dartboard"
    assert main(["index", "docs", "--model", "openai:foo", "--store", str(store)]) in (1, 2)
    assert "OPENAI_API_KEY" in capsys.readouterr().err and not store.exists()


def test_brackets_of_a_name_stay(indexed, capsys, tmp_path, monkeypatch):
    store = tmp_path / "a [draft] b.dartboard"
    assert main(["index", "docs", "--store", str(store)]) == 0
    shown = capsys.readouterr().out
    assert f"to {store}" in shown and f"--store '{store}'" in shown
    monkeypatch.setenv("COLUMNS", "200")
    assert main(["config"]) == 0
    assert "gemini:MODEL[@URL]" in capsys.readouterr().out


def test_pictures_are_counted(inside, capsys, tmp_path):
    docs = tmp_path / "docs"
    docs.mkdir()
    (docs / "keys.md").write_text("Rotate the keys.")
    for number in range(3):
        (docs / f"{number}.png").write_bytes(b"\x89PNG\r\n\x1a\n\x00\x00")
    assert main(["index", str(docs), "--store", str(tmp_path / "i.dartboard")]) == 0
    errors = capsys.readouterr().err
    assert "3 files without text" in errors and "0.png" not in errors


def test_off_a_terminal_a_line_now_and_then(inside, capsys, tmp_path, monkeypatch):
    monkeypatch.setattr("dartboard.cli.console.EVERY", 0.0)
    assert main(["index", "docs", "--store", str(tmp_path / "i.dartboard")]) == 0
    assert "Indexing: " in capsys.readouterr().err


def test_several_versions_suggest_prefer(capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    text = "The timeout of a request is {} seconds, and it can be set in the configuration of the client."
    for version in ("7.4.4", "8.1.1", "8.3.4"):
        (tmp_path / f"docs/v{version}").mkdir(parents=True)
        (tmp_path / f"docs/v{version}/client.md").write_text(f"# Client\n\n{text.format(30)}\n")
    assert main(["index", "docs"]) == 0
    capsys.readouterr()
    for command in (["search"], ["context"], ["duplicates"]):
        question = [] if command == ["duplicates"] else ["How long is the timeout?"]
        assert main([*command, *question]) == 0
        shown = capsys.readouterr()
        assert "--prefer source" in shown.out + shown.err, command
    assert main(["search", "How long is the timeout?", "--prefer", "source"]) == 0
    shown = capsys.readouterr()
    assert "v8.3.4/client.md" in shown.out and "--prefer" not in shown.err


def test_stats_and_config(indexed, capsys, monkeypatch):
    assert main(["stats"]) == 0
    shown = capsys.readouterr().out
    assert "2 chunks" in shown and "chunks: text 1, markdown 1" in shown and shown.count("kB") == 1
    assert main(["stats", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["records"] == 2
    monkeypatch.setenv("DARTBOARD_STORE", "postgresql://me:secret@host/db?token=hidden")
    assert main(["config"]) == 0
    shown = capsys.readouterr().out
    assert "secret" not in shown and "hidden" not in shown and "DARTBOARD_STORE" in shown
    assert main(["config", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["settings"]["store"]["source"] == "DARTBOARD_STORE"


def test_snapshot_restore_delete(indexed, capsys, tmp_path):
    kept = str(tmp_path / "kept.snapshot")
    assert main(["snapshot", kept]) == 0
    other = ["--store", str(tmp_path / "other.dartboard")]
    assert main(["restore", kept, *other]) == 0
    assert main(["delete", "--filter", "kind = 'text'", "--dry-run", *other]) == 0
    assert main(["delete", "--filter", "kind = 'text'", "--json", *other]) == 0
    assert main(["stats", "--json", *other]) == 0
    shown = capsys.readouterr().out
    assert "2 chunks restored" in shown and "1 chunk would go" in shown and '"deleted": 1' in shown
    assert '"records": 1' in shown


def test_doctor(indexed, capsys, monkeypatch):
    assert main(["doctor"]) == 0
    assert "Everything that is needed works" in capsys.readouterr().out
    assert main(["doctor", "--json", "--store", "postgresql://nobody:secret@127.0.0.1:9/none"]) == 1
    report = json.loads(capsys.readouterr().out)
    wrong = [finding for finding in report["findings"] if finding["state"] == "wrong"]
    assert [finding["what"] for finding in wrong] == ["store"] and "secret" not in json.dumps(report)
    assert main(["doctor", "--model", "onnx:nowhere", "--store", "later.dartboard"]) == 1
    shown = capsys.readouterr().out
    assert "WRONG model" in shown and "later.dartboard does not exist yet" in shown
    declared = ["no-such-package>=1; extra == 'search'", "numpy>=1.26"]
    monkeypatch.setattr("dartboard.cli.doctor.requires", lambda name: declared)
    assert main(["doctor"]) == 0
    assert install_command("search") in capsys.readouterr().out


def test_a_reader_that_stops_reading(indexed, tmp_path):
    with start("search", "keys", "--store", str(indexed / "index.dartboard"), cache=tmp_path) as process:
        process.stdout.close()
        errors = process.stderr.read()
        assert process.wait(PATIENCE) == 0 and "Traceback" not in errors and "Errno" not in errors


def records_in(path):
    """How many records a reader sees while another process may be writing."""
    with suppress(StoreError), SqliteStore(path, read_only=True) as store:
        return store.open().count()
    return 0


def test_ctrl_c_keeps_what_is_finished(tmp_path):
    docs = tmp_path / "docs"
    docs.mkdir()
    for number in range(400):
        (docs / f"{number:03d}.txt").write_text(
            f"Rule {number} says that broker {number} keeps its offset. " * 8
        )
    store = ["--store", str(tmp_path / "i.dartboard")]
    with start("index", str(docs), *store, cache=tmp_path) as process:
        wait_until(lambda: records_in(tmp_path / "i.dartboard") or process.poll() is not None)
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=PATIENCE)
    assert process.returncode == 130 and "What was finished is kept" in errors and "Traceback" not in errors
    kept = json.loads(run("stats", "--json", *store, cache=tmp_path).stdout)["records"]
    assert 0 < kept < 400 and kept % 64 == 0


def test_help_and_a_process_of_its_own(indexed, tmp_path):
    shown = run("search", "--help", cache=tmp_path)
    assert shown.returncode == 0 and "Filters compare metadata" in shown.stdout
    found = run("search", "429", "--json", "--store", str(indexed / "index.dartboard"), cache=tmp_path)
    assert json.loads(found.stdout)["chunks"][0]["metadata"]["source"] == "docs/limits.txt"


def test_a_command_that_is_refused_makes_no_store(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.txt").write_text("something")
    assert main(["index", "nowhere"]) == 1 and main(["index", "a.txt", "--chunk-size", "0"]) == 2
    assert [file.name for file in tmp_path.iterdir()] == ["a.txt"]
