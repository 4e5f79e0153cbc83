"""The file that a run leaves: what comes back is what went in, and other people's files stay."""

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from dartboard.datasets import load_beir, load_mined, read_qrels, read_subtopics
from dartboard.datasets.mined import Agreement, Mined
from dartboard.datasets.safe_yaml import read_yaml
from dartboard.errors import ConfigError
from dartboard.mining import dataset_writer as writing
from dartboard.mining.dataset_writer import dump, write_dataset
from dartboard.mining.validation import validate
from tests.mining.mined import AGENT, WRONG, context, controls, mined, pair

AMBIGUOUS = [
    "NO",
    "yes",
    "~",
    "null",
    "012",
    "1:30",
    "0x1f",
    "1e3",
    "- a",
    "a: b",
    "# c",
    "*x",
    "&y",
    "'",
    '"',
]


def with_text(text):
    return mined(pair(negative_ctxs=(context("odd", text),)))


def read_text(written, loader=yaml.SafeLoader):
    return yaml.load(written, Loader=loader)["pairs"][0]["negative_ctxs"][0]["text"]


def test_what_is_written_is_read_again(tmp_path):
    agreement = Agreement(
        first="a", second="b", pairs=3, cases=2, observed=1.0, kappa=None, low=None, high=None,
        most_apart=0.6, table=((1, 0, 0), (0, 2, 0), (0, 0, 0)),
    )  # fmt: skip
    for data in (mined(), mined(pair(), pair("b")), mined(agreement=agreement)):
        found, _ = read_yaml(write_dataset(data, tmp_path), Mined)
        assert found.pairs == data.pairs and found.controls == data.controls
        assert found.agreement == data.agreement and found.end.pairs == len(data.pairs)
        assert [one for one in validate(tmp_path / "retrieval_dataset.yaml") if one.level == "error"] == []


@given(st.text(min_size=1).filter(str.strip))
def test_any_text_comes_back(text):
    """Whatever a corpus holds; half a surrogate pair, which no file can hold, becomes a question mark."""
    assert read_text(dump(with_text(text))) == text.encode("utf-8", "replace").decode()


@given(st.lists(st.sampled_from([*AMBIGUOUS, "def f():", "    pass", "", "x"]), min_size=2, max_size=6))
def test_any_lines_come_back_from_both_loaders(parts):
    text = "\n".join([*parts, "end"])
    written = dump(with_text(text))
    assert read_text(written) == read_text(written, yaml.CSafeLoader) == text


def test_code_stands_in_a_block_and_keys_are_plain():
    written = dump(mined())
    assert "    text: |\n      class Agent:\n" in written
    assert '  - fqn: "toy.Tool"\n' in written and '"fqn"' not in written
    assert "*id" not in written and "&id" not in written


def files_of(folder):
    return {path.relative_to(folder): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_equal_content_gives_equal_bytes_and_nothing_is_left_over(tmp_path):
    write_dataset(mined(), tmp_path / "a")
    write_dataset(mined(pair(query="another")), tmp_path / "b")
    write_dataset(mined(), tmp_path / "b")
    assert files_of(tmp_path / "a") == files_of(tmp_path / "b")
    names = sorted(path.name for path in (tmp_path / "b").iterdir())
    assert names == ["beir", "qrels.txt", "retrieval_dataset.yaml"]


def test_a_failed_write_keeps_the_old_file(tmp_path, monkeypatch):
    file = write_dataset(mined(), tmp_path)
    before = file.read_bytes()
    monkeypatch.setattr(writing.os, "fsync", lambda _: (_ for _ in ()).throw(OSError(28, "no space")))
    with pytest.raises(OSError, match="no space"):
        write_dataset(mined(pair(query="another")), tmp_path)
    assert file.read_bytes() == before and not list(tmp_path.glob(".*"))


def test_it_loads_with_its_meaning(tmp_path):
    data = load_mined(write_dataset(mined(), tmp_path))
    assert data.queries == {"fix_errors:01": "How do I give an agent a tool?"}
    assert data.qrels == {"fix_errors:01": {"toy.Retry": 0, "toy.Agent": 1, "toy.Tool": 1, "toy.both": 1}}
    assert data.kernels == {"fix_errors:01": ["toy.Agent", "toy.Tool"]}
    assert data.answers == {"fix_errors:01": ["tools="]}
    texts = {passage.id: passage.text for passage in data.passages}
    assert texts["toy.Agent"] == AGENT and "toy.Odd" not in texts


def test_beir_and_trec_say_the_same(tmp_path):
    file = write_dataset(mined(), tmp_path)
    data, folder = load_mined(file), load_beir(tmp_path / "beir")
    assert folder.qrels == data.qrels and folder.answers == data.answers
    # A BEIR folder has facets alone: where an alternative covers one as well, no passage is required.
    assert data.alternatives and folder.facets == data.facets
    assert read_qrels(tmp_path / "qrels.txt") == data.qrels
    assert read_subtopics(tmp_path / "beir" / "qrels" / "subtopics.txt") == data.facets
    assert [(one.id, one.text) for one in folder.passages] == [(one.id, one.text) for one in data.passages]


def test_names_with_gaps_fit_into_columns(tmp_path):
    spaced = pair(
        "a case",
        positive_ctxs=(context("my guide.md#1", "text", "YES", evidence="text"),),
        kernel=(),
        kernel_status=None,
        alternatives=(),
        kernels={},
    )
    write_dataset(mined(spaced), tmp_path)
    assert read_qrels(tmp_path / "qrels.txt")["a%20case"]["my%20guide.md#1"] == 1


def test_provenance_is_in_the_file():
    written = yaml.safe_load(dump(mined()))
    assert written["controls"]["false_positive"]["high"] == 0.08
    assert written["corpus"] == {"name": "toy 1.0", "fingerprint": "0123"}
    one = written["pairs"][0]
    assert one["kernel_status"] == "minimal" and one["alternatives"] == [["toy.both"]]
    assert one["positive_ctxs"][0] == {
        "fqn": "toy.Agent",
        "verdict": "NO",
        "part_of_kernel": True,
        "judge": "answers",
        "origins": ["target", "dense"],
        "text": AGENT,
    }
    assert [ctx["fqn"] for ctx in one["unsure_ctxs"]] == ["toy.Odd"]


@pytest.mark.parametrize("own", ["beir/nfcorpus/corpus.jsonl", "qrels.txt", "retrieval_dataset.yaml"])
def test_a_folder_with_data_of_somebody_else_is_refused_and_kept(tmp_path, own):
    (tmp_path / own).parent.mkdir(parents=True, exist_ok=True)
    (tmp_path / own).write_text("mine")
    before = files_of(tmp_path)
    with pytest.raises(ConfigError, match="overwrite"):
        write_dataset(mined(), tmp_path)
    assert files_of(tmp_path) == before


@pytest.mark.parametrize("verified", [True, False])
def test_files_put_beside_ours_survive_the_next_run(tmp_path, verified):
    write_dataset(mined(), tmp_path)
    for name in ("beir/nfcorpus/corpus.jsonl", "beir/qrels/train.tsv", "notes.txt"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("mine")
    changed = mined(pair(query="another"), verified=verified, controls=controls(false_positive=WRONG))
    write_dataset(changed, tmp_path)
    assert sum(text == b"mine" for text in files_of(tmp_path).values()) == 3
    assert (tmp_path / "qrels.txt").exists() == verified
    assert (tmp_path / "beir" / "corpus.jsonl").exists() == verified
