"""Pieces: nothing lost, nothing too long, in order; each kind split where it should be."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dartboard.errors import ConfigError
from dartboard.ingest import Block, ChunkingConfig, Document, chunk, estimate_tokens
from dartboard.ingest.chunker import title_of
from dartboard.ingest.sentences import sentences
from tests.examples import examples
from tests.ingest.files import pdf_of, read_one, text_document

METHODS = ["auto", "tokens", "sentences"]
BITS = [
    *(
        "Word ",
        "and ",
        "two. ",
        "three! ",
        "\n",
        "\n\n",
        "# Head\n",
        "## Sub\n",
        "```\n",
        "def f(x):\n",
        "e.g. ",
    ),
    *("    return 1\n", "class A:\n", "    def m(self):\n", "- item\n", "x" * 90, "東京都。", "   "),
]
PROSE = st.lists(st.sampled_from(BITS), max_size=60).map("".join)


def covered(document, pieces):
    seen = [character.isspace() or character in "=~^+|-" for character in document.text]
    for label in (block for block in document.blocks if block.kind == "label"):
        seen[label.start : label.end] = [True] * (label.end - label.start)
    for piece in pieces:
        start, end = piece.metadata["start"], piece.metadata["end"]
        assert piece.text.endswith(document.text[start:end])
        seen[start:end] = [True] * (end - start)
    return all(seen)


@examples(300)
@given(
    PROSE,
    st.sampled_from(["a.txt", "a.md", "a.rst", "a.py", "a.js", "a.html"]),
    st.sampled_from(METHODS),
    st.integers(1, 40),
    st.integers(0, 39),
    st.integers(0, 30),
    st.sampled_from([estimate_tokens, len, lambda text: len(text.split())]),
)
def test_properties(text, source, method, size, overlap, smallest, count):
    document = read_one(text or "x", source)
    if not isinstance(document, Document):
        return
    config = ChunkingConfig(method=method, size=size, overlap=overlap % size, smallest=smallest)
    pieces = chunk(document, config, count_tokens=count)
    assert covered(document, pieces)
    assert [piece.metadata["position"] for piece in pieces] == list(range(len(pieces)))
    starts = [piece.metadata["start"] for piece in pieces]
    assert starts == sorted(starts)
    ends = [piece.metadata["end"] for piece in pieces]
    assert ends == sorted(ends)
    assert len({piece.id for piece in pieces}) == len(pieces)
    for piece in pieces:
        assert piece.text.strip()
        assert count(piece.text) <= size
    assert pieces == chunk(document, config, count_tokens=count)


def test_tokens_with_overlap():
    text = " ".join(f"w{n}" for n in range(20))
    pieces = chunk(text_document(text), ChunkingConfig(method="tokens", size=8, overlap=3))
    words = [piece.text.split() for piece in pieces]
    assert words[0] == [f"w{n}" for n in range(8)]
    assert words[1] == [f"w{n}" for n in range(5, 13)]
    assert words[-1][-1] == "w19"


def test_sentences_stay_whole():
    text = "One two three. Four five six. Seven eight nine ten eleven twelve thirteen. Last."
    pieces = chunk(text_document(text), ChunkingConfig(method="sentences", size=8, overlap=0))
    assert [piece.text for piece in pieces] == [
        "One two three. Four five six.",
        "Seven eight nine ten eleven twelve thirteen.",
        "Last.",
    ]
    overlapping = chunk(text_document(text), ChunkingConfig(method="sentences", size=8, overlap=4))
    assert [piece.text for piece in overlapping][:2] == [
        "One two three. Four five six.",
        "Seven eight nine ten eleven twelve thirteen.",
    ]
    long = chunk(text_document(text), ChunkingConfig(method="sentences", size=5, overlap=0))
    assert [piece.text for piece in long] == [
        "One two three.",
        "Four five six. Seven",
        "eight nine ten eleven twelve",
        "thirteen. Last.",
    ]


@pytest.mark.parametrize(
    "text, expected",
    [
        ("A b. C d! E f? G", ["A b.", "C d!", "E f?", "G"]),
        ("See Dr. Smith, e.g. today. Then go.", ["See Dr. Smith, e.g. today.", "Then go."]),
        ("Use J. Doe et al. 2020 or v1.2 now. Yes.", ["Use J. Doe et al. 2020 or v1.2 now.", "Yes."]),
        ('He said "Go." Then left.', ['He said "Go."', "Then left."]),
        ("No end\n\nnew paragraph\n- one\n- two", ["No end", "new paragraph", "- one", "- two"]),
        ("東京。大阪！次", ["東京。", "大阪！", "次"]),
        ("wrapped\nline. next", ["wrapped\nline. next"]),
        ("  \n ", []),
    ],
)
def test_sentence_ends(text, expected):
    assert [text[start:end] for start, end in sentences(text)] == expected


GUIDE = """Preface.

# Guide

Some words to begin with, enough of them to stand alone as one piece.

## Install

### Linux

Use the package manager of the system, which is the best way of all.

### Mac

Use the other one, which works as well as the first on most days.

## Tiny

Few.

## Run

```sh
run --fast

run --slow
```

Then wait. And wait again until it has ended, which may take a while longer than you think it should.
"""


def test_markdown_sections():
    document = read_one(GUIDE, "guide.md")
    pieces = chunk(document, ChunkingConfig(size=40, overlap=0, smallest=12))
    assert [(piece.metadata["section"], piece.text.split("\n")[0]) for piece in pieces] == [
        ("Guide", "Preface."),
        ("Guide > Install > Linux", "## Install"),
        ("Guide > Install > Mac; Tiny", "### Mac"),
        ("Guide > Run", "## Run"),
        ("Guide > Run", pieces[4].text),
    ]
    assert [piece.metadata["start_line"] for piece in pieces] == [1, 7, 13, 21, 29]
    assert pieces[2].text.endswith("## Tiny\n\nFew.")  # its other neighbour is too long already
    whole = chunk(document, ChunkingConfig(size=400))
    assert len(whole) == 1


@pytest.mark.parametrize(
    ("name", "text", "method", "section"),
    [
        ("g.md", "# Keys\n\nRotate.\n\n## Emergency\n\nCall.\n\n# Limits\n\n429.\n", "auto", "Keys; Limits"),
        ("g.md", "# Keys\n\nRotate.\n\n# Limits\n\n429.\n", "sentences", "Keys; Limits"),
        ("g.md", "Before.\n\n# Keys\n\nRotate.\n", "auto", "Keys"),
        (
            "m.py",
            "import os\n\ndef alpha():\n    pass\n\nclass Beta:\n    x = 2\n",
            "auto",
            "alpha; Beta",
        ),
        ("m.py", "def alpha():\n    return 1\n\nclass Beta:\n    x = 2\n", "sentences", "alpha; Beta"),
    ],
)
def test_a_piece_of_several_sections_names_them_all(name, text, method, section):
    (piece,) = chunk(read_one(text, name), ChunkingConfig(method=method))
    assert piece.metadata["section"] == section


def test_titles_of_several_sections():
    assert title_of([("A", "B"), ("A", "C")]) == "A > B; C"
    assert title_of([("A",), ("A", "C")]) == "A > C"
    assert title_of([("A", "B", "D"), ("A", "C"), ("A", "C")]) == "A > B > D; C"
    assert title_of([(), ("A",), ("B",)]) == "A; B"
    assert title_of([()]) == title_of([]) == ""


def test_fences_stay_whole_in_long_sections():
    text = "# A\n\n" + "Words and more words here. " * 6 + "\n\n```\na\n\nb. c\n```\n\n" + "Even more. " * 9
    pieces = chunk(read_one(text, "a.md"), ChunkingConfig(size=24, overlap=0))
    assert sum("```\na\n\nb. c\n```" in piece.text for piece in pieces) == 1


WORDS = " ".join(f"word{n}" for n in range(12))


@pytest.mark.parametrize(
    "name, text, head",
    [
        ("a.md", "# Guide\n\n## Install\n\n{}", "# Guide\n\n## Install\n\nword0"),
        ("a.md", "Guide\n=====\n\n## Install\n\n{}", "Guide\n=====\n\n## Install\n\nword0"),
        ("a.rst", "Guide\n=====\n\nInstall\n-------\n\n{}", "Guide\n=====\n\nInstall\n-------\n\nword0"),
        ("a.html", "<h1>Guide</h1><h2>Install</h2><p>{}</p>", "# Guide\n\n## Install\n\nword0"),
    ],
)
def test_a_heading_without_text_joins_what_follows(name, text, head):
    """Also where both are more than fits, and where the text before is closer in size."""
    before = "" if name.endswith("html") else f"{WORDS}.\n\n"
    document = read_one(before + text.format(f"{WORDS}. " * 8), name)
    pieces = chunk(document, ChunkingConfig(size=40, overlap=0, smallest=16))
    first = next(piece for piece in pieces if "Install" in piece.text)
    assert first.text.startswith(head)
    assert first.metadata["section"] == "Guide > Install"
    assert sum("Guide" in piece.text for piece in pieces) == 1


def test_a_heading_stays_with_a_block_that_barely_fits_alone():
    code = "\n".join(f"run step{n}" for n in range(12))
    for smallest in (0, 8):
        text = f"# Guide\n\n## Install\n\n```\n{code}\n```\n\n{WORDS}."
        pieces = chunk(read_one(text, "a.md"), ChunkingConfig(size=38, overlap=0, smallest=smallest))
        assert pieces[0].text.startswith("# Guide\n\n## Install\n\n```\nrun step0")
        assert max(estimate_tokens(piece.text) for piece in pieces) <= 38


def test_a_heading_at_the_end_is_not_lost():
    pieces = chunk(read_one(f"# A\n\n{WORDS}.\n\n# B\n\n## C\n", "a.md"), ChunkingConfig(size=40, smallest=0))
    assert [piece.text for piece in pieces] == [f"# A\n\n{WORDS}.", "# B\n\n## C"]


def test_literal_blocks_of_rst_stay_whole():
    text = (
        "Guide\n=====\n\nFirst we say something. Run this::\n\n   a = 1. \n\n   b. c\n\n"
        "Then words. More words.\n\n"
        ".. code-block:: sh\n   :linenos:\n\n   one. two\n\n   three\n"
    )
    pieces = chunk(read_one(text, "a.rst"), ChunkingConfig(size=24, overlap=0, smallest=0))
    assert len(pieces) > 1
    assert sum("a = 1. \n\n   b. c" in piece.text for piece in pieces) == 1
    assert sum("one. two\n\n   three" in piece.text for piece in pieces) == 1


GLOSSARY = (
    "Guide\n=====\n\n" + "Words of the guide say so. " * 12 + "\n\n.. image:: a.png\n\n----\n\n"
    ".. _daemon-mode:\n.. setting:: DAEMON\n\nDaemon mode\n-----------\n\n" + "It runs alone. " * 12 + "\n\n"
    ".. note::\n\n   Stop it first, and wait until it has ended, as it may take a while.\n\n"
    ".. code-block:: sh\n\n   run --daemon\n\n"
    + "Then it runs on. " * 8
    + "\n\n.. _link: https://example.org/a\n"
)


@pytest.mark.parametrize("size", [32, 40, 64])
def test_labels_stay_with_what_they_announce(size):
    """No piece holds labels alone, and none ends with one that belongs to what follows."""
    pieces = chunk(read_one(GLOSSARY, "a.rst"), ChunkingConfig(size=size, overlap=4, smallest=8))
    for piece in pieces:
        last = piece.text.rstrip().split("\n")[-1].strip()
        assert not last.endswith("::") and "daemon-mode" not in last and "DAEMON" not in last
        assert any(word in piece.text for word in ("say so", "alone", "Stop", "--daemon", "runs on"))
    (titled,) = [piece for piece in pieces if "Daemon mode\n" in piece.text]
    assert ".. _daemon-mode:" in titled.text and titled.metadata["section"] == "Guide > Daemon mode"


def test_labels_alone_are_no_piece():
    links = "".join(f".. _name{n}: https://example.org/{n}\n" for n in range(40))
    document = read_one(f"Keys\n====\n\nThey are rotated.\n\nLogs\n====\n\nKept a week.\n\n{links}", "a.rst")
    pieces = chunk(document, ChunkingConfig(size=30, overlap=5, smallest=4), count_tokens=estimate_tokens)
    assert all("rotated" in piece.text or "week" in piece.text for piece in pieces)
    assert [piece.metadata["position"] for piece in pieces] == list(range(len(pieces)))
    only = read_one(links, "a.rst")
    assert chunk(only), "a file of labels alone is not lost"


def test_parts_of_a_table_repeat_its_head():
    rows = "\n".join(f"| {400 + at} | `code_{at}` | what went wrong and what to do |" for at in range(20))
    text = f"# Errors\n\nThey are listed.\n\n| status | code | meaning |\n|---|---|---|\n{rows}\n"
    pieces = chunk(read_one(text, "a.md"), ChunkingConfig(size=60, overlap=0))
    assert len(pieces) > 3
    for piece in pieces:
        assert "| status | code | meaning |\n|---|---|---|\n| 4" in piece.text
        assert estimate_tokens(piece.text) <= 60 and piece.metadata["section"] == "Errors"


CLASS = "import os\n\n\nclass Store(Base):\n    '''Keeps things.'''\n\n" + "\n".join(
    f"    def method_{n}(self, value):\n        return self.call(value, {n}) + {n}\n" for n in range(6)
)


def test_class_is_split_at_methods_with_its_line():
    document = read_one(CLASS, "store.py")
    pieces = chunk(document, ChunkingConfig(size=48, overlap=0, smallest=8))
    methods = [piece for piece in pieces if " > method_" in piece.metadata["section"]]
    assert [piece.metadata["section"] for piece in methods] == [f"Store > method_{n}" for n in range(6)]
    for n, piece in enumerate(methods):
        assert piece.text.startswith(f"class Store(Base):\n    def method_{n}(self, value):\n")
        assert piece.metadata["start_line"] == 7 + 3 * n
        assert piece.metadata["end_line"] == 8 + 3 * n
    together = chunk(document, ChunkingConfig(size=400, smallest=4))
    assert [piece.metadata["section"] for piece in together] == ["Store"]
    apart = chunk(document, ChunkingConfig(size=400, smallest=0))
    assert [piece.metadata["section"] for piece in apart] == ["", "Store"]


def test_long_function_repeats_its_head():
    body = "\n".join(f"    step_{n} = prepare(step_{n})" for n in range(30))
    text = f"# note\n@cached\ndef long_one(\n    first,\n    second,\n):\n{body}\n"
    pieces = chunk(read_one(text, "a.py"), ChunkingConfig(size=60, overlap=0))
    assert len(pieces) > 2
    assert pieces[0].text.startswith("# note\n@cached\ndef long_one(")
    for piece in pieces[1:]:
        assert piece.text.startswith("def long_one(\n    first,\n    second,\n):\n    step_")


def test_metadata():
    document = read_one("---\nsource: mine\nlang: en\n---\n# A\n\nwords\n\n# B\n\nwords", "docs/a.md")
    first, second = chunk(document, ChunkingConfig(smallest=0))
    assert first.metadata == {
        "lang": "en",
        "source_": "mine",
        "source": "docs/a.md",
        "position": 0,
        "start": 0,
        "end": 10,
        "start_line": 5,
        "end_line": 7,
        "section": "A",
        "title": "A",
        "kind": "markdown",
        "content_hash": first.metadata["content_hash"],
        "document_hash": document.document_hash,
    }
    assert len(first.metadata["content_hash"]) == 32
    assert first.id == f"docs/a.md#{first.metadata['content_hash'][:16]}"
    assert second.metadata["start_line"] == 9
    json.dumps(second.metadata)


def test_pages():
    document = read_one(pdf_of("One. Two. " * 5, "Three. Four. " * 5, "Five."), "a.pdf")
    pieces = chunk(document, ChunkingConfig(size=15, overlap=0))
    assert (pieces[0].metadata["page"], pieces[-1].metadata["end_page"]) == (1, 3)
    assert any(piece.metadata["page"] != piece.metadata["end_page"] for piece in pieces)
    assert "start_line" not in pieces[0].metadata


def test_ids_survive_insertions():
    def ids(text):
        return [piece.id for piece in chunk(text_document(text), ChunkingConfig(size=6, overlap=0))]

    text = "One two three four five. Six seven eight nine ten. Same old words once more."
    before = ids(text)
    after = ids(f"Some new ones stand here. {text}")
    assert after[1:] == before
    repeated = ids("Same old words once more. " * 3)
    assert repeated[1:] == [f"{repeated[0]}~2", f"{repeated[0]}~3"]


def test_no_sections_and_no_text():
    assert chunk(text_document("  \n ")) == []
    document = text_document("words here", kind="html")
    assert [piece.text for piece in chunk(document, ChunkingConfig())] == ["words here"]
    odd = text_document("ab cd", blocks=(Block(0, 0, "heading", 1, "A"),))
    assert chunk(odd)[0].metadata["section"] == "A"


@pytest.mark.parametrize(
    "knobs, what",
    [
        ({"method": "magic"}, "auto, sentences, tokens"),
        ({"size": 0}, "size must be >= 1"),
        ({"size": 10, "overlap": 10}, r"overlap must be >= 0 and < size \(10\)"),
        ({"overlap": -1}, "overlap must be"),
        ({"smallest": -1}, "smallest must be"),
    ],
)
def test_bad_settings(knobs, what):
    with pytest.raises(ConfigError, match=what):
        ChunkingConfig(**knobs)


def test_json_round_trip():
    config = ChunkingConfig(method="sentences", size=100, overlap=7, smallest=3)
    assert ChunkingConfig.from_json(json.loads(json.dumps(config.to_json()))) == config
    with pytest.raises(ConfigError, match="expected chunking settings"):
        ChunkingConfig.from_json({"siz": 3})


def test_estimate():
    assert estimate_tokens("Hello, world!") == 4
    assert estimate_tokens("internationalisation") == 3
    assert estimate_tokens("東京都 get_id") == 6
    assert estimate_tokens("") == 0


def test_the_parts_of_a_section_are_about_equally_long():
    """One with 300 words in pieces of 256 is no piece of 256 and a remainder."""
    text = "# Limits\n\n" + "\n\n".join(f"Limit {at} of the service is this one." for at in range(37))
    document = read_one(text, "limits.md")
    pieces = chunk(document, ChunkingConfig(overlap=0), count_tokens=lambda part: len(part.split()))
    assert [len(piece.text.split()) for piece in pieces] == [154, 144]
