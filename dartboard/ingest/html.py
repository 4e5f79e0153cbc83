"""HTML: title and main text as Markdown; scripts, navigation and hidden elements are left out.

Headings get ``#``, ``<pre>`` becomes a code fence, rows of tables stand between bars. Left out is also what
documentation tools add: permalink marks of headings and signatures (Sphinx and MkDocs ``¶``, rustdoc ``§``,
Docusaurus ``#``), lists of pages, links to sources, and line numbers.

lxml parses: its time grows with the page's length whatever the page holds (``html.parser`` takes the square
of it for ``<a <a <a``), and python-docx needs it anyway.
"""

import re
from itertools import islice
from typing import Any

from dartboard.deadline import check
from dartboard.errors import IngestError, MissingExtraError
from dartboard.ingest.documents import (
    MAX_CHARACTERS,
    MAX_TITLE,
    ReadError,
    Reading,
    TextBuilder,
    TooLargeError,
)
from dartboard.ingest.text import clean, one_line, tidy

MAX_TAGS = 500_000
"""Tags and comments of a page; each takes up to 300 bytes when parsed."""
MAX_ATTRIBUTES = 20_000
"""Attributes of a tag: lxml compares each with all others of its tag."""
_TAG = re.compile(r"""<[a-zA-Z](?:[^"'>]++|"[^"]*+"?|'[^']*+'?)*+""")
_VALUE = re.compile(r""""[^"]*"|'[^']*'""")
_CHARSET = re.compile(rb"""<meta[^>]{0,200}?charset\s*=\s*["']?\s*([A-Za-z0-9_:.-]+)""", re.IGNORECASE)
_LEFT_OUT = {
    *("script", "style", "noscript", "template", "nav", "footer", "aside", "button", "select", "textarea"),
    *("iframe", "object", "svg", "canvas", "head"),
}
_BLOCKS = {
    *("address", "article", "blockquote", "body", "caption", "dd", "details", "div", "dl", "fieldset"),
    *("form", "figcaption", "figure", "header", "hr", "html", "main", "ol", "section", "summary", "table"),
    "ul",
}
_HEADING = re.compile(r"h([1-6])$")
_BREAKS_TABLES = {"table", "pre", "h1", "h2", "h3", "h4", "h5", "h6", "main", "article"}
"""A table that contains one of these arranges a page; its cells are no data."""
_EXPONENT = re.compile(r"[-+−]?(?:\d{1,3}|[a-zA-Z])$")
_LANGUAGE = re.compile(r"(?:^|\s)(?:language-|highlight-|lang-|brush: ?)([\w+#.-]{1,30})")
_NO_LANGUAGES = {"default", "none", "notranslate", "source", "text"}
_NAVIGATION = {
    *("related", "sphinxsidebar", "toctree-wrapper", "rst-footer-buttons", "wy-breadcrumbs", "breadcrumbs"),
    *("indextable", "genindextable", "genindex-jumpbox", "modindex-jumpbox"),
    *("headerlink", "viewcode-link", "linenos", "lineno"),
}
"""Classes that Sphinx and its themes use for elements that are not text."""
_PERMALINKS = {"", "¶", "§", "#", "🔗"}
"""Texts of permalinks."""
_LARGEST_PERMALINK = 8
_LONGEST_CLASSES = 10_000
_LINE_BREAK = "\x00"
_ROLES = {"navigation", "search", "banner", "contentinfo", "directory", "doc-toc"}


def declared_charset(data: bytes) -> str | None:
    """The encoding from a page's head."""
    found = _CHARSET.search(data[:4096])
    return found[1].decode("ascii") if found else None


def read_html(markup: str, max_characters: int = MAX_CHARACTERS) -> Reading:
    """Text, blocks and title of a page."""
    try:
        from lxml import etree, html
    except ImportError as error:
        raise MissingExtraError("lxml", "docs", "reading HTML") from error
    if markup.count("<") > 2 * MAX_TAGS:
        raise TooLargeError(f"holds more than {2 * MAX_TAGS:,} tags: split the page")
    for tag in _TAG.finditer(markup):
        if tag.end() - tag.start() > MAX_ATTRIBUTES and len(_VALUE.sub("", tag[0]).split()) > MAX_ATTRIBUTES:
            raise TooLargeError(f"holds a tag of more than {MAX_ATTRIBUTES:,} attributes")
    parser = html.HTMLParser(encoding="utf-8", huge_tree=True)
    try:
        page = html.document_fromstring(markup.encode(), parser=parser)
    except etree.ParserError:  # comments alone
        return Reading("")
    except etree.LxmlError as error:
        raise IngestError(f"the page cannot be read: {error}") from error
    if any(entry.type_name == "ERR_RESOURCE_LIMIT" for entry in parser.error_log):
        raise ReadError("its tags are nested too deep to be read", "size")
    try:
        title = page.find(".//title")
        found = one_line(title.text_content()[:MAX_TITLE]) if title is not None else ""
        return _Flow(_main(page), max_characters).read().finish(found)
    except RecursionError as error:
        raise IngestError("the page cannot be read: it is nested too deep") from error


def _main(page: Any) -> Any:
    """The page's main element if it has one, otherwise its body."""
    for path in (".//main", ".//*[@role='main']", ".//article"):
        parts = page.findall(path)
        if len(parts) == 1 and any(text.strip() for text in parts[0].itertext()):
            return parts[0]
    body = page.find("body")
    return page if body is None else body


class _Flow:
    """Walks a page in reading order."""

    def __init__(self, root: Any, most: int) -> None:
        self._root = root
        self._builder = TextBuilder(most)
        self._inline: list[str] = []
        self._rows: list[str] = []  # lines of the current paragraph or list
        self._joined = False  # the next paragraph goes on with the line of its list item or term
        self._lists = 0  # how many list items and definitions are open
        self._raw: list[str] | None = None  # the text of a <pre>
        self._table: list[list[str]] | None = None  # rows of a table of data
        self._has_head = False
        self._layout = _layout_tables(root)

    def read(self) -> TextBuilder:
        """The text of everything below the root."""
        from lxml import etree

        walk = etree.iterwalk(self._root, events=("start", "end", "comment", "pi"))
        for event, node in walk:
            check()
            if event == "start":
                if self._enter(node):
                    self._add(node.text)
                else:
                    walk.skip_subtree()
                continue
            if event == "end" and not self._is_left_out(node):
                self._leave(node)
            if node is not self._root:
                self._add(node.tail)
        self._end_block()
        return self._builder

    def _add(self, text: str | None) -> None:
        if text:
            (self._inline if self._raw is None else self._raw).append(text)

    def _is_left_out(self, tag: Any) -> bool:
        return tag.tag in _LEFT_OUT or _is_hidden(tag) or _is_navigation(tag)

    def _enter(self, tag: Any) -> bool:
        """Whether to visit the children."""
        if self._is_left_out(tag):
            return False
        name = tag.tag
        if name == "br":
            self._add("\n" if self._raw is not None else _LINE_BREAK)
        elif name == "img":
            self._add(f" {tag.get('alt')} " if tag.get("alt") else None)
        elif name in ("sup", "sub") and _EXPONENT.match("".join(islice(tag.itertext(), 2)).strip()):
            self._add("^" if name == "sup" else "_")
        elif self._raw is not None:
            return True
        elif self._table is not None:
            self._enter_table(name)
        elif _HEADING.match(name):
            self._end_block()
        elif name == "pre":
            self._end_block()
            self._raw = []
        elif name == "table" and tag not in self._layout:
            self._end_block()
            self._table, self._has_head = [], False
        elif name in ("li", "dt", "dd"):
            self._end_row()
            self._joined = True
            self._lists += 1
            if name == "li":
                self._inline.append("- ")
        elif name == "p":
            if not self._joined or "".join(self._inline).strip() not in ("", "-"):
                self._end_block()
            self._joined = False
        elif name in ("tr", "td", "th"):
            self._end_row()
        elif name in _BLOCKS:
            self._end_block()
        return True

    def _enter_table(self, name: str) -> None:
        table = self._table or []
        if name == "tr" or (name in ("td", "th") and not table):
            table.append([])
        if name in ("td", "th"):
            table[-1].append("")
            self._has_head = self._has_head or (name == "th" and len(table) == 1)
            self._inline = []
        elif name in _BLOCKS or name in ("p", "li", "dt"):
            self._inline.append(" ")
        self._table = table

    def _leave(self, tag: Any) -> None:
        name = tag.tag
        if self._raw is not None:
            if name == "pre":
                self._end_code(tag)
        elif self._table is not None:
            if name in ("td", "th") and self._table and self._table[-1]:
                self._table[-1][-1] = one_line("".join(self._inline).replace(_LINE_BREAK, " "))
                self._inline = []
            elif name == "table":
                self._end_table()
            elif name in _BLOCKS or name in ("p", "li", "dt"):
                self._inline.append(" ")
        elif heading := _HEADING.match(name):
            title = one_line("".join(self._inline).replace(_LINE_BREAK, " "))
            self._inline = []
            self._builder.add_heading(int(heading[1]), title)
        elif name in ("li", "dt", "dd"):
            self._lists -= 1
            self._end_row()
            self._joined = name == "dt"
        elif name == "p":
            self._end_row() if self._lists else self._end_block()
        elif name in ("tr", "td", "th"):
            self._end_row()
        elif name in _BLOCKS and name != "dd":
            self._end_block()

    def _end_row(self) -> None:
        lines = [" ".join(line.split()) for line in "".join(self._inline).split(_LINE_BREAK)]
        self._rows += [line for line in lines if line and line != "-"]
        self._inline = []

    def _end_block(self) -> None:
        bare = "".join(self._inline).strip() == "-"  # a list item whose text comes in a block of its own
        self._end_row()
        self._builder.add(clean("\n".join(self._rows)))
        self._rows, self._joined = [], False
        self._inline = ["- "] if bare else []

    def _end_code(self, tag: Any) -> None:
        code = tidy("".join(self._raw or [])).strip("\n")
        self._raw, self._inline = None, []
        if not code.strip():
            return
        around = " ".join(str(one.get("class") or "")[:_LONGEST_CLASSES] for one in _nearest(tag))
        found = next((one for one in _LANGUAGE.findall(around) if one not in _NO_LANGUAGES), "")
        fence = "```"
        while fence in code:
            fence += "`"
        self._builder.add(f"{fence}{found}\n{code}\n{fence}", "code")

    def _end_table(self) -> None:
        rows = [_row(cells) for cells in self._table or [] if any(cells)]
        head = ""
        if rows and self._has_head:
            columns = max(1, len((self._table or [[]])[0]))
            rows.insert(1, _row(["---"] * columns))
            head = f"{rows[0]}\n{rows[1]}\n"
        self._table = None
        self._builder.add("\n".join(rows), "table", repeat=head)


def _row(cells: list[str]) -> str:
    safe = [cell.replace("|", "\\|") for cell in cells]
    return f"| {' | '.join(safe)} |"


def _nearest(tag: Any) -> list[Any]:
    """A code block, what is directly inside of it, and the two elements around it."""
    above = list(islice(tag.iterancestors(), 2))
    return [*islice(tag.iterchildren(), 1), tag, *above]


def _layout_tables(root: Any) -> set[Any]:
    """The tables that arrange a page: those with headings, code or tables in them."""
    seen: set[Any] = set()
    for tag in root.iter(*_BREAKS_TABLES):
        for above in tag.iterancestors():
            if above in seen or above is root:
                break
            seen.add(above)
    return {tag for tag in seen if tag.tag == "table"}


def _is_navigation(tag: Any) -> bool:
    """Whether a tag is navigation inside of a heading or a code block."""
    classes = set((tag.get("class") or "")[:_LONGEST_CLASSES].split())
    if classes & _NAVIGATION or {"contents", "topic"} <= classes:
        return True
    if tag.tag != "a" or not (tag.get("href") or "").startswith("#") or len(tag) >= _LARGEST_PERMALINK:
        return False
    return one_line("".join(islice(tag.itertext(), _LARGEST_PERMALINK))) in _PERMALINKS


def _is_hidden(tag: Any) -> bool:
    return tag.get("hidden") is not None or tag.get("aria-hidden") == "true" or tag.get("role") in _ROLES
