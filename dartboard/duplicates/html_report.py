"""The report as one self-contained HTML page: no script, nothing fetched, every text escaped."""

from collections.abc import Sequence
from html import escape
from typing import Any

from dartboard.duplicates.report import DuplicateReport, Group
from dartboard.plain_text import clean, counted, plain_text

KINDS = {
    "exact": "exact copies",
    "text": "nearly the same words",
    "vectors": "nearly the same by their vectors",
}
_TAGS = {"same": "span", "removed": "del", "added": "ins"}
_CSS = """
:root { --page:#fff; --ink:#1c2024; --soft:#60646c; --line:#e3e5e8; --card:#f7f8f9; --gone:#a83a00;
  --new:#00714f; color-scheme: light dark }
@media (prefers-color-scheme: dark) { :root { --page:#16181b; --ink:#eceef0; --soft:#9ba1a6; --line:#2f3337;
  --card:#1d2024; --gone:#ff9a66; --new:#4cc38a } }
* { box-sizing: border-box }
body { margin:0; background:var(--page); color:var(--ink); font:15px/1.5 system-ui, sans-serif;
  overflow-wrap:anywhere }
main { max-width:900px; margin:0 auto; padding:28px 20px 60px }
h1 { font-size:25px; margin:0 0 8px } h2 { font-size:18px; margin:32px 0 6px }
h3 { font-size:15px; margin:0 0 6px }
p { margin:4px 0 } .lead { font-size:18px } .soft { color:var(--soft) }
table { border-collapse:collapse; width:100% }
th, td { text-align:left; padding:4px 8px 4px 0; border-bottom:1px solid var(--line) }
article { background:var(--card); border:1px solid var(--line); border-radius:8px; padding:12px 14px;
  margin-top:12px }
article p { white-space:pre-wrap } article p + p.soft { margin-top:10px }
del { color:var(--gone) } ins { color:var(--new); text-decoration:none; font-weight:600 }
"""


def as_page(report: DuplicateReport) -> str:
    """The page."""
    facts = "".join(f"<p>{escape(said)}</p>" for said in report.counts())
    causes = "".join(_table(name, pairs) for name, pairs in report.causes.items() if pairs)
    shown = [group for group in report.groups if group.examples]
    groups = "".join(map(_group, shown)) or "<p>There are none.</p>"
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8"><title>Duplicates</title>'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<style>{_CSS}</style></head><body><main><h1>Duplicates</h1>"
        f'<p class="lead">{escape(report.answer())}</p>{facts}{causes}'
        f"<h2>The largest of {counted(len(report.groups), 'group')}</h2>{groups}</main></body></html>"
    )


def _table(name: str, pairs: Sequence[tuple[str, str, int]]) -> str:
    rows = "".join(
        f"<tr><td>{escape(one)}</td><td>{escape(other)}</td><td>{count:,}</td></tr>"
        for one, other, count in pairs
    )
    field = escape(clean(name))
    head = f"<tr><th>{field}</th><th>{field}</th><th>groups</th></tr>"
    return f"<h2>Which {field} they come from</h2><table>{head}{rows}</table>"


def _group(group: Group) -> str:
    parts = [f"<h3>{len(group.ids):,} chunks, {KINDS[group.kind]}</h3>"]
    for example in group.examples:
        parts.append(f'<p class="soft">{escape(clean(example["place"]))}</p>')
        parts.append(f"<p>{_words(example)}</p>")
    if len(group.ids) > len(group.examples):
        parts.append(f'<p class="soft">and {len(group.ids) - len(group.examples):,} more</p>')
    return f"<article>{''.join(parts)}</article>"


def _words(example: Any) -> str:
    if "diff" not in example:
        return escape(plain_text(example["text"]))
    if all(kind == "same" for kind, _ in example["diff"]):
        return '<span class="soft">the same words</span>'
    return " ".join(
        f"<{_TAGS[kind]}>{escape(plain_text(words))}</{_TAGS[kind]}>" for kind, words in example["diff"]
    )
