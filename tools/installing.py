"""Build the package and install it into an empty environment, as a user would.

uv does the work, since it is many times faster than pip. It reads none of pip's settings, so they are handed
to it: a mirror, a folder of wheels or a certificate that pip knows serves uv as well. Run as a script, this
is uv with those settings: ``python tools/installing.py pip compile …``.
"""

import ast
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent

_WORDS = {
    "index-url": "UV_DEFAULT_INDEX",
    "extra-index-url": "UV_INDEX",
    "find-links": "UV_FIND_LINKS",
    "no-index": "UV_NO_INDEX",
    "cert": "SSL_CERT_FILE",
    "timeout": "UV_HTTP_TIMEOUT",
}
"""Settings of pip, and what uv calls them."""


def uv_environment() -> dict[str, str]:
    """The environment of this process, with pip's settings in uv's words; what is said in uv's wins."""
    said = subprocess.run(
        [sys.executable, "-m", "pip", "config", "list"], capture_output=True, text=True, check=True
    )
    known = {"UV_INDEX_STRATEGY": "unsafe-best-match"}  # as pip does: the best of all places
    for line in said.stdout.splitlines():
        name, _, value = line.partition("=")
        word = _WORDS.get(name.rpartition(".")[2])
        if word is not None:
            between = "," if word == "UV_FIND_LINKS" else " "
            known[word] = between.join(str(ast.literal_eval(value)).split())
    return {**known, **os.environ}


def uv(*arguments: str, cwd: Path = ROOT) -> subprocess.CompletedProcess[str]:
    """Run uv; what it says is captured."""
    program = Path(sys.executable).with_name("uv")
    return subprocess.run(
        [str(program), *arguments], cwd=cwd, env=uv_environment(), capture_output=True, text=True, check=False
    )


def build(target: str, out: Path, *, source: Path = ROOT) -> Path:
    """Make the ``sdist`` or the ``wheel`` of the sources in ``source``, and return it."""
    command = [sys.executable, "-m", "hatchling", "build", "--target", target, "--directory", str(out)]
    subprocess.run(command, cwd=source, check=True, capture_output=True, text=True)
    return max(out.glob("*.whl" if target == "wheel" else "*.tar.gz"), key=lambda path: path.stat().st_mtime)


def environment_with(folder: Path, requirements: Sequence[str]) -> Path:
    """A new virtual environment with nothing but ``requirements``; its Python."""
    python = folder / "bin" / "python"
    for step in (
        ("venv", "--quiet", "--python", sys.executable, str(folder)),
        ("pip", "install", "--quiet", "--python", str(python), *requirements),
        ("pip", "check", "--quiet", "--python", str(python)),
    ):
        done = uv(*step)
        if done.returncode:
            raise RuntimeError(done.stderr)
    return python


if __name__ == "__main__":
    program = Path(sys.executable).with_name("uv")
    os.execve(program, [str(program), *sys.argv[1:]], uv_environment())
