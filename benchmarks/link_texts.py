"""How well chunks are found by the words that writers chose for a link to their section.

    python benchmarks/link_texts.py OUT.json DOCS… [--files N] [--against OTHER.json]

``:ref:`how to log a user in <label>``` with three words or more is a question; the section below
``.. _label:`` answers it. The lines of labels are blanked first, because their words resemble the links. All
chunks of a documentation are ranked by cosine; the score is the mean reciprocal rank of the first chunk that
holds a line of the section. ``--against`` compares with the file of another run, such as that of an earlier
release, link by link with paired 95 % intervals. ``--files`` takes the files with most answers only.
"""

import argparse
import json
import re
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parent.parent))  # run as a script, this file finds its neighbours

from dartboard.embeddings import default_model
from dartboard.engine.chunk_writer import split
from dartboard.ingest import ChunkingConfig, Problem, read_path

LINK = re.compile(r":ref:`([^`<]+?)\s*<([^`>]+)>`", re.DOTALL)
LABEL = re.compile(r"\.\. _`?([^:`]+)`?:\s*$")
UNDERLINE = re.compile(r"([=\-~^\"'#*+.:])\1{2,}\s*$")
FEWEST_WORDS = 3
DRAWS = 10_000


@dataclass(frozen=True)
class Section:
    """The lines of a section in a file, from 1."""

    source: str
    first: int
    last: int


def sections(source: str, lines: list[str]) -> Iterator[tuple[str, Section]]:
    """Every label with the section below it, up to the next title of its level or a higher one."""
    titles = [
        (at, lines[at + 1][0])
        for at in range(len(lines) - 1)
        if UNDERLINE.match(lines[at + 1]) and lines[at].strip() and not UNDERLINE.match(lines[at])
    ]
    styles = list(dict.fromkeys(style for _, style in titles))
    levels = [styles.index(style) for _, style in titles]
    for at, line in enumerate(lines):
        if not (label := LABEL.match(line)):
            continue
        number = next((n for n, (title, _) in enumerate(titles) if title > at), None)
        if number is None or any(
            text.strip() and not LABEL.match(text) and not UNDERLINE.match(text)
            for text in lines[at + 1 : titles[number][0]]
        ):
            continue
        later = (titles[n][0] for n in range(number + 1, len(titles)) if levels[n] <= levels[number])
        yield label[1].lower(), Section(source, titles[number][0] + 1, next(later, len(lines)))


def read(folder: Path, place: Path, most: int | None) -> dict[str, tuple[str, Section]]:
    """Copy the files to ``place`` with blanked labels; returns question and section of every link."""
    files = [path for path in sorted(folder.rglob("*")) if path.suffix in (".rst", ".txt")]
    texts = {path.relative_to(folder).as_posix(): path.read_text(encoding="utf-8") for path in files}
    found = {label: one for name, text in texts.items() for label, one in sections(name, text.split("\n"))}
    links = {}
    for text in texts.values():
        for words, label in LINK.findall(text):
            question = " ".join(words.split())
            if label.lower() in found and len(question.split()) >= FEWEST_WORDS:
                links[f"{question} <{label.lower()}>"] = (question, found[label.lower()])
    answers = Counter(section.source for _, section in links.values())
    kept = {name for name, _ in answers.most_common(most)} if most else set(texts)
    for name in kept:
        path = place / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("\n".join("" if LABEL.match(line) else line for line in texts[name].split("\n")))
    return {link: (question, one) for link, (question, one) in links.items() if one.source in kept}


def reciprocal_ranks(folder: Path, most: int | None) -> dict[str, float]:
    """By link, 1 / rank of the first chunk of its section; 0 if no chunk holds a line of it."""
    model = default_model()
    with tempfile.TemporaryDirectory() as place:
        links = read(folder, Path(place), most)
        documents = [one for one in read_path(place) if not isinstance(one, Problem)]
        pieces = [piece for one in documents for piece in split(one, ChunkingConfig(), model)]
    print(f"{folder}: {len(links)} links, {len(documents)} files, {len(pieces)} chunks", flush=True)
    vectors = model.encode_documents([piece.text for piece in pieces])
    asked = model.encode_queries([question for question, _ in links.values()])
    where = [(p.metadata["source"], p.metadata["start_line"], p.metadata["end_line"]) for p in pieces]
    ranks = {}
    for (link, (_, section)), query in zip(links.items(), asked, strict=True):
        order = np.argsort(-(vectors @ query), kind="stable")
        hits = (
            rank
            for rank, at in enumerate(order, start=1)
            if where[at][0] == section.source
            and where[at][1] <= section.last
            and where[at][2] >= section.first
        )
        ranks[link] = 1 / first if (first := next(hits, 0)) else 0.0
    return ranks


def compared(here: dict[str, float], there: dict[str, float]) -> str:
    """The mean difference over the links that both have, with its paired 95 % interval."""
    links = sorted(here.keys() & there.keys())
    gains = np.array([here[link] - there[link] for link in links])
    draws = np.random.default_rng(0).choice(gains, (DRAWS, len(gains))).mean(axis=1)
    low, high = np.quantile(draws, [0.025, 0.975])
    return f"{gains.mean():+.3f} ({low:+.3f} to {high:+.3f}) on {len(links)} links"


def main() -> None:
    """Measure each folder, write the ranks, and compare."""
    shape = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=shape)
    parser.add_argument("out", type=Path)
    parser.add_argument("docs", nargs="+", type=Path)
    parser.add_argument("--files", type=int)
    parser.add_argument("--against", type=Path)
    options = parser.parse_args()
    results = {str(folder): reciprocal_ranks(folder, options.files) for folder in options.docs}
    options.out.write_text(json.dumps(results, indent=1, ensure_ascii=False))
    others = json.loads(options.against.read_text()) if options.against else {}
    for name, ranks in results.items():
        print(f"{name}: MRR {np.mean(list(ranks.values())):.3f}", end="")
        print(f", {compared(ranks, others[name])} against {options.against}" if name in others else "")


if __name__ == "__main__":
    main()
