"""Corpora: names that lead to definitions, texts that hold each line once, searches that repeat."""

import ast
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dartboard.engine import Engine
from dartboard.engine.index import index_paths
from dartboard.errors import ConfigError, DartboardError, DatasetError, InvalidInputError
from dartboard.mining.cases import Case
from dartboard.mining.context_pool import find_targets
from dartboard.mining.corpora import open_corpus
from dartboard.mining.corpora.base import Document
from dartboard.mining.corpora.memory_corpus import FolderCorpus, LabelledCorpus, MemoryCorpus
from dartboard.mining.corpora.package_corpus import PackageCorpus, shortened
from tests.examples import examples
from tests.mining.packages import FILES, write_package
from tests.models import WordBag


@pytest.fixture(scope="module")
def toy(tmp_path_factory):
    return write_package(tmp_path_factory.mktemp("site"))


@pytest.fixture(scope="module")
def corpus(toy):
    return PackageCorpus("toy", toy, model=WordBag())


def test_documents_of_a_package(corpus):
    kinds = {document.fqn: document.metadata["kind"] for document in corpus}
    assert corpus.name == "toy 2.5" and len(corpus) == len(kinds)
    assert list(kinds) == sorted(kinds)
    assert kinds["toy"] == "module" and kinds["toy.agents.base.Base"] == "class"
    assert kinds["toy.agents.base.Base.run"] == "method" and kinds["toy.agents.robot.helper"] == "function"
    assert "toy.agents.base.Base.short" not in kinds, "too small to be a document of its own"
    assert "toy.agents.robot._secret" not in kinds and "toy.agents._parts" not in kinds
    assert "toy.agents._parts.Arm" in kinds, "private by its module, but a public package exports it"
    assert "toy.agents._parts._Bolt" not in kinds
    assert "toy.empty" not in kinds


def test_files_that_cannot_be_parsed_are_reported_and_the_rest_is_there(corpus):
    assert sorted(problem.source for problem in corpus.problems) == [
        "toy/broken.py",
        "toy/latin.py",
        "toy/nul.py",
    ]
    assert all("cannot be parsed" in problem.reason for problem in corpus.problems)


@pytest.mark.parametrize(
    ("name", "place"),
    [
        ("toy.Robot", "toy.agents.robot.Robot"),
        ("toy.agents.Robot", "toy.agents.robot.Robot"),
        ("toy.agents.Android", "toy.agents.robot.Robot"),
        ("toy.agents.robot.Android", "toy.agents.robot.Robot"),
        ("toy.agents.robot.first_robot", "toy.agents.robot.Robot"),
        ("toy.agents.assist", "toy.agents.robot.helper"),
        ("toy.agents.Base", "toy.agents.base.Base"),
        ("toy.agents.LIMIT", "toy.agents.base"),
        ("toy.agents.Sleeper", "toy.agents.lazy.Sleeper"),
        ("toy.implements.Wrench", "toy.tools.wrench.Wrench"),
        ("toy.tools.default_wrench", "toy.tools.wrench.Wrench"),
        ("toy.tools.Arm", "toy.agents._parts.Arm"),
        ("toy.Robot.run", "toy.agents.base.Base.run"),
        ("toy.Robot.short", "toy.agents.base.Base"),
        ("toy.Robot.arms", "toy.agents.robot.Robot"),
        ("toy.Robot.name", "toy.agents.base.Base"),
        ("toy.agents.robot._secret", "toy.agents.robot"),
        ("toy.agents.robot", "toy.agents.robot"),
        ("toy.agents.lost", None),
        ("toy.agents.circle2.gone.x", None),
        ("toy.agents.circle2.self_made", "toy.agents.circle2"),
        ("toy.Robot.flies", None),
        ("toy.agents.robot.helper.x", None),
        ("toy.nothing", None),
        ("json.loads", None),
    ],
)
def test_names_lead_to_the_place_of_definition(corpus, name, place):
    found = corpus.get(name)
    assert (found and found.fqn) == place


def test_aliases_are_named_in_the_text(corpus):
    robot = corpus.get("toy.Robot")
    assert robot.metadata["aliases"] == ["toy.Robot", "toy.agents.Robot", "toy.agents.Android"]
    assert "# also toy.Robot, toy.agents.Robot" in robot.text
    assert robot.metadata["signature"] == "class Robot(Base)"
    assert corpus.get("toy.agents.assist").metadata["signature"] == (
        "async def helper(robot: 'Robot', *, tool: str='wrench') -> None"
    )


def test_a_class_shows_its_documented_methods_as_signatures(corpus):
    base = corpus.get("toy.agents.base.Base")
    assert base.text == (
        "# class toy.agents.base.Base\n# also toy.agents.Base\n"
        'class Base:\n    """The base of agents.\n\n    It says little.\n    """\n\n'
        '    name: str\n    """The name, an identifier."""\n\n'
        "    def __init__(self, name: str):\n        self.name = name\n\n"
        '    def run(self, steps: int = 1) -> str:\n        """Run for some steps."""\n        ...\n\n'
        "    def short(self):\n        return 1\n\n"
        "    def _walk(self, steps):\n        # one foot after the other\n"
        '        return "left right" * steps'
    )
    assert "counted from zero" in corpus.get("toy.agents.base.Base.run").text


def test_overloads_and_properties_are_one_document(corpus):
    lift = corpus.get("toy.agents.robot.Robot.lift").text
    assert lift.count("def lift(") == 3 and "Heavy things" in lift
    reach = corpus.get("toy.agents.robot.Robot.reach").text
    assert "@reach.setter" in reach and "return 1.5" in reach
    assert "Heavy things" not in corpus.get("toy.Robot").text


def test_a_module_has_what_no_other_document_has(corpus):
    text = corpus.get("toy.agents.robot").text
    assert text.startswith('# module toy.agents.robot\n"""Robots."""')
    assert "secret sauce" in text and "Android = Robot" in text
    assert "import typing" not in text and "return 1.5" not in text
    assert "Copyright" not in corpus.get("toy").text
    assert "from .agents import Robot" in corpus.get("toy").text, "a package's imports are what it offers"


def test_each_body_line_stands_in_one_document(corpus):
    for line in ("left right", "counted from zero", "Heavy things", "secret sauce", "return 1.5"):
        assert sum(line in document.text for document in corpus) == 1, line


def test_texts_are_bounded_and_cut_between_lines(toy):
    small = PackageCorpus("toy", toy, longest=120)
    written = {line.strip() for text in FILES.values() for line in text.splitlines()}
    cut = 0
    for document in small:
        source = [line for line in document.text.splitlines()[1:] if not line.startswith("# also")]
        assert len("\n".join(source)) <= 120
        if source[-1].endswith("more lines"):
            cut += 1
            shown = {line.strip() for line in source[:-1] if not line.lstrip().startswith('"""')}
            assert shown <= written | {"..."}
    assert cut > 3 and small.fingerprint != PackageCorpus("toy", toy).fingerprint


@given(st.text(alphabet="ab \n", max_size=200), st.integers(40, 200))
@examples(60)
def test_shortening_keeps_whole_lines(text, longest):
    short = shortened(text, longest)
    if len(text) <= longest:
        assert short == text
    else:
        *kept, last = short.splitlines()
        assert len(short) <= longest and kept == text.splitlines()[: len(kept)]
        assert last == f"# … {len(text.splitlines()) - len(kept)} more lines"


def test_the_same_package_elsewhere_is_the_same_corpus(toy, corpus, tmp_path):
    again = PackageCorpus("toy", write_package(tmp_path / "src" / "deep"))
    assert again.fingerprint == corpus.fingerprint
    assert [*again] == [*corpus]
    changed = {**FILES, "toy/tools/wrench.py": FILES["toy/tools/wrench.py"].replace("bolts", "nuts")}
    other = PackageCorpus("toy", write_package(tmp_path / "other", changed))
    assert other.fingerprint != corpus.fingerprint


def test_an_installed_package_is_found_and_not_imported(toy):
    code = (
        "import sys\n"
        "from dartboard.mining.corpora import open_corpus\n"
        "corpus = open_corpus('package:toy.agents')\n"
        "print(corpus.name, len(corpus), 'toy' in sys.modules, 'toy.agents' in sys.modules)\n"
    )
    path = f"{toy}:{':'.join(entry for entry in sys.path if entry)}"
    run = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, env={"PYTHONPATH": path}, check=True
    )
    name, version, count, *imported = run.stdout.split()
    assert (name, version, imported) == ("toy.agents", "2.5", ["False", "False"]) and int(count) > 10


def test_where_packages_are_looked_for(toy, tmp_path):
    assert PackageCorpus("toy", toy / "toy").fingerprint == PackageCorpus("toy", toy).fingerprint
    write_package(tmp_path / "src")
    assert open_corpus(f"package:toy@{tmp_path}").name == "toy 2.5"
    (tmp_path / "alone.py").write_text('"""One module."""\n\ndef one():\n    """One."""\n')
    assert {document.fqn for document in PackageCorpus("alone", tmp_path)} == {"alone", "alone.one"}
    assert PackageCorpus("textwrap").get("textwrap.dedent") is not None
    for name, match in (
        ("no_such_package", "install it"),
        ("toy-robots", "no name of a Python package"),
        ("sys", "install it"),
    ):
        with pytest.raises(DatasetError, match=match):
            PackageCorpus(name)
    with pytest.raises(DatasetError, match="holds it"):
        PackageCorpus("toy", tmp_path / "elsewhere")
    (tmp_path / "hollow").mkdir()
    with pytest.raises(DatasetError, match=r"no Python package|without Python"):
        PackageCorpus("hollow", tmp_path)


def test_links_out_of_a_package_are_left_out(tmp_path):
    write_package(tmp_path / "site")
    (tmp_path / "private.py").write_text('PASSWORD = "hunter2"\n')
    (tmp_path / "site" / "toy" / "leak.py").symlink_to(tmp_path / "private.py")
    assert PackageCorpus("toy", tmp_path / "site").get("toy.leak") is None


def test_every_excerpt_of_the_standard_library_is_bounded_python():
    corpus = PackageCorpus("json")
    assert corpus.get("json.JSONEncoder").fqn == "json.encoder.JSONEncoder"
    assert corpus.get("json.JSONDecoder.decode").fqn == "json.decoder.JSONDecoder.decode"
    for document in corpus:
        ast.parse(document.text)


def test_searching(corpus):
    assert corpus.lexical("counted from zero", 1)[0].fqn == "toy.agents.base.Base.run"
    assert len(corpus.lexical("zero", 5)) == 1, "documents that share no word are not found"
    query = "turns bolts"
    near = corpus.dense(query, 3)
    asked = corpus.model.encode_query(query)
    asked /= np.linalg.norm(asked)
    best = max(corpus, key=lambda document: corpus.vectors[[*corpus].index(document)] @ asked)
    assert near[0] == best and len(near) == 3
    together = corpus.dartboard(query, 4)
    assert together[0] == near[0] and len({document.fqn for document in together}) == 4
    again = MemoryCorpus("again", reversed([*corpus]), model=WordBag())
    for search in ("lexical", "dense", "dartboard"):
        assert getattr(again, search)(query, 5) == getattr(corpus, search)(query, 5)


def test_equal_texts_come_by_name():
    documents = [Document(name, "the same words") for name in "cab"]
    corpus = MemoryCorpus("copies", documents, model=WordBag())
    for search in (corpus.lexical, corpus.dense):
        assert [document.fqn for document in search("same words", 3)] == ["a", "b", "c"]
    assert len(corpus.dartboard("same words", 9)) == 3


def test_what_cannot_be_searched(corpus):
    with pytest.raises(InvalidInputError, match="query is empty"):
        corpus.lexical("  ", 3)
    with pytest.raises(InvalidInputError, match="k must be"):
        corpus.dense("robot", 0)
    with pytest.raises(DatasetError, match="two documents of one name: 'a'"):
        MemoryCorpus("twice", [Document("a", "x"), Document("a", "y")])
    with pytest.raises(DatasetError, match="no documents"):
        MemoryCorpus("none", [])


def test_the_default_model_remembers_on_disk(tmp_path, monkeypatch):
    monkeypatch.setenv("DARTBOARD_CACHE", str(tmp_path))
    corpus = MemoryCorpus("two", [Document("a", "A robot lifts."), Document("b", "The sea is calm.")])
    assert corpus.dense("machines that carry things", 1)[0].fqn == "a"
    assert (tmp_path / "vectors-2.sqlite").exists()
    corpus.model.close()


def test_a_folder_in_pieces(tmp_path):
    (tmp_path / "short.md").write_text("# Robots\n\nRobots lift boxes.\n")
    (tmp_path / "long.txt").write_text("\n\n".join(f"Paragraph {n} about the sea. " * 40 for n in range(5)))
    (tmp_path / "broken.pdf").write_bytes(b"no document")
    corpus = FolderCorpus(tmp_path, model=WordBag())
    names = [document.fqn for document in corpus]
    assert "short.md" in names and "long.txt#1" in names and "long.txt" not in names
    assert [problem.source for problem in corpus.problems] == ["broken.pdf"]
    assert corpus.lexical("robots boxes", 1)[0].fqn == "short.md"
    assert open_corpus(f"folder:{tmp_path}").fingerprint == corpus.fingerprint
    with pytest.raises(DatasetError, match="no folder"):
        FolderCorpus(tmp_path / "missing")
    (tmp_path / "only").mkdir()
    with pytest.raises(DatasetError, match="no document"):
        FolderCorpus(tmp_path / "only")


def test_a_store(tmp_path):
    docs = tmp_path / "docs"
    docs.mkdir()
    for number, text in enumerate(["Robots lift boxes.", "The sea is calm.", "Boxes are brown."]):
        (docs / f"{number}.txt").write_text(text)
    url = str(tmp_path / "index.dartboard")
    with Engine.open(url, model=WordBag(), collection="texts") as engine:
        index_paths(engine, [docs])
    corpus = open_corpus(f"store:{url}#texts", model=WordBag())
    assert len(corpus) == 3 == len([*corpus]) and corpus.name == f"{url}#texts"
    assert [document.fqn for document in corpus] == sorted(document.fqn for document in corpus)
    first = corpus.lexical("robots", 2)
    assert [document.text for document in first] == ["Robots lift boxes."]
    assert corpus.get(first[0].fqn) == first[0] and corpus.get("nothing") is None
    source = first[0].metadata["source"]
    assert source.endswith("0.txt") and corpus.get(source) == first[0]
    with pytest.raises(DatasetError, match=f"target '0.text' .* near to it are .*{source}"):
        find_targets(Case(id="x", question="?", targets=("0.text",)), corpus)
    assert corpus.dense("the sea is calm", 1)[0].text == "The sea is calm."
    assert len(corpus.dartboard("boxes are brown", 2)) == 2
    assert corpus.fingerprint == open_corpus(f"store:{url}#texts", model=WordBag()).fingerprint
    corpus.close()
    with pytest.raises(DartboardError, match="no store"):
        open_corpus(f"store:{tmp_path / 'missing.dartboard'}")
    with pytest.raises(DartboardError, match="other"):
        open_corpus(f"store:{url}#other")


def test_pieces_of_a_store_have_the_names_of_a_folders(tmp_path):
    docs = tmp_path / "docs"
    docs.mkdir()
    parts = [f"# Part {number}\n\n{'Robots lift boxes. ' * 150}{number}\n" for number in range(3)]
    (docs / "guide.md").write_text("\n".join(parts))
    (docs / "rows.csv").write_text("id,text\na,Robots\nb,Boxes\n")
    url = str(tmp_path / "index.dartboard")
    with Engine.open(url, model=WordBag()) as engine:
        index_paths(engine, [docs])
    corpus = open_corpus(f"store:{url}", model=WordBag())
    folder = FolderCorpus(docs, model=WordBag())
    names = [one.fqn for one in folder if one.fqn.startswith("guide.md")]
    assert len(names) > 2 and names[0] == "guide.md#1"
    for name in names:
        assert corpus.get(f"docs/{name}").text == folder.get(name).text
    assert corpus.get("docs/guide.md") is None and corpus.get("docs/rows.csv") is None
    with pytest.raises(DatasetError, match=r"near to it are docs/guide.md#\d"):
        find_targets(Case(id="x", question="?", targets=("guide.md",)), corpus)
    corpus.close()


def test_a_labelled_set(tmp_path, monkeypatch):
    folder = tmp_path / "mini"
    (folder / "qrels").mkdir(parents=True)
    (folder / "corpus.jsonl").write_text(
        '{"_id": "d1", "title": "Robots", "text": "They lift."}\n{"_id": "d2", "title": "", "text": ""}\n'
        '{"_id": "d3", "text": "The sea."}\n'
    )
    (folder / "queries.jsonl").write_text('{"_id": "q1", "text": "Who lifts?"}\n')
    (folder / "qrels" / "test.tsv").write_text("query-id\tcorpus-id\tscore\nq1\td1\t1\n")
    corpus = LabelledCorpus(str(folder), model=WordBag())
    assert [(one.fqn, one.text) for one in corpus] == [("d1", "Robots They lift."), ("d3", "The sea.")]
    monkeypatch.setenv("DARTBOARD_DATA", str(tmp_path))
    assert open_corpus("dataset:mini").fingerprint == corpus.fingerprint
    (tmp_path / "other").mkdir()
    with pytest.raises(DatasetError, match="no data set of a known format"):
        LabelledCorpus(str(tmp_path / "other"))


@pytest.mark.parametrize("spec", ["google.adk", "package:", "web:example", ""])
def test_specs_that_name_no_corpus(spec):
    with pytest.raises(ConfigError, match="package:NAME"):
        open_corpus(spec)
