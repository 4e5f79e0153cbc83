"""Every snippet of the README runs, and what it names is there."""

import json
import re
import shlex
import tomllib
from pathlib import Path

import pytest

from dartboard.cli import main
from tools import readme_pictures

README = Path(__file__).parent.parent / "README.md"


def blocks(language):
    return re.findall(rf"```{language}\n(.*?)```", README.read_text(), flags=re.DOTALL)


def test_python_snippets_run_in_order(capsys):
    assert len(blocks("python")) >= 2
    namespace: dict[str, object] = {}
    for block in blocks("python"):
        exec(compile(block, "README.md", "exec"), namespace)
    assert capsys.readouterr().out


def test_console_commands_exist():
    make = (README.parent / "Makefile").read_text()
    for block in blocks("console"):
        for line in block.splitlines():
            command = shlex.split(line.removeprefix("$ "), comments=True)
            if command[0] == "make":
                assert re.search(rf"^{command[1]}:", make, flags=re.MULTILINE)
            elif command[0] == "dartboard":
                assert main([*command[1:], "--help"]) == 0, line


@pytest.mark.slow
def test_its_questions_are_answered_by_the_documentation(tmp_path, monkeypatch, capsys):
    """The commands as they are printed, run in a clone; only the store is put elsewhere."""
    monkeypatch.chdir(README.parent)
    monkeypatch.setenv("DARTBOARD_STORE", str(tmp_path / "index.dartboard"))
    asked = [line for block in blocks("console") for line in block.splitlines() if "dartboard " in line]
    index, search, context = (shlex.split(line.removeprefix("$ "), comments=True)[1:] for line in asked[:3])
    assert main(index) == 0
    capsys.readouterr()
    assert main([*search, "--json"]) == 0
    answers = [chunk["text"] for chunk in json.loads(capsys.readouterr().out)["chunks"]]
    assert len(answers) == 5
    assert any("429 `rate_limited`" in text and "Retry-After" in text for text in answers)
    assert main([*context, "--json"]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert 1000 < answer["tokens"] <= 1500
    assert "429 `rate_limited`" in answer["passages"][0]["text"]


def test_code_appears_within_thirty_lines():
    head = README.read_text().splitlines()[:30]
    assert any(line.startswith("```") for line in head)


def relative_links():
    """Every address in the README that is not on the web: of links, pictures and HTML."""
    text = re.sub(r"^```.*?^```", "", README.read_text(), flags=re.DOTALL | re.MULTILINE)
    found = re.findall(r"\]\(([^)\s]+)", text) + re.findall(r"(?:src|href)=\"([^\"]+)\"", text)
    found += re.findall(r"^\[[^\]]+\]:\s*(\S+)", text, flags=re.MULTILINE)
    return sorted({link for link in found if not re.match(r"[a-z]+:", link)})


def test_there_are_links_to_check():
    assert len(relative_links()) >= 10


@pytest.mark.parametrize("link", relative_links())
def test_what_is_linked_is_there(link):
    path, _, anchor = link.partition("#")
    target = README.parent / path if path else README
    assert target.exists(), link
    assert target.is_dir() or target.stat().st_size > 0, link
    if anchor and target.suffix == ".md":
        assert anchor in anchors(target.read_text()), link


def anchors(text):
    """The headings' names as GitHub makes them."""
    heads = re.findall(r"^#+ (.*)$", text, flags=re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", head.lower()).replace(" ", "-") for head in heads}


def test_it_can_be_read_in_three_minutes():
    prose = re.sub(r"^```.*?^```", "", README.read_text(), flags=re.DOTALL | re.MULTILINE)
    assert len(re.findall(r"\S*\w\S*", prose)) <= 650


def test_the_first_block_sets_everything_up():
    commands = re.findall(r"^\$ (.*?)(?:\s+#.*)?$", blocks("console")[0], flags=re.MULTILINE)
    assert commands == ["make demo", "make test"]


def test_every_extra_is_in_one_table():
    project = tomllib.loads((README.parent / "pyproject.toml").read_text())["project"]
    rows = re.findall(r"^\| (`.*?) \|", README.read_text(), flags=re.MULTILINE)
    named = {name for row in rows for name in re.findall(r"`([\w-]+)`", row)}
    assert named == set(project["optional-dependencies"])


def test_badges_say_what_the_project_file_says():
    shown = {Path(link).name for link in relative_links() if "badge-" in link}
    assert shown == set(readme_pictures.badges())
    for name, picture in readme_pictures.badges().items():
        assert (readme_pictures.IMAGES / name).read_text(encoding="utf-8") == picture, (
            "run: python -m tools.readme_pictures"
        )


def test_the_picture_of_the_demo_fetches_nothing():
    picture = (readme_pictures.IMAGES / "demo.svg").read_text(encoding="utf-8")
    assert "repeats" in picture and "url(http" not in picture and "<script" not in picture
