"""Draw the pictures of the README: what ``dartboard demo`` prints, and badges from pyproject.toml.

    python -m tools.readme_pictures

The demo runs in its own process, and the picture keeps its colours. No picture loads a font or anything else.
"""

import io
import os
import subprocess
import sys
import tomllib
from pathlib import Path

from rich.console import Console
from rich.text import Text

ROOT = Path(__file__).parents[1]
IMAGES = ROOT / "docs" / "images"
COLUMNS = 108
LAST = "Dartboard, pick by pick"
"""The picture ends before this heading: it shows the question and what each method picks."""

_CHARACTER = 6.6
"""Width of a character of a badge, in pixels."""

FORMAT = """\
<svg class="rich-terminal" viewBox="0 0 {width} {height}" xmlns="http://www.w3.org/2000/svg" role="img">
<title>dartboard demo</title>
<style>
.{unique_id}-matrix {{
  font-family: ui-monospace, SFMono-Regular, Menlo, Consolas, "DejaVu Sans Mono", monospace;
  font-size: {char_height}px; line-height: {line_height}px;
}}
.{unique_id}-title {{ font-size: 18px; font-weight: bold; font-family: system-ui, sans-serif; }}
{styles}
</style>
<defs>
<clipPath id="{unique_id}-clip-terminal">
<rect x="0" y="0" width="{terminal_width}" height="{terminal_height}"/>
</clipPath>
{lines}
</defs>
{chrome}
<g transform="translate({terminal_x}, {terminal_y})" clip-path="url(#{unique_id}-clip-terminal)">
{backgrounds}
<g class="{unique_id}-matrix">
{matrix}
</g>
</g>
</svg>
"""


def demo_picture() -> str:
    """The first part of what a real run of ``dartboard demo`` prints, as SVG."""
    printed = subprocess.run(
        [sys.executable, "-m", "dartboard", "demo"],
        cwd=ROOT,
        env={**os.environ, "COLUMNS": str(COLUMNS), "FORCE_COLOR": "1", "TERM": "xterm-256color"},
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    lines = Text.from_ansi(printed).split("\n")
    shown = list(lines)[: next(i for i, line in enumerate(lines) if LAST in line.plain)]
    while shown and not shown[-1].plain.strip():
        shown.pop()
    console = Console(record=True, width=COLUMNS, file=io.StringIO(), force_terminal=True)
    for line in shown:
        console.print(line)
    return console.export_svg(title="dartboard demo", code_format=FORMAT, unique_id="demo")


def badges() -> dict[str, str]:
    """Badges by file name, each a fact that pyproject.toml states."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    python = project["project"]["requires-python"].removeprefix(">=")
    said = {
        "badge-python.svg": ("python", f"{python}+", "#3572a5"),
        "badge-license.svg": ("license", project["project"]["license"], "#4c1"),
    }
    if project["tool"]["mypy"]["strict"]:
        said["badge-typed.svg"] = ("types", "mypy strict", "#555fc0")
    return {name: badge(*parts) for name, parts in said.items()}


def badge(label: str, value: str, colour: str) -> str:
    """A label and a value side by side, as SVG."""
    left, right = (round(_CHARACTER * len(text) + 12) for text in (label, value))
    return f"""\
<svg xmlns="http://www.w3.org/2000/svg" width="{left + right}" height="20" role="img">
<title>{label}: {value}</title>
<rect width="{left + right}" height="20" rx="3" fill="{colour}"/>
<path d="M3 0H{left}V20H3a3 3 0 0 1-3-3V3a3 3 0 0 1 3-3Z" fill="#555"/>
<g fill="#fff" font-family="Verdana,DejaVu Sans,sans-serif" font-size="11" text-anchor="middle">
<text x="{left / 2:g}" y="14">{label}</text>
<text x="{left + right / 2:g}" y="14">{value}</text>
</g>
</svg>
"""


def main() -> None:
    """Write the pictures."""
    for name, picture in {**badges(), "demo.svg": demo_picture()}.items():
        (IMAGES / name).write_text(picture, encoding="utf-8")


if __name__ == "__main__":
    main()
