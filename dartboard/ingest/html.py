"""HTML: title, headings and main text; scripts, navigation and hidden elements are skipped.

It also skips what documentation tools add: permalink marks of headings and signatures (Sphinx and MkDocs
``¶``, rustdoc ``§``, Docusaurus ``#``), lists of pages, links to sources, and line numbers.
"""

import re
from html.parser import HTMLParser
from typing import Any

from dartboard.deadline import check
from dartboard.errors import DeadlineError, IngestError, MissingExtraError
from dartboard.ingest.documents import Section
from dartboard.ingest.limits import MAX_TAGS, MAX_TITLE, TooLargeError
from dartboard.ingest.sections import TextBuilder
from dartboard.ingest.text import clean, one_line, tidy

_CHARSET = re.compile(rb"""<meta[^>]{0,200}?charset\s*=\s*["']?\s*([A-Za-z0-9_:.-]+)""", re.IGNORECASE)
_LEFT_OUT = {
    *("script", "style", "noscript", "template", "nav", "footer", "aside", "form", "button", "select"),
    *("iframe", "object", "svg", "canvas", "head"),
}
_BLOCKS = {
    *("address", "article", "blockquote", "body", "caption", "details", "div", "dl", "fieldset"),
    *("figcaption", "figure", "header", "hr", "html", "main", "ol", "p", "section", "summary", "table", "ul"),
}
_CELLS = {"td", "th"}
_TIGHT = {"li", "dt", "dd", "tr"}
_HEADING = re.compile(r"h([1-6])$")
_NAVIGATION = {
    *("related", "sphinxsidebar", "toctree-wrapper", "rst-footer-buttons", "wy-breadcrumbs", "breadcrumbs"),
    *("indextable", "genindextable", "genindex-jumpbox", "modindex-jumpbox"),
    *("headerlink", "viewcode-link", "linenos", "lineno"),
}
"""Classes that Sphinx and its themes use for elements that are not text."""

_PERMALINKS = {"", "¶", "§", "#", "🔗"}
"""Texts of permalinks."""

_LARGEST_PERMALINK = 8
"""Maximum nodes of a link that are inspected, so that a link around half the page stays cheap."""

_LONGEST_CLASSES = 10_000
_LONG_TAG = 10_000
_ATTRIBUTE = re.compile(r"""(?<=['"\s/])[^\s/>]""")
"""Characters that can begin an attribute."""

_ROLES = {"navigation", "search", "banner", "contentinfo", "directory", "doc-toc"}


def declared_charset(data: bytes) -> str | None:
    """The encoding from a page's head."""
    found = _CHARSET.search(data[:4096])
    return found[1].decode("ascii") if found else None


def read_html(markup: str) -> tuple[str, tuple[Section, ...], str]:
    """Text, sections and title of a page."""
    try:
        from bs4 import BeautifulSoup
    except ImportError as error:
        raise MissingExtraError("beautifulsoup4", "docs", "reading HTML") from error
    _Counter().check(markup)
    try:
        soup = BeautifulSoup(markup, "html.parser", multi_valued_attributes=None)
        title = one_line(soup.title.get_text()[:MAX_TITLE]) if soup.title else ""
        for tag in soup.find_all(_is_navigation):
            if not tag.decomposed:
                tag.decompose()
        builder = _Flow(_main(soup)).read()
    except DeadlineError:
        raise
    except Exception as error:  # a broken page can fail anywhere in the parser
        raise IngestError(f"the page cannot be read: {error}") from error
    return builder.finish(title)


def _main(soup: Any) -> Any:
    """The page's main element if it has one, otherwise its body."""
    for parts in (soup.find_all("main"), soup.find_all(role="main"), soup.find_all("article")):
        if len(parts) == 1 and parts[0].get_text(strip=True):
            return parts[0]
    return soup.body or soup


class _Counter(HTMLParser):
    """Counts the objects that the parser would create, before any is created."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=False)
        self._count = 0

    def check(self, markup: str) -> None:
        """Raise if the page's tree would be too large."""
        try:
            self.feed(markup)
            self.close()
        except AssertionError as error:  # html.parser's error for markup that it cannot parse
            raise IngestError(f"the page cannot be read: {error}") from error

    def parse_starttag(self, i: int) -> int:
        """Count attributes before they become a list: one tag may have millions."""
        end = self.check_for_whole_start_tag(i)
        if end - i > _LONG_TAG:
            self._check(sum(1 for _ in _ATTRIBUTE.finditer(self.rawdata, i, end)))
        return super().parse_starttag(i)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._add(1 + len(attrs))

    def handle_data(self, data: str) -> None:
        self._add(1)

    handle_comment = handle_pi = unknown_decl = handle_data

    def handle_decl(self, decl: str) -> None:
        self._add(1)

    def _add(self, count: int) -> None:
        check()
        self._count += count
        self._check(self._count)

    @staticmethod
    def _check(count: int) -> None:
        if count > MAX_TAGS:
            raise TooLargeError(
                f"holds more than {MAX_TAGS:,} tags, attributes and texts between them: split the page"
            )


class _Flow:
    """Walks a page in reading order without recursion, so that any nesting depth works."""

    def __init__(self, root: Any) -> None:
        self._root = root
        self._builder = TextBuilder()
        self._inline: list[str] = []
        self._rows: list[str] = []  # list items and table rows, one per line, until the block ends

    def read(self) -> TextBuilder:
        from bs4 import NavigableString, Tag
        from bs4.element import PreformattedString

        pending: list[Any] = [(self._root, False)]
        while pending:
            check()
            node, leaving = pending.pop()
            if leaving:
                self._leave(node.name)
            elif isinstance(node, Tag):
                if self._enter(node):
                    pending.append((node, True))
                    pending += [(child, False) for child in reversed(node.contents)]
            elif isinstance(node, NavigableString) and not isinstance(node, PreformattedString):
                self._inline.append(str(node))
        self._end_block()
        return self._builder

    def _enter(self, tag: Any) -> bool:
        """Whether to visit the children."""
        if tag.name in _LEFT_OUT or _is_hidden(tag):
            return False
        if found := _HEADING.match(tag.name):
            self._end_block()
            self._builder.add_heading(int(found[1]), one_line(tag.get_text()))
            return False
        if tag.name == "pre":
            self._end_block()
            self._builder.add(tidy(tag.get_text()).strip("\n"))
            return False
        if tag.name == "br":
            self._inline.append("\x00")
        elif tag.name in _CELLS:
            if self._inline and "".join(self._inline).strip():
                self._inline.append(" | ")
        elif tag.name in _TIGHT:
            self._end_row()
        elif tag.name in _BLOCKS:
            self._end_block()
        return True

    def _leave(self, name: str) -> None:
        if name in _TIGHT:
            self._end_row()
        elif name in _BLOCKS:
            self._end_block()

    def _end_row(self) -> None:
        lines = [" ".join(line.split()) for line in "".join(self._inline).split("\x00")]
        self._rows += [line for line in lines if line]
        self._inline = []

    def _end_block(self) -> None:
        self._end_row()
        self._builder.add(clean("\n".join(self._rows)))
        self._rows = []


def _is_navigation(tag: Any) -> bool:
    """Whether a tag is navigation inside of a heading or a code block."""
    check()
    classes = set(str(tag.get("class") or "")[:_LONGEST_CLASSES].split())
    if classes & _NAVIGATION or {"contents", "topic"} <= classes:
        return True
    if tag.name != "a" or not str(tag.get("href", "")).startswith("#"):
        return False
    return _is_small(tag) and one_line(tag.get_text()) in _PERMALINKS


def _is_small(tag: Any) -> bool:
    """Whether a tag contains less than a permalink may.

    ``tag.descendants`` looks for the last one first: for nested tags, that takes the square of their number.
    """
    count, waiting = 0, [tag]
    while waiting:
        for child in waiting.pop().contents:
            count += 1
            if count >= _LARGEST_PERMALINK:
                return False
            if hasattr(child, "contents"):
                waiting.append(child)
    return True


def _is_hidden(tag: Any) -> bool:
    attributes = tag.attrs or {}
    return (
        "hidden" in attributes or attributes.get("aria-hidden") == "true" or attributes.get("role") in _ROLES
    )
