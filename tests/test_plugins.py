"""Names that other packages add: found without importing, used like our own, and harmless where they fail."""

import json
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from dartboard import plugins
from dartboard.cli import main
from dartboard.cli.doctor_plugins import check_plugins
from dartboard.engine import Engine
from dartboard.errors import ConfigError, StoreError, UntrustedModelError
from dartboard.evaluation import EvaluationConfig, Judgements, Measure, evaluate
from dartboard.evaluation.measures import MEASURES
from dartboard.evaluation.registry import check_names, choose
from dartboard.mining.judges import AnswerJudge, judge_by_name
from dartboard.retrievers import BM25Retriever, retriever_by_name
from dartboard.selection import MMR, select
from dartboard.selection.select import method_of
from dartboard.stores import open_store
from dartboard.stores.memory import MemoryStore
from dartboard.types import Dataset
from tests.cli.running import PATIENCE, environment
from tests.mining.doors import write_house
from tests.models import WordBag, chunks_of
from tests.tea import filled

ROOT = Path(__file__).parent.parent

MODULE = """
from dartboard.errors import InvalidInputError
from dartboard.evaluation.measures import Kind
from dartboard.retrievers import DenseRetriever
from dartboard.selection import TopK
from dartboard.stores.memory import MemoryStore
from dartboard.mining.judges import AnswerJudge

print("loaded")


def retriever(model, argument):
    return DenseRetriever(model, name=f"mine{argument}")


def store(url, *, read_only):
    if "wrong" in url:
        raise InvalidInputError("no such place")
    found = MemoryStore()
    found.url = f"{url} {read_only}"
    return found


class Selector(TopK):
    name = "mine"


def judge(argument, **options):
    judge = AnswerJudge(name=f"mine:{argument}")
    return judge


def metric(run, k):
    return run.count(run.relevant_within(k))


LETTERS = Kind(lambda run, k: ["a"] * len(run), "Letters")
LONG = Kind(lambda run, k: [1.0], "Long")
STRANGE = Kind(metric, "Strange", "nothing that exists")
EMPTY = Kind(lambda run, k: [float("nan")] * len(run), "Empty")


def nothing(*arguments, **options):
    return None


def fails(*arguments, **options):
    raise TypeError("not like this")


number = 7
"""


@pytest.fixture
def package(tmp_path, monkeypatch):
    """Make installed packages: a folder of metadata and a module each, along sys.path."""

    def make(name: str, entries: dict[str, dict[str, str]], code: str = MODULE, version: str = "1.2") -> str:
        folder = tmp_path / name
        module = f"m{abs(hash((str(tmp_path), name))):x}"
        info = folder / f"{name.replace('-', '_')}-{version}.dist-info"
        info.mkdir(parents=True)
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
        lines = []
        for kind, named in entries.items():
            lines.append(f"[dartboard.{kind}]")
            lines += [f"{one} = {module}:{target}" for one, target in named.items()]
        (info / "entry_points.txt").write_text("\n".join(lines))
        (folder / f"{module}.py").write_text(code)
        monkeypatch.syspath_prepend(str(folder))
        return module

    return make


ALL = {
    "retrievers": {"mine": "retriever"},
    "stores": {"Mine": "store"},
    "selectors": {"mine": "Selector"},
    "judges": {"mine": "judge"},
    "metrics": {"mine": "metric"},
}


def run_of(*queries: str):
    judged = Judgements(qrels={query: {"a": 1.0, "b": 1.0} for query in queries})
    return {query: ["a", "c"] for query in queries}, judged


# Finding and using


def test_listing_imports_nothing(package):
    module = package("good-one", ALL)
    assert [plugin.kind for plugin in plugins.installed() if plugin.package == "good-one"] == sorted(
        plugins.KINDS
    )
    (found,) = (one for one in plugins.installed("metric") if one.name == "mine")
    assert (found.package, found.version, found.target) == ("good-one", "1.2", f"{module}:metric")
    assert str(found) == "plug-in 'mine' (a metric of good-one 1.2)"
    for kind in plugins.KINDS:
        assert "mine" in plugins.names(kind) and plugins.find(kind, "mine")
        assert plugins.find(kind, "nobody") is None
    assert module not in sys.modules


def test_import_and_help_stay_light(package, tmp_path):
    module = package("good-one", ALL)
    code = (
        "import sys, dartboard; light = 'importlib.metadata' not in sys.modules; import dartboard.cli.app; "
        f"print(light, {module!r} not in sys.modules)"
    )
    env = environment(tmp_path, PYTHONPATH=str(tmp_path / "good-one"))
    done = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["True", "True"]


def test_a_name_of_each_kind_is_used(package):
    module = package("good-one", ALL)
    assert retriever_by_name("mine", model=WordBag()).name == "mine"
    assert retriever_by_name("mine:!", model=WordBag()).name == "mine!"
    mixed = retriever_by_name("rrf:bm25,mine:2", model=WordBag())
    assert [member.name for member in mixed.members] == ["bm25", "mine2"]
    assert open_store("MINE://somewhere", read_only=True).url == "MINE://somewhere True"
    assert select(np.eye(3), np.eye(3)[1], k=1, method="mine").indices.tolist() == [1]
    assert judge_by_name("mine:x").name == "mine:x"
    assert judge_by_name("ensemble:answers,mine:x").name == "ensemble(answers, mine:x)"
    assert evaluate(*run_of("q"), ["mine@1", "recall@1"]).means == {"mine@1": 1.0, "recall@1": 0.5}
    assert Measure("mine", 3).title == "mine@3"
    assert module in sys.modules


def test_an_index_from_elsewhere_cannot_choose_one(package):
    """Alone or as a member; whoever made the index here has chosen it."""
    module = package("good-one", ALL)
    for name in ("mine", "mine:3", "rrf:dense,mine", "hybrid:dense=1,mine:3=1"):
        store = MemoryStore()
        filled(store).collection.configure({"retriever": name})
        with pytest.raises(UntrustedModelError, match="asks for the retriever"):
            Engine(store, model=WordBag()).search("tea")
        assert module not in sys.modules
    store = MemoryStore()
    Engine(store, model=WordBag(), retriever="mine").create()
    assert Engine(store, model=WordBag()).search("tea").chunks == []


def test_names_that_strangers_choose_take_no_argument(package):
    package("good-one", ALL)
    assert retriever_by_name("mine", model=WordBag(), paths=False).name == "mine"
    with pytest.raises(ConfigError, match="unknown retriever"):
        retriever_by_name("mine:/etc", model=WordBag(), paths=False)


def test_selectors_and_metrics_in_an_evaluation(package):
    package("good-one", ALL)
    chunks = chunks_of(["red apple", "green apple", "blue sky"])
    vectors = np.stack([chunk.embedding for chunk in chunks])
    dataset = Dataset(
        "tiny", chunks, ["apple"], {"apple": ["c0"]}, metadata={"query_embeddings": vectors[:1]}
    )
    config = EvaluationConfig(
        datasets=["tiny"],
        retrievers=["cosine", "mine"],
        metrics=["mine", "recall"],
        k_values=[1],
        sigma_sweep=False,
        copies=[0],
        resamples=100,
    )
    from dartboard.evaluation import evaluate_dataset

    record = evaluate_dataset(dataset, config).record
    assert record["systems"]["mine"]["mine@1"]["mean"] == 1.0
    assert record["measures"] == {"mine@1": "mine@1", "recall@1": "Recall@1"}
    assert [system.name for system in choose(["mine"], dataset, Judgements.of(dataset)).systems] == ["mine"]
    with pytest.raises(ConfigError, match=r"unknown system 'other'.*mine, dartboard-SIGMA"):
        check_names(["other"])


def test_complaints_about_unknown_names_list_them(package):
    package("good-one", ALL)
    for complain in (
        lambda: retriever_by_name("other", model=WordBag()),
        lambda: open_store("other://x"),
        lambda: method_of("other"),
        lambda: judge_by_name("other"),
        lambda: Measure("other"),
    ):
        with pytest.raises(ConfigError, match=r"unknown .*'other'.*mine"):
            complain()


# What cannot be used


def test_our_own_names_stay_ours(package):
    taken = {
        "retrievers": {"bm25": "nothing", "hybrid": "nothing"},
        "stores": {"memory": "nothing"},
        "selectors": {"mmr": "nothing", "cosine": "nothing"},
        "judges": {"answers": "nothing"},
        "metrics": {"ndcg": "nothing"},
    }
    package("greedy-one", taken)
    assert isinstance(retriever_by_name("bm25", model=WordBag()), BM25Retriever)
    assert isinstance(open_store("memory://"), MemoryStore) and isinstance(method_of("mmr"), MMR)
    assert isinstance(judge_by_name("answers"), AnswerJudge)
    assert Measure("ndcg").title == MEASURES["ndcg"].title
    seen = [one for one in check_plugins() if one.package == "greedy-one"]
    assert len(seen) == 7 and not any(one.ok for one in seen)
    assert all("its own is the one that is used" in one.why_not for one in seen)


def test_two_packages_with_one_name(package):
    first = package("good-one", ALL)
    package("other_one", {"selectors": {"mine": "Selector", "alone": "Selector"}})
    with pytest.raises(ConfigError, match=r"good-one 1.2 and other_one 1.2 both have a selector 'mine'"):
        method_of("mine")
    assert method_of("alone").name == "mine" and first not in sys.modules
    seen = {(one.package, one.kind, one.name): one for one in check_plugins()}
    assert "other_one has a selector of that name" in seen["good-one", "selector", "mine"].why_not
    assert not seen["other_one", "selector", "mine"].ok and seen["other_one", "selector", "alone"].ok


def test_of_two_versions_the_first_counts(package):
    package("twice-one", {"selectors": {"old": "Selector"}}, version="1.0")
    package("Twice.One", {"selectors": {"new": "Selector"}}, version="2.0")
    assert plugins.find("selector", "new") and plugins.find("selector", "old") is None


BROKEN = {
    "raise RuntimeError('boom\\n  at import')": "RuntimeError: boom at import",
    "import no_such_module_anywhere": "ModuleNotFoundError: No module named 'no_such_module_anywhere'",
    "def broken(:": "SyntaxError",
    "raise SystemExit": "SystemExit",
    "other = 1": "AttributeError",
}


@pytest.mark.parametrize("code", BROKEN)
def test_a_plug_in_that_fails_to_import(package, code):
    package("bad-one", {"selectors": {"broken": "Selector"}, "metrics": {"broken": "metric"}}, code)
    package("good-one", ALL)
    with pytest.raises(
        ConfigError, match=r"plug-in 'broken' \(a selector of bad-one 1.2\) cannot be loaded"
    ) as said:
        method_of("broken")
    assert BROKEN[code] in str(said.value) and "uninstall bad-one" in str(said.value)
    with pytest.raises(ConfigError, match="cannot be loaded"):
        Measure("broken")
    assert method_of("mine").name == "mine"
    seen = {(one.kind, one.name): one for one in check_plugins()}
    assert (
        BROKEN[code] in seen["selector", "broken"].why_not
        and "pip uninstall bad-one" in seen["metric", "broken"].mend
    )
    assert seen["selector", "mine"].ok


def test_a_plug_in_that_is_something_else(package):
    wrong = {
        "retrievers": {"none": "nothing", "fails": "fails"},
        "selectors": {"none": "nothing", "number": "number"},
        "stores": {"none": "nothing", "mine": "store"},
        "judges": {"none": "nothing"},
        "metrics": {
            "number": "number",
            "letters": "LETTERS",
            "long": "LONG",
            "strange": "STRANGE",
            "empty": "EMPTY",
        },
    }
    package("bad-one", wrong)
    with pytest.raises(ConfigError, match="a NoneType, which is not a retriever: it has no name, fields"):
        retriever_by_name("none", model=WordBag())
    with pytest.raises(ConfigError, match=r"failed: TypeError: not like this"):
        retriever_by_name("fails", model=WordBag())
    with pytest.raises(ConfigError, match="not a class or function but int"):
        method_of("number")
    with pytest.raises(ConfigError, match="which is not a selector: it has no name, select"):
        method_of("none")
    with pytest.raises(ConfigError, match="which is not a store"):
        open_store("none://x")
    with pytest.raises(ValueError, match="no such place"):  # what a plug-in says itself is passed on
        open_store("mine://wrong")
    with pytest.raises(ConfigError, match="which is not a judge"):
        judge_by_name("none")
    for name in ("number", "strange"):
        with pytest.raises(ConfigError, match="is not a measure"):
            Measure(name)
    for name, said in (("letters", "failed: ValueError"), ("long", "2 finite"), ("empty", "2 finite")):
        with pytest.raises(ConfigError, match=said):
            evaluate(*run_of("q", "r"), [name])
    seen = {(one.kind, one.name): one.ok for one in check_plugins() if one.package == "bad-one"}
    assert not seen["selector", "number"] and not seen["metric", "strange"] and seen["metric", "letters"]


def test_names_that_cannot_be_written(package):
    package("odd-one", {"selectors": {"a b": "Selector", "a:b": "Selector", "7up": "Selector"}})
    assert plugins.names("selector") == [] or "a b" not in plugins.names("selector")
    assert plugins.find("selector", "a:b") is None
    seen = [one for one in check_plugins() if one.package == "odd-one"]
    assert len(seen) == 3 and all("cannot be written" in one.why_not for one in seen)


def test_damaged_packages_harm_themselves_alone(package, tmp_path, monkeypatch):
    package("good-one", ALL)
    for number, text in enumerate((b"[dartboard.selectors]\nno equals sign", b"\xff\xfe\x00", b"= = =\n[")):
        info = tmp_path / f"damaged{number}" / f"damaged{number}-1.dist-info"
        info.mkdir(parents=True)
        (info / "entry_points.txt").write_bytes(text)
        monkeypatch.syspath_prepend(str(info.parent))
    nameless = tmp_path / "nameless" / "nameless-1.dist-info"
    nameless.mkdir(parents=True)
    (nameless / "entry_points.txt").write_text("[dartboard.selectors]\nghost = nowhere:Nothing\n")
    monkeypatch.syspath_prepend(str(nameless.parent))
    assert plugins.find("selector", "mine")
    assert all(one.name != "ghost" or not one.ok for one in check_plugins())


def test_doctor_lists_them(package, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    package("good-one", ALL)
    package("bad-one", {"judges": {"broken": "judge"}}, "raise RuntimeError('boom')")
    assert main(["doctor", "--store", "later.dartboard", "--json"]) == 1
    report = json.loads(capsys.readouterr().out)
    found = {one["name"]: one for one in report["plugins"] if one["kind"] == "judge"}
    assert found["mine"]["ok"] and (found["mine"]["package"], found["mine"]["version"]) == ("good-one", "1.2")
    assert not found["broken"]["ok"] and "RuntimeError: boom" in found["broken"]["why_not"]
    wrong = [finding["what"] for finding in report["findings"] if finding["state"] == "wrong"]
    assert wrong == ["plug-in judge broken"]
    assert main(["doctor", "--store", "later.dartboard"]) == 1
    shown = capsys.readouterr().out
    assert "ok    plug-in retriever mine: good-one 1.2 (" in shown
    assert "WRONG plug-in judge broken: bad-one 1.2: RuntimeError: boom" in shown


# The example package


@pytest.fixture(scope="session")
def example(tmp_path_factory) -> Path:
    """The example, built and installed as a user would, into a folder of its own."""
    pytest.importorskip("hatchling")
    target = tmp_path_factory.mktemp("example")
    source = ROOT / "examples" / "plugin"
    subprocess.run(
        [
            *(sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-deps"),
            *("--no-index", "--no-build-isolation", "--target", str(target), str(source)),
        ],
        check=True,
        capture_output=True,
        timeout=PATIENCE,
    )
    return target


def dartboard(example: Path, folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "dartboard", *arguments],
        env=environment(folder / "cache", PYTHONPATH=f"{example}:{ROOT}"),
        cwd=folder,
        capture_output=True,
        encoding="utf-8",
        timeout=PATIENCE,
    )


def test_the_example_through_the_command_line(example, tmp_path):
    def go(*arguments: str) -> str:
        done = dartboard(example, tmp_path, *arguments)
        assert done.returncode == 0, done.stderr
        return done.stdout

    report = json.loads(go("doctor", "--json", "--store", "later.dartboard"))
    ours = [one for one in report["plugins"] if one["package"] == "dartboard-example"]
    assert [(one["kind"], one["name"], one["ok"]) for one in ours] == [
        ("judge", "overlap", True),
        ("metric", "r_precision", True),
        ("retriever", "phrase", True),
        ("selector", "farthest", True),
        ("store", "shelf", True),
    ]

    docs = tmp_path / "docs"
    docs.mkdir()
    for number, text in enumerate(
        ["Rotate keys every month.", "Keys are rotated each month.", "A token budget limits the answer."]
    ):
        (docs / f"{number}.txt").write_text(text)
    shelf = ["--store", f"shelf://{tmp_path}/shelf"]
    go("index", "docs", *shelf, "--retriever", "phrase:0.9")
    assert len(list((tmp_path / "shelf").glob("*.shelf"))) == 1
    (tmp_path / "dartboard.toml").write_text(f'store = "shelf://{tmp_path}/shelf"\nmethod = "farthest"\n')
    go("config", "--trust")
    found = json.loads(go("search", 'what about keys and the "token budget"?', "-k", "2", "--json"))
    assert (found["method"], found["retriever"]) == ("farthest", "phrase")
    assert "token budget" in found["chunks"][0]["text"] and len(found["chunks"]) == 2
    mixed = json.loads(go("search", "keys", "-r", "rrf:phrase,bm25", "--json", "-k", "1"))
    assert "phrase" in mixed["chunks"][0]["shares"]
    assert dartboard(example, tmp_path, "search", "x", "-r", "phrase:much").returncode == 2

    go(
        *(
            "eval",
            "--dataset",
            "synthetic_clustered",
            "--systems",
            "cosine,dartboard,farthest",
            "--out",
            "report",
        ),
        *(
            "--metrics",
            "r_precision,recall",
            "--k",
            "5",
            "--copies",
            "0",
            "--no-sigma-sweep",
            "--resamples",
            "200",
        ),
    )
    results = json.loads((tmp_path / "report" / "results.json").read_text())
    text = json.dumps(results)
    assert "r_precision@5" in text and "R-precision@5" in text and '"farthest"' in text

    registry, corpus = write_house(tmp_path)
    few = ["--random", "1", "--hard", "1", "--neighbours", "1", "--no-kernels"]
    mine = ["mine", "run", str(registry), "--corpus", corpus, "--judge", "overlap:0.8", "--out", "mined"]
    done = dartboard(example, tmp_path, *mine, *few)
    assert done.returncode == 1 and "failed its controls" in done.stderr  # it compares words only
    assert "overlap:0.8" in "".join(
        path.read_text() for path in (tmp_path / "mined").iterdir() if path.is_file()
    )


def test_the_example_keeps_the_contract_of_stores(example):
    done = subprocess.run(
        [
            *(sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"),
            *("-c", "/dev/null", "--rootdir", str(ROOT / "examples" / "plugin"), "-W", "error"),
            str(ROOT / "examples" / "plugin" / "tests"),
        ],
        env=environment(
            example,
            PYTHONPATH=f"{example}:{ROOT}",
            PYTHONDONTWRITEBYTECODE="1",
            PYTEST_DISABLE_PLUGIN_AUTOLOAD="1",
        ),
        capture_output=True,
        encoding="utf-8",
        timeout=PATIENCE,
    )
    assert done.returncode == 0, done.stdout[-3000:]
    assert int(re.search(r"(\d+) passed", done.stdout)[1]) > 30


def test_the_page(capsys, monkeypatch):
    page = (ROOT / "docs" / "plugins.md").read_text()
    blocks = re.findall(r"```python\n(.*?)```", page, flags=re.DOTALL)
    assert len(blocks) == 6
    namespace: dict[str, object] = {"__name__": "page"}
    for block in blocks:
        exec(compile(block, "plugins.md", "exec"), namespace)
    shown = capsys.readouterr().out
    assert "2022 Tokens expire" in shown and "[1.]" in shown and shown.rstrip().endswith("YES")
    for kind in plugins.KINDS:
        assert f"`dartboard.{kind}s`" in page


def test_reading_only_is_reading_only(example, monkeypatch):
    monkeypatch.syspath_prepend(str(example))
    with pytest.raises(StoreError, match="there is no folder"):
        open_store(f"shelf://{example}/nowhere", read_only=True)
    with pytest.raises(ConfigError, match="needs a folder"):
        open_store("shelf://")
