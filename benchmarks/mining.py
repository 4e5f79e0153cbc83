"""Mining where the truth is known: kernels with a judge that knows, the offline judge on labelled passages.

    python benchmarks/mining.py             # some minutes; vectors are cached
    python benchmarks/mining.py --only b    # one part: a (kernels), b (answers)

Reads ``hotpotqa_dev200``, ``musique_train100``, ``rgb_int_neutronrag`` and ``rgb_en_fact`` from
``$DARTBOARD_DATA`` (default ``../shared/data``) and writes ``benchmarks/results/mining.json``.

**Kernels.** The simulated judge says YES if all supporting paragraphs are among the contexts. Otherwise it
names the first that is not there, never by its id: by the ``title`` of the paragraph, by five ``common
words`` of it that are not in its title, or by the ``sub-question`` that it answers, in the words of MuSiQue's
annotators. It flips a share of its verdicts at random, by seed, case, contexts and attempt (sticky errors:
whatever the attempt); a false NO asks for a paragraph drawn at random, so that it misleads.

**Answers.** RGB says which passages answer which facet of a question, and which do not. A positive passage is
judged with the answers of its own facet, a negative with the whole question, as mining does.
"""

import argparse
import json
import random
import re
import statistics
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT))  # run as a script, this file finds its neighbours

from benchmarks.measuring import data_folder  # noqa: E402
from dartboard.evaluation.tables import markdown  # noqa: E402
from dartboard.mining.agreement import wilson  # noqa: E402
from dartboard.mining.cases import Case  # noqa: E402
from dartboard.mining.context_pool import ContextPool, build_pool  # noqa: E402
from dartboard.mining.corpora.base import Document  # noqa: E402
from dartboard.mining.corpora.memory_corpus import LabelledCorpus, read_dataset  # noqa: E402
from dartboard.mining.judges import AnswerJudge  # noqa: E402
from dartboard.mining.judges.base import Verdict  # noqa: E402
from dartboard.mining.kernels import FoundKernel, find_kernel  # noqa: E402
from dartboard.mining.registry import labelled_cases  # noqa: E402

MULTI_HOP = {"HotpotQA": "hotpotqa_dev200", "MuSiQue": "musique_train100"}
RGB = {"RGB, two facets": "rgb_int_neutronrag", "RGB, one fact": "rgb_en_fact"}
RESULTS = ROOT / "benchmarks" / "results" / "mining.json"
JUDGE = AnswerJudge()

SEEDS = (0, 1, 2)
_WORD = re.compile(r"[^\W\d_]{4,}")

Wording = Callable[[str, Document], str]


@dataclass(frozen=True, slots=True)
class Setting:
    """A row of the table; ``votes`` None is the finder's own choice, ``sticky`` errors repeat themselves."""

    wording: str
    flips: float = 0.0
    votes: int | None = None
    target: bool = True
    sticky: bool = False


SETTINGS = (
    Setting("title"),
    Setting("title", votes=1),
    Setting("title", target=False),
    Setting("common words"),
    Setting("sub-question"),
    Setting("title", flips=0.05),
    Setting("title", flips=0.05, votes=1),
    Setting("title", flips=0.05, sticky=True),
    Setting("common words", flips=0.05),
    Setting("sub-question", flips=0.05),
    Setting("title", flips=0.1),
    Setting("title", flips=0.2),
)


class KnowingJudge:
    """Knows the kernels by case id."""

    name = "simulated"
    prompt_version = "own words"

    def __init__(
        self,
        kernels: Mapping[str, Sequence[str]],
        documents: Mapping[str, Document],
        wording: Wording,
        *,
        flips: float,
        seed: int,
        sticky: bool = False,
    ) -> None:
        self._kernels, self._documents, self._wording = kernels, documents, wording
        self._names = sorted(documents)
        self._flips, self._seed, self._sticky = flips, seed, sticky
        self.flipped = 0

    def judge(self, case: Case, contexts: Sequence[Document], *, attempt: int = 0) -> Verdict:
        """One verdict, the same for the same question and attempt."""
        there = {context.fqn for context in contexts}
        lacking = [name for name in self._kernels[case.id] if name not in there]
        draw = random.Random(repr((self._seed, case.id, sorted(there), 0 if self._sticky else attempt)))
        wrong = draw.random() < self._flips
        self.flipped += wrong
        if wrong == bool(lacking):
            return Verdict(label="YES", judge=self.name)
        wanted = lacking[0] if lacking else draw.choice(self._names)
        missing = self._wording(case.id, self._documents[wanted])
        return Verdict(label="NO", missing=missing, judge=self.name)


def main() -> None:
    """Measure, and write what was found."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument("--only", choices=["a", "b"], help="one part; the other is kept")
    only = parser.parse_args().only
    known = json.loads(RESULTS.read_text(encoding="utf-8")) if RESULTS.exists() else {}
    for part, sets, measure in (("a", MULTI_HOP, measure_kernels), ("b", RGB, measure_answers)):
        if only in (None, part):
            known[part] = {name: measure(data_folder(folder) / folder) for name, folder in sets.items()}
            RESULTS.write_text(json.dumps(known, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def measure_kernels(folder: Path) -> dict[str, Any]:
    """All settings on one data set; random flips with three seeds."""
    data = read_dataset(str(folder))
    corpus = LabelledCorpus(str(folder))
    documents = {document.fqn: document for document in corpus}
    cases = [case for case in labelled_cases(data) if case.id in data.kernels]
    words = wordings(folder, documents)
    pools = {target: [_pool(case, corpus, target) for case in cases] for target in (True, False)}
    rows = []
    for setting in SETTINGS:
        if setting.wording not in words:
            continue
        found: list[FoundKernel] = []
        shares = []
        for seed in SEEDS if setting.flips else SEEDS[:1]:
            judge = KnowingJudge(
                data.kernels,
                documents,
                words[setting.wording],
                flips=setting.flips,
                seed=seed,
                sticky=setting.sticky,
            )
            kernels = [
                find_kernel(pool.case, pool, corpus, judge, votes=setting.votes)
                for pool in pools[setting.target]
            ]
            shares.append(statistics.mean(is_exact(kernel, data.kernels) for kernel in kernels))
            found += kernels
        rows.append(_row(setting, found, shares, data.kernels))
    return {
        "cases": len(cases),
        "paragraphs": len(corpus),
        "sizes": dict(sorted(Counter(len(set(data.kernels[case.id])) for case in cases).items())),
        "rows": rows,
    }


def is_exact(kernel: FoundKernel, truth: Mapping[str, Sequence[str]]) -> bool:
    """Whether a kernel is the set of supporting paragraphs."""
    return set(kernel.kernel.contexts) == set(truth[kernel.case])


def wordings(folder: Path, documents: Mapping[str, Document]) -> dict[str, Wording]:
    """The ways in which the judge says what is missing; sub-questions where the data has them."""
    counts = Counter(word for one in documents.values() for word in set(_words(one.text)))

    def title(_: str, document: Document) -> str:
        return re.sub(r"\(.*?\)", "", document.metadata.get("title", "")).strip() or document.text[:40]

    def common_words(_: str, document: Document) -> str:
        named = set(_words(document.metadata.get("title", "")))
        common = [word for word in _words(document.text) if counts[word] >= 10 and word not in named]
        rarest = sorted(dict.fromkeys(common), key=lambda word: (counts[word], word))[:5]
        return " ".join(sorted(rarest)) or title("", document)

    found: dict[str, Wording] = {"title": title, "common words": common_words}
    asked = _sub_questions(folder)
    if asked:
        found["sub-question"] = lambda case_id, document: asked.get(
            (case_id, document.fqn), title("", document)
        )
    return found


def _pool(case: Case, corpus: LabelledCorpus, target: bool) -> ContextPool:
    """The pool of a case that knows its first supporting paragraph, or none."""
    return build_pool(replace(case, targets=case.targets[:1] if target else ()), corpus)


def _sub_questions(folder: Path) -> dict[tuple[str, str], str]:
    """``{(query, passage): question}`` with answers of earlier steps filled in."""
    positives = {row["_id"]: row["positive"] for row in _lines(folder / "pools.jsonl")}
    found = {}
    for row in _lines(folder / "queries.jsonl"):
        steps = row["metadata"].get("decomposition", [])
        for step, passage in zip(steps, positives[row["_id"]], strict=False):
            question = step["question"].replace(" >> ", " ")
            for number, earlier in enumerate(steps, start=1):
                question = question.replace(f"#{number}", earlier["answer"])
            found[row["_id"], passage] = question
    return found


def _row(
    setting: Setting,
    found: Sequence[FoundKernel],
    shares: Sequence[float],
    truth: Mapping[str, Sequence[str]],
) -> dict[str, Any]:
    exact = sum(is_exact(kernel, truth) for kernel in found)
    calls = sorted(kernel.kernel.calls for kernel in found)
    cases = len(found) // len(shares)
    low, high = wilson(exact / len(found) * cases, cases)
    return {
        "wording": setting.wording,
        "flips": setting.flips,
        "votes": setting.votes,
        "target": setting.target,
        "sticky": setting.sticky,
        "exact": exact / len(found),
        "low": low,
        "high": high,
        "by_seed": list(shares),
        "calls": {
            "mean": statistics.mean(calls),
            "median": statistics.median(calls),
            "p95": calls[round(0.95 * (len(calls) - 1))],
            "most": calls[-1],
        },
        "status": dict(sorted(Counter(kernel.kernel.status for kernel in found).items())),
        "false_alternatives": sum(len(kernel.kernel.alternatives) for kernel in found) / len(found),
        "misses": sorted({kernel.case for kernel in found if not is_exact(kernel, truth)}),
    }


def measure_answers(folder: Path) -> dict[str, Any]:
    """Accuracy on the passages of one RGB file, and its errors by id."""
    texts = {row["_id"]: row["text"] for row in _lines(folder / "corpus.jsonl")}
    pools = {row["_id"]: row for row in _lines(folder / "pools.jsonl")}
    facets = _passages_of_facets(folder)
    right: dict[str, list[bool]] = {"positives": [], "negatives": [], "negatives by facet": [], "sets": []}
    wrong_facts: list[bool] = []
    errors: list[dict[str, Any]] = []
    for row in _lines(folder / "queries.jsonl"):
        pool, known = pools[row["_id"]], row["metadata"]
        whole = _case(row, known["answers"])
        by_facet = known.get("facet_answers") or {"1": known["answers"]}

        def says_yes(case: Case, *ids: str) -> bool:
            return JUDGE.judge(case, [Document(one, texts[one]) for one in ids]).label == "YES"

        right["sets"].append(says_yes(whole, *pool["positive"]))
        for passage in pool["negative"]:
            _note(right["negatives"], errors, whole, passage, not says_yes(whole, passage), "said YES")
        for facet, answers in by_facet.items():
            case = _case(row, answers)
            for passage in facets.get((row["_id"], facet), ()):
                _note(right["positives"], errors, case, passage, says_yes(case, passage), "said NO")
            right["negatives by facet"] += [not says_yes(case, passage) for passage in pool["negative"]]
        wrong_facts += [not says_yes(whole, passage) for passage in pool.get("positive_wrong", ())]
    return {
        "questions": len(pools),
        "accuracy": _share([*right["positives"], *right["negatives"]]),
        "accuracy by facet": _share([*right["positives"], *right["negatives by facet"]]),
        **{kind: _share(answers) for kind, answers in right.items()},
        "wrong facts": _share(wrong_facts) if wrong_facts else None,
        "errors": errors,
    }


def _case(row: dict[str, Any], answers: Iterable[str | Sequence[str]]) -> Case:
    facets = tuple((one,) if isinstance(one, str) else tuple(one) for one in answers)
    return Case(id=row["_id"], question=row["text"], facets=facets)


def _note(
    right: list[bool], errors: list[dict[str, Any]], case: Case, passage: str, is_right: bool, error: str
) -> None:
    right.append(is_right)
    if not is_right:
        wanted = "; ".join(facet[0] for facet in case.facets)
        errors.append({"query": case.id, "passage": passage, "answer": wanted, "error": error})


def _passages_of_facets(folder: Path) -> dict[tuple[str, str], list[str]]:
    found: dict[tuple[str, str], list[str]] = {}
    for line in (folder / "qrels" / "subtopics.txt").read_text().splitlines():
        query, facet, passage, grade = line.split()
        if int(grade) > 0:
            found.setdefault((query, facet), []).append(passage)
    return found


def _share(answers: Sequence[bool]) -> dict[str, Any]:
    low, high = wilson(sum(answers), len(answers))
    share = statistics.mean(answers)
    return {"share": share, "of": len(answers), "count": sum(answers), "low": low, "high": high}


def _words(text: str) -> list[str]:
    return [word.lower() for word in _WORD.findall(text)]


def _lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines() if line.strip()]


def kernel_table(found: Mapping[str, Any]) -> str:
    """Exact kernels and calls, setting by setting."""
    names = list(found["a"])
    rows = {name: {_setting(row): row for row in found["a"][name]["rows"]} for name in names}
    table = []
    for setting in dict.fromkeys(one for by_setting in rows.values() for one in by_setting):
        cells = [setting]
        for name in names:
            row = rows[name].get(setting)
            cells += ["", ""] if row is None else [f"{row['exact']:.1%}", f"{row['calls']['mean']:.1f}"]
        table.append(cells)
    heads = [f"{name}: {what}" for name in names for what in ("exact", "calls")]
    return markdown(["judge", *heads], table)


def answer_table(found: Mapping[str, Any]) -> str:
    """Accuracy of the offline judge by kind of passage."""
    kinds = {
        "accuracy": "accuracy",
        "positives": "positives called YES",
        "negatives": "negatives called NO",
        "sets": "all positives together called YES",
        "wrong facts": "passages with a wrong fact called NO",
    }
    rows = [[shown, *(_shown(data[kind]) for data in found["b"].values())] for kind, shown in kinds.items()]
    return markdown(["", *found["b"]], rows)


def _setting(row: Mapping[str, Any]) -> str:
    votes = ", asked once" if row["votes"] == 1 else ""
    sticky = ", the same errors each time" if row["sticky"] else ""
    target = "" if row["target"] else ", no target"
    return f"{row['wording']}{votes}{sticky}{target}, {row['flips']:.0%} wrong"


def _shown(value: Mapping[str, Any] | None) -> str:
    if value is None:
        return ""
    return f"{value['share']:.1%} of {value['of']:,} ({value['low']:.1%} to {value['high']:.1%})"


if __name__ == "__main__":
    main()
