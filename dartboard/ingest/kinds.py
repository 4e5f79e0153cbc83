"""Which reader a file gets, by the end of its name; a name that says nothing is read as text."""

from pathlib import PurePath

from dartboard.ingest.documents import Kind

_SUFFIXES: dict[Kind, str] = {
    "markdown": ".md .markdown .mdown .mdx .qmd .rmd .ipynb",
    "rst": ".rst .rest",
    "html": ".html .htm .xhtml",
    "pdf": ".pdf",
    "docx": ".docx",
    "rows": ".jsonl .ndjson .csv .tsv",
}

_LANGUAGES = {
    "python": ".py .pyi .pyw",
    "javascript": ".js .jsx .mjs .cjs .ts .tsx .mts .cts .vue .svelte",
    "java": ".java .kt .kts .scala .groovy .cs",
    "go": ".go",
    "rust": ".rs",
    "c": ".c .h .cc .cpp .cxx .hh .hpp .hxx .m .mm .cu",
    "ruby": ".rb .rake",
    "php": ".php",
    "swift": ".swift",
    "shell": ".sh .bash .zsh .fish",
    "sql": ".sql",
    "lua": ".lua",
    "elixir": ".ex .exs",
    "r": ".r",
    "julia": ".jl",
    "perl": ".pl .pm",
    "other": ".hs .ml .clj .erl .dart .zig .nim .vim .el .ps1 .bat .tf .proto .graphql .cmake .css .scss",
}

PICTURES = frozenset([".svg", ".eps", ".ps", ".xpm", ".drawio", ".excalidraw"])
"""Text to a program, not to a reader."""

_KIND_OF: dict[str, Kind] = {suffix: kind for kind, text in _SUFFIXES.items() for suffix in text.split()}
_LANGUAGE_OF = {suffix: language for language, text in _LANGUAGES.items() for suffix in text.split()}
_LANGUAGE_OF_NAME = {"makefile": "other", "dockerfile": "other", "rakefile": "ruby", "gemfile": "ruby"}


def kind_of(name: str) -> Kind:
    """The kind of a file, from its name alone."""
    if language_of(name):
        return "code"
    return _KIND_OF.get(PurePath(name).suffix.lower(), "text")


def language_of(name: str) -> str | None:
    """The family of programming languages that a file is written in, or None for what is no code."""
    path = PurePath(name.lower())
    return _LANGUAGE_OF.get(path.suffix) or _LANGUAGE_OF_NAME.get(path.name)
