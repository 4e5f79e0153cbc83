"""The wheel as users get it: what is in it, and that it works alone, with and without extras."""

import email
import json
import re
import subprocess
import tarfile
import tomllib
import zipfile
from pathlib import Path

import pytest

from dartboard.version import __version__
from tests.cli.running import PATIENCE, environment
from tools.installing import ROOT, build, environment_with, uv

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
BELONGS = re.compile(r"dartboard/|dartboard-[\d.]+\.dist-info/")
RUBBISH = re.compile(r"__pycache__|\.py[co]$|_cache/|\.venv|\.hypothesis|\.git/|\.coverage|~$")
OFFLINE = re.compile(
    "error sending request|dns error|[Tt]imed out|Connection refused|offline|No route to host"
)
NEED_TORCH = {"torch", "dev"}
LICENCE = (ROOT / "LICENSE").read_bytes()


@pytest.fixture(scope="module")
def sdist(tmp_path_factory):
    pytest.importorskip("hatchling")
    return build("sdist", tmp_path_factory.mktemp("sdist"))


@pytest.fixture(scope="module")
def wheel(sdist, tmp_path_factory):
    """Made from the sdist, as whoever packages it for a distribution does."""
    folder = tmp_path_factory.mktemp("sources")
    with tarfile.open(sdist) as archive:
        archive.extractall(folder, filter="data")
    return build("wheel", tmp_path_factory.mktemp("wheel"), source=next(folder.iterdir()))


def installed(folder, *requirements):
    """The Python of a new environment, or a skip where no registry can be reached."""
    try:
        return environment_with(folder, requirements)
    except RuntimeError as error:
        if OFFLINE.search(str(error)):
            pytest.skip(f"no package registry can be reached: {str(error).splitlines()[-1]}")
        raise


@pytest.fixture(scope="module")
def plain(wheel, tmp_path_factory):
    return installed(tmp_path_factory.mktemp("plain") / "env", str(wheel))


def run(python, *arguments, folder, **more):
    """In an empty folder and without this tree on the path, so that what is installed is what runs."""
    return subprocess.run(
        [str(python), "-I", "-X", "utf8", *arguments],
        cwd=folder,
        env=environment(folder / "cache", **more),
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )


def test_the_sdist_has_sources_tests_and_documents_and_no_rubbish(sdist):
    with tarfile.open(sdist) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    for wanted in ("pyproject.toml", "LICENSE", "README.md", "CHANGELOG.md", "tests/test_packaging.py"):
        assert wanted in names
    assert {"docs/design.md", "dartboard/py.typed", "benchmarks/tables.py", "Makefile"} <= names
    assert [name for name in names if RUBBISH.search(name)] == []


def test_the_wheel_has_the_package_and_nothing_else(wheel):
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
        licence = archive.read(f"dartboard-{__version__}.dist-info/licenses/LICENSE")
    assert [name for name in names if not BELONGS.match(name) or RUBBISH.search(name)] == []
    tree = {
        path.relative_to(ROOT).as_posix()
        for path in (ROOT / "dartboard").rglob("*")
        if path.is_file() and not RUBBISH.search(path.as_posix())
    }
    assert {name for name in names if name.startswith("dartboard/")} == tree
    assert {"dartboard/py.typed", "dartboard/data/demo.jsonl", "dartboard/web/static/index.html"} <= names
    assert licence == LICENCE


def test_the_wheel_is_pure_python(wheel):
    assert wheel.name == f"dartboard-{__version__}-py3-none-any.whl"


def test_the_wheel_says_what_it_is_and_needs(wheel):
    with zipfile.ZipFile(wheel) as archive:
        said = email.message_from_bytes(archive.read(f"dartboard-{__version__}.dist-info/METADATA"))
    assert (said["Name"], said["Version"]) == ("dartboard", __version__)
    assert said["License-Expression"] == "Apache-2.0"
    assert said["Requires-Python"] == PROJECT["requires-python"]
    assert set(said.get_all("Provides-Extra")) == set(PROJECT["optional-dependencies"])
    always = [line for line in said.get_all("Requires-Dist") if "extra ==" not in line]
    assert len(always) == len(PROJECT["dependencies"])
    assert said.get_payload().startswith("# dartboard")


def test_alone_it_says_its_version_and_runs_the_demo_offline(plain, tmp_path):
    command = run(plain, "-m", "dartboard", "--version", folder=tmp_path)
    assert command.stdout == f"dartboard {__version__}\n", command.stderr
    script = subprocess.run([plain.with_name("dartboard"), "--version"], capture_output=True, text=True)
    assert script.stdout == command.stdout
    nowhere = dict.fromkeys(("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"), "http://127.0.0.1:9")
    shown = run(plain, "-m", "dartboard", "demo", "--json", "--number", "1", folder=tmp_path, **nowhere)
    assert shown.returncode == 0, shown.stderr
    found = json.loads(shown.stdout)
    facts = {name: len({one["metadata"]["base"] for one in row["chunks"]}) for name, row in found.items()}
    assert facts["Dartboard"] == 5 > facts["KNN"]


SELECT = """
import sys, numpy as np, dartboard
assert "site-packages" in dartboard.__file__, dartboard.__file__
facts = np.eye(4, 64)
told = np.repeat(facts, 5, axis=0) + 0.01 * np.random.default_rng(0).standard_normal((20, 64))
print(sorted((dartboard.select(told, facts.sum(axis=0), k=4).indices // 5).tolist()))
print([name for name in ("torch", "scipy", "fastapi", "faiss") if name in sys.modules])
"""


def test_alone_it_selects(plain, tmp_path):
    done = run(plain, "-W", "error", "-c", SELECT, folder=tmp_path)
    assert done.stdout.splitlines() == ["[0, 1, 2, 3]", "[]"], done.stderr


def test_whatever_needs_an_extra_names_it(plain, tmp_path):
    done = run(plain, str(Path(__file__).with_name("plain_install.py")), str(tmp_path), folder=tmp_path)
    assert done.returncode == 0, done.stderr
    doors = json.loads(done.stdout)
    assert len(doors) >= 12
    wrong = [door for door in doors if f"pip install 'dartboard[{door[0]}]'" not in door[2]]
    assert wrong == []
    assert not any("Traceback" in said for _, _, said in doors)
    assert {extra for extra, _, _ in doors} <= set(PROJECT["optional-dependencies"])


WITH_EXTRAS = """
from pathlib import Path
from dartboard.api import ServiceSettings, create_app
from dartboard.cli import main
Path("page.html").write_text("<html><body><p>Keys are rotated every ninety days.</p></body></html>")
assert main(["index", "page.html", "--json"]) == 0
app = create_app(ServiceSettings(store="index.dartboard"))
print(sorted(set(app.openapi()["paths"]) & {"/healthz", "/api/dartboard/retrieve"}))
"""


def test_with_extras_their_doors_open(wheel, plain, tmp_path):
    python = installed(tmp_path / "env", f"{wheel}[docs,serve]")
    done = run(python, "-c", WITH_EXTRAS, folder=tmp_path)
    assert done.returncode == 0, done.stderr
    assert '"new": 1' in done.stdout and "['/api/dartboard/retrieve', '/healthz']" in done.stdout


INTEGRATIONS = """
import importlib, importlib.util, os
os.environ["HAYSTACK_TELEMETRY_ENABLED"] = "False"
import numpy as np, dartboard
for name in ("langchain", "llama_index", "haystack", "mcp"):
    module = importlib.import_module("dartboard.integrations." + name)
    assert "site-packages" in module.__file__, module.__file__
    for what in getattr(module, "__all__", ()):
        getattr(module, what)
print(list(dartboard.select(np.eye(3), [1.0, 0.5, 0.2], k=2).to_frame()))
print([name for name in ("torch", "ray") if importlib.util.find_spec(name)])
"""


def test_with_the_frameworks_their_doors_open_without_torch(wheel, plain, tmp_path):
    python = installed(tmp_path / "env", f"{wheel}[langchain,llama-index,haystack,mcp,pandas]")
    done = run(python, "-c", INTEGRATIONS, folder=tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == ["['similarity', 'gain', 'coverage', 'stands_for']", "[]"]


def test_all_extras_but_torch_can_be_had_together_and_bring_no_torch(wheel, plain):
    extras = sorted({*PROJECT["optional-dependencies"]} - NEED_TORCH)
    done = uv("pip", "install", "--dry-run", "--python", str(plain), f"{wheel}[{','.join(extras)}]")
    if done.returncode and OFFLINE.search(done.stderr):
        pytest.skip("no package registry can be reached")
    assert done.returncode == 0, done.stderr
    chosen = re.findall(r"^ \+ ([\w.-]+)==", done.stderr, flags=re.MULTILINE)
    assert {"ray", "fastapi", "pandas", "wordfreq", "mkdocs"} <= set(chosen) and "torch" not in chosen
