"""Make a held-out set from the documentation of several releases of one package: redundancy by people.

    pip download --no-deps --no-binary :all: --dest SOURCES flask==1.1.4   # and other releases
    python benchmarks/held_out.py SOURCES/flask-*.tar.gz --out FOLDER/flask_versions

Every section of every reStructuredText page is a passage. A query is the title of a section that several
releases have on the same page; its only facet is that section, in any release. The layout is BEIR's, as
``benchmarks/natural.py`` reads it, which writes benchmarks/results/held_out.json. The rule for σ was fixed
before any such set was made.
"""

import argparse
import json
import re
import tarfile
from collections import defaultdict
from collections.abc import Iterator
from itertools import zip_longest
from pathlib import Path, PurePosixPath

_TITLE = re.compile(r"^(\S[^\n]*)\n([=\-~^\"'#*+`:._])\2{2,}[ \t]*$", re.MULTILINE)
_VERSION = re.compile(r"-(\d[\w.]*)\.tar\.gz$")
_SHORTEST, _LONGEST = 100, 4000  # characters of a passage
_SKIPPED = ("changes", "changelog", "license", "index", "contents")


def sections(page: str) -> Iterator[tuple[str, str]]:
    """The title and the text of each section."""
    found = list(_TITLE.finditer(page))
    for one, following in zip_longest(found, found[1:]):
        end = len(page) if following is None else following.start()
        text = page[one.end() : end].strip()
        # A line of signs above the next title belongs to that one.
        yield one.group(1).strip().strip("`"), re.sub(r"\n[=\-~^\"'#*+]{3,}$", "", text)[:_LONGEST]


def pages(archive: Path) -> Iterator[tuple[str, str]]:
    """The name and the text of each page of documentation in a source archive."""
    with tarfile.open(archive) as members:
        for member in members:
            path = PurePosixPath(member.name)
            documented = any(part in ("doc", "docs") for part in path.parts)
            if not documented or path.suffix != ".rst" or path.stem.startswith(_SKIPPED):
                continue
            opened = members.extractfile(member)
            if opened is not None:
                yield "/".join(path.with_suffix("").parts[2:]), opened.read().decode("utf-8", "replace")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("archives", nargs="+", type=Path, help="source archives NAME-VERSION.tar.gz")
    parser.add_argument("--out", type=Path, required=True)
    options = parser.parse_args()
    rows, by_section = [], defaultdict(dict)
    for archive in sorted(options.archives):
        known = _VERSION.search(archive.name)
        if known is None:
            parser.error(f"{archive.name} is not named NAME-VERSION.tar.gz")
        version = known.group(1)
        for page, text in pages(archive):
            for number, (section, passage) in enumerate(sections(text)):
                if len(passage) < _SHORTEST or version in by_section[page, section]:
                    continue
                place = {"version": version, "page": page, "section": section}
                id = f"{version}/{page}#{number}"
                by_section[page, section][version] = id
                rows.append({"_id": id, "title": section, "text": passage, "metadata": place})
    asked = [(place, list(ids.values())) for place, ids in by_section.items() if len(ids) > 1]
    (options.out / "qrels").mkdir(parents=True, exist_ok=True)
    with (options.out / "corpus.jsonl").open("w", encoding="utf-8") as file:
        file.writelines(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
    queries = [(f"s{i:04}", place, ids) for i, (place, ids) in enumerate(asked)]
    with (options.out / "queries.jsonl").open("w", encoding="utf-8") as file:
        for name, (page, section), _ in queries:
            text = f"{PurePosixPath(page).name}: {section}"
            file.write(json.dumps({"_id": name, "text": text, "metadata": {}}, ensure_ascii=False) + "\n")
    qrels = ["query-id\tcorpus-id\tscore\n"]
    qrels += [f"{name}\t{id}\t1\n" for name, _, ids in queries for id in ids]
    (options.out / "qrels" / "test.tsv").write_text("".join(qrels), encoding="utf-8")
    facets = [f"{name} 0 {id} 1\n" for name, _, ids in queries for id in ids]
    (options.out / "qrels" / "subtopics.txt").write_text("".join(facets), encoding="utf-8")
    print(f"{len(rows):,} sections, {len(queries):,} queries in {options.out}")


if __name__ == "__main__":
    main()
