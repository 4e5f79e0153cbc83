"""Parts (b) and (c): the offline judge where the labels are known, and what it cannot see.

RGB says which passages answer which facet of a question, and which do not. A positive passage is judged with
the answers of its own facet. A negative is judged twice: with the whole question, as mining does, and with
each facet alone, which is harder, since half an answer is a YES.

HotpotQA and MuSiQue need several paragraphs. The judge looks for the answer's letters, so one paragraph can
do for it what takes two to four to know.
"""

import statistics
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from benchmarks.mining_kernels import _lines, is_exact
from dartboard.mining.agreement import wilson
from dartboard.mining.benchmark_registry import labelled_cases
from dartboard.mining.cases import Case
from dartboard.mining.context_pool import PoolSettings, build_pool
from dartboard.mining.controls import Controls, run_controls
from dartboard.mining.corpora.base import Document
from dartboard.mining.corpora.memory_corpus import LabelledCorpus, read_dataset
from dartboard.mining.judges import AnswerJudge
from dartboard.mining.kernels import find_kernel

JUDGE = AnswerJudge()
DENIAL = "Contrary to what is often said, the answer is not {answer}."


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


def measure_blindness(folder: Path) -> dict[str, Any]:
    """What the answer's letters alone make of questions that need several paragraphs."""
    data = read_dataset(str(folder))
    corpus = LabelledCorpus(str(folder))
    cases = [case for case in labelled_cases(data) if case.id in data.kernels]
    complete, partial, strangers, exact, denied = [], [], [], [], []
    unspoken = sum(set(map(str.lower, case.answers)) <= {"yes", "no"} for case in cases)
    for case in cases:
        kernel = _documents(corpus, data.kernels[case.id])
        complete.append(JUDGE.judge(case, kernel).label == "YES")
        partial.append(any(JUDGE.judge(case, rest).label == "YES" for rest in _each_left_out(kernel)))
        outside = [one for one in data.pools[case.id] if one not in data.kernels[case.id]]
        strangers += [JUDGE.judge(case, [one]).label == "YES" for one in _documents(corpus, outside)]
        denial = Document("denial", DENIAL.format(answer=case.answers[0]))
        denied.append(JUDGE.judge(case, [denial]).label == "YES")
        start = replace(case, targets=case.targets[:1])
        found = find_kernel(start, build_pool(start, corpus), corpus, JUDGE, alternatives=0)
        exact.append(is_exact(found, data.kernels))
    pools = [build_pool(case, corpus, PoolSettings(neighbours=0)) for case in cases]
    return {
        "cases": len(cases),
        "yes or no": unspoken,
        "whole kernel": _share(complete),
        "with one left out": _share(partial),
        "strangers": _share(strangers),
        "exact kernels": _share(exact),
        "denied": _share(denied),
        "controls": _controls(run_controls(pools, JUDGE)),
    }


def _controls(controls: Controls) -> dict[str, Any]:
    kinds = {kind: asdict(rate) for kind, rate in controls.by_kind.items()}
    return {
        "by_kind": kinds,
        "false_positive": asdict(controls.false_positive),
        "false_negative": asdict(controls.false_negative),
        "answered_without_context": len(controls.answered_without_context),
        "false_positives_of_others": sum(
            one.kind != "positive" and one.case not in controls.answered_without_context
            for one in controls.errors
        ),
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


def _documents(corpus: LabelledCorpus, names: Iterable[str]) -> list[Document]:
    return [document for name in names if (document := corpus.get(name)) is not None]


def _each_left_out(documents: Sequence[Document]) -> Iterator[list[Document]]:
    return ([one for one in documents if one is not left] for left in documents)


def _share(answers: Sequence[bool]) -> dict[str, Any]:
    low, high = wilson(sum(answers), len(answers))
    share = statistics.mean(answers)
    return {"share": share, "of": len(answers), "count": sum(answers), "low": low, "high": high}
