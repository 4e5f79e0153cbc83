"""``retrieval_dataset.yaml``: what is written is what is read, to the byte and to the letter."""

from dataclasses import replace

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from dartboard.datasets import load_beir, load_mined, read_qrels, read_subtopics
from dartboard.errors import ConfigError, DatasetError
from dartboard.mining import dataset_writer as writing
from dartboard.mining.dataset_writer import dump, escaped, plain, write_dataset
from dartboard.mining.validation import validate
from tests.mining.mined import AGENT, context, mined, pair

AMBIGUOUS = ["YES", "NO", "null", "~", "012", "1:30", "1e3", "0x1f", " leading", "trailing ", "- a", "a: b"]
AMBIGUOUS += [
    "# no comment",
    "*alias",
    "&anchor",
    "!tag",
    "%dir",
    "@at",
    "`tick",
    "{}",
    "[",
    "Ünïcode 中",
    "😀",
]
AMBIGUOUS += [
    "\ttab",
    "two\nlines",
    "\nfirst empty",
    "ends\n",
    "ends\n\n",
    "a \nb",
    "  in\nout",
    "\x07bell",
    "\x85",
]
AMBIGUOUS += ["\u2028line", "\ufeffmark", "a\r\nb", "---", "...", "2024-01-01", "=", "<<", "'", '"', "\\"]


def with_text(text):
    return mined(pair(negatives=(context("n", text),), positives=(), unsure=(), kernels={}))


def read_text(written):
    return yaml.safe_load(written)["pairs"][0]["negative_ctxs"][0]["text"]


@pytest.mark.parametrize("text", AMBIGUOUS)
def test_ambiguous_texts_stay_texts(text):
    assert read_text(dump(with_text(text))) == text


@given(st.text())
def test_any_text_comes_back(text):
    """Whatever a corpus holds; half a surrogate pair, which no file can hold, becomes a question mark."""
    assert read_text(dump(with_text(text))) == text.encode("utf-8", "replace").decode()


@given(st.lists(st.sampled_from([*AMBIGUOUS, "def f():", "    pass", "", "x"]), min_size=2, max_size=6))
def test_any_lines_come_back_from_both_loaders(parts):
    text = "\n".join(parts)
    written = dump(with_text(text))
    for loader in (yaml.SafeLoader, yaml.CSafeLoader):
        found = yaml.load(written, Loader=loader)
        assert found["pairs"][0]["negative_ctxs"][0]["text"] == text


@given(st.text(st.characters(max_codepoint=0xFFFF, exclude_categories=["Cs"])))
def test_the_slow_dumper_writes_the_same_bytes(text):
    quick = dump(with_text(text))
    with pytest.MonkeyPatch.context() as patch:
        patch.delattr(yaml, "CSafeDumper")
        assert dump(with_text(text)) == quick


def test_code_stands_in_a_block_and_keys_are_plain():
    written = dump(mined())
    assert "    text: |\n      class Agent:\n" in written
    assert '  - fqn: "toy.Tool"\n' in written and '"fqn"' not in written
    assert "*id" not in written and "&id" not in written


def test_equal_content_gives_equal_bytes_and_nothing_is_left_over(tmp_path):
    first, second = (write_dataset(mined(), tmp_path / name) for name in "ab")
    write_dataset(mined(pair(query="another")), tmp_path / "b")
    write_dataset(mined(), tmp_path / "b")
    for path in sorted(p for p in first.parent.rglob("*") if p.is_file()):
        assert path.read_bytes() == (second.parent / path.relative_to(first.parent)).read_bytes()
    assert sorted(path.name for path in second.parent.iterdir()) == [
        "beir",
        "qrels.txt",
        "retrieval_dataset.yaml",
    ]


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


def test_an_unresolved_kernel_is_none(tmp_path):
    odd = pair()
    odd = replace(odd, kernels={"expansion": replace(odd.kernels["expansion"], status="unresolved")})
    file = write_dataset(mined(odd), tmp_path)
    assert load_mined(file).kernels == {} and not [p for p in validate(file) if p.level == "error"]


def test_beir_and_trec_say_the_same(tmp_path):
    file = write_dataset(mined(), tmp_path)
    data, folder = load_mined(file), load_beir(tmp_path / "beir")
    assert folder.qrels == data.qrels and folder.answers == data.answers
    # A BEIR folder has facets alone: where an alternative covers one as well, no passage is required.
    assert data.alternatives and folder.facets == data.facets
    assert folder.kernels == {id_: k for id_, k in data.kernels.items() if id_ not in data.alternatives}
    assert read_qrels(tmp_path / "qrels.txt") == data.qrels
    assert read_subtopics(tmp_path / "beir" / "qrels" / "subtopics.txt") == data.facets
    assert [(one.id, one.text) for one in folder.passages] == [(one.id, one.text) for one in data.passages]


def test_names_with_gaps_fit_into_columns(tmp_path):
    spaced = pair(
        id_="a case", positives=(context("my guide.md#1", "text", "YES", evidence="text"),), kernels={}
    )
    write_dataset(mined(spaced), tmp_path)
    assert read_qrels(tmp_path / "qrels.txt")["a%20case"]["my%20guide.md#1"] == 1
    assert escaped("100%") == "100%25" and escaped("a.b") == "a.b"


def test_the_exports_can_be_left_out(tmp_path):
    write_dataset(mined(), tmp_path, exports=False)
    assert [path.name for path in tmp_path.iterdir()] == ["retrieval_dataset.yaml"]


def test_what_is_no_plain_data_is_refused():
    with pytest.raises(DatasetError, match="plain data"):
        plain(mined(settings={"when": float("nan")}))
    assert plain(mined(settings={"of": {"b", "a"}}))["settings"] == {"of": ["a", "b"]}


def test_provenance_is_in_the_file():
    written = yaml.safe_load(dump(mined(agreement={"kappa": 0.9})))
    assert written["controls"]["false_positive"]["high"] == 0.08 and written["agreement"] == {"kappa": 0.9}
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


def files_of(folder):
    return {path.relative_to(folder): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.mark.parametrize("own", ["beir/nfcorpus/corpus.jsonl", "qrels.txt", "retrieval_dataset.yaml"])
def test_a_folder_with_data_of_somebody_else_is_refused_and_kept(tmp_path, own):
    (tmp_path / own).parent.mkdir(parents=True, exist_ok=True)
    (tmp_path / own).write_text("mine")
    before = files_of(tmp_path)
    with pytest.raises(ConfigError, match="would overwrite"):
        write_dataset(mined(), tmp_path)
    assert files_of(tmp_path) == before


@pytest.mark.parametrize("controls", [{}, {"false_positive": {"errors": 3, "decided": 3, "unsure": 0}}])
def test_files_put_beside_ours_survive_the_next_run(tmp_path, controls):
    write_dataset(mined(), tmp_path)
    for name in ("beir/nfcorpus/corpus.jsonl", "beir/qrels/train.tsv", "notes.txt"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("mine")
    changed = mined(pair(query="another"), **({"controls": controls} if controls else {}))
    write_dataset(changed, tmp_path)
    after = files_of(tmp_path)
    assert sum(text == b"mine" for text in after.values()) == 3
    assert (tmp_path / "qrels.txt").exists() == (not controls)
    assert (tmp_path / "beir" / "corpus.jsonl").exists() == (not controls)
