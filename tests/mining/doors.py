"""A house as a benchmark: one note a door, questions about codes, one that needs two notes."""

from pathlib import Path

from dartboard.mining.candidates import extract
from dartboard.mining.cases import Case
from dartboard.mining.context_pool import PoolSettings
from dartboard.mining.corpora.base import Document
from dartboard.mining.corpora.memory_corpus import MemoryCorpus
from tests.models import WordBag

SMALL = PoolSettings(random_negatives=1, hard_negatives=1, neighbours=1)
FEW = ["--random", "1", "--hard", "1", "--neighbours", "1"]


def code(door):
    return f"{door * 7919 % 9973:04d}"


def note(door):
    return f"A note on doors.\nThe code of door {door} is {code(door)}.\nKeep it secret, number {door}."


def house(doors=8):
    documents = [Document(f"door-{door}.md", note(door)) for door in range(1, doors + 1)]
    return MemoryCorpus("house", documents, model=WordBag())


def cases(doors=4):
    single = [
        Case(
            id=f"door:{door}",
            question=f"What is the code of door {door}?",
            targets=(f"door-{door}.md",),
            answers=(code(door),),
        )
        for door in range(1, doors + 1)
    ]
    both = Case(
        id="both",
        question="Which codes open the two doors of the cellar, 5 and 6?",
        targets=("door-5.md", "door-6.md"),
        facets=((code(5),), (code(6),)),
    )
    return [*single, both]


def raw(folder, listed=None, corpus=None):
    return extract(listed or cases(), corpus or house(), Path(folder) / "raw.jsonl", settings=SMALL)


def write_house(folder, doors=6, questions=4):
    """A registry and a folder of notes; the registry's path and the corpus as a command line names it."""
    notes = Path(folder) / "notes"
    notes.mkdir(parents=True)
    for door in range(1, doors + 1):
        (notes / f"door-{door}.md").write_text(note(door))
    lines = ["cases:"]
    for case in cases(questions)[:questions]:
        lines += [f'  - id: "{case.id}"', f'    question: "{case.question}"']
        lines += [f'    target: "{case.targets[0]}"', f'    answer: "{case.answers[0]}"']
    registry = Path(folder) / "registry.yaml"
    registry.write_text("\n".join(lines) + "\n")
    return registry, f"folder:{notes}"


def into(folder):
    """Where a command writes its data set."""
    return ["--out", str(folder / "m")]
