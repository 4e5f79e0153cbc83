"""Download public data sets into the data folder; errors say which files to put where without a network.

Archives of BEIR are verified against their publisher's checksums. RGB and MS MARCO publish none that we know:
a warning says so, and their rows are only checked as they are read. Only the files that a loader reads are
extracted, under our own names. An interrupted download is resumed.
"""

import hashlib
import logging
import shutil
import tarfile
import zipfile
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import IO

from dartboard.datasets.preparation import Listener, ignore
from dartboard.errors import DatasetError

_BEIR = "https://public.ukp.informatik.tu-darmstadt.de/thakur/BEIR/datasets"
_RGB = "https://raw.githubusercontent.com/chen700564/RGB/65ec39e40e7dc9abb50e9bf1b4f32be3f6f16615/data"
_MSMARCO = "https://msmarco.z22.web.core.windows.net/msmarcoranking/collectionandqueries.tar.gz"

_BEIR_LAYOUT = "corpus.jsonl, queries.jsonl and qrels/test.tsv"
_BLOCK = 1 << 20

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """The origin of a data set, and the files that its folder needs."""

    url: str
    layout: str
    md5: str | None = None
    wanted: tuple[str, ...] = ()
    """Patterns of the files to extract; empty if the download itself is the file."""


def _beir(name: str, md5: str) -> Source:
    return Source(
        url=f"{_BEIR}/{name}.zip",
        md5=md5,
        layout=_BEIR_LAYOUT,
        wanted=("corpus.jsonl", "queries.jsonl", "qrels/*.tsv"),
    )


SOURCES: dict[str, Source] = {
    "arguana": _beir("arguana", "8ad3e3c2a5867cdced806d6503f29b99"),
    "fiqa": _beir("fiqa", "17918ed23cd04fb15047f73e6c3bd9d9"),
    "hotpotqa": _beir("hotpotqa", "f412724f78b0d91183a0e86805e16114"),
    "msmarco": Source(
        url=_MSMARCO,
        layout="collection.tsv, queries.dev.small.tsv and qrels.dev.small.tsv",
        wanted=("collection.tsv", "queries.*.tsv", "qrels.*.tsv"),
    ),
    "nfcorpus": _beir("nfcorpus", "a89dba18a62ef92f7d323ec890a0d38d"),
    "nq": _beir("nq", "d4d3d2e48787a744b6f6e691ff534307"),
    "rgb_en": Source(url=f"{_RGB}/en.json", layout="en.json"),
    "rgb_en_fact": Source(url=f"{_RGB}/en_fact.json", layout="en_fact.json"),
    "rgb_en_int": Source(url=f"{_RGB}/en_int.json", layout="en_int.json"),
    "scifact": _beir("scifact", "5f7d1de60b170fc8027bb7898e2efca1"),
    "trec-covid": _beir("trec-covid", "ce62140cb23feb9becf6270d0d1fe6d1"),
}


def download(name: str, root: Path, *, progress: Listener | None = None) -> Path:
    """Download a data set of :data:`SOURCES` into ``root/name`` and return that folder."""
    source = SOURCES[name]
    folder = root / name
    listen = progress or ignore
    try:
        folder.mkdir(parents=True, exist_ok=True)
        fetched = _fetch(source, folder / f"{PurePosixPath(source.url).name}.part", name, listen)
        if source.wanted:
            _unpack(fetched, source.url, source.wanted, folder)
            fetched.unlink()
        else:
            fetched.replace(folder / PurePosixPath(source.url).name)
    except (OSError, zipfile.BadZipFile, tarfile.TarError, EOFError) as error:
        with suppress(OSError):
            folder.rmdir()
        raise DatasetError(
            f"data set {name!r} could not be fetched from {source.url}: {_reason(error)}. "
            f"Without network, put {source.layout} into {folder}"
        ) from error
    return folder


def _fetch(source: Source, part: Path, name: str, listen: Listener) -> Path:
    """Download to ``part``; resumes an earlier attempt."""
    import httpx

    begun = part.stat().st_size if part.exists() else 0
    # As it is: a range counts bytes of the file, and compressed on the way they would be others.
    headers = {"Accept-Encoding": "identity"} | ({"Range": f"bytes={begun}-"} if begun else {})
    try:
        with (
            httpx.Client(follow_redirects=True, timeout=30) as client,
            client.stream("GET", source.url, headers=headers) as answer,
        ):
            if answer.status_code == httpx.codes.REQUESTED_RANGE_NOT_SATISFIABLE:
                return _checked(part, source)
            answer.raise_for_status()
            resumed = answer.status_code == httpx.codes.PARTIAL_CONTENT
            done = begun if resumed else 0
            length = answer.headers.get("Content-Length")
            total = done + int(length) if length else None
            with part.open("ab" if resumed else "wb") as stream:
                for block in answer.iter_raw(_BLOCK):
                    stream.write(block)
                    done += len(block)
                    listen(f"Downloading {name}", done, total)
            if "Content-Encoding" in answer.headers or (total is not None and done != total):
                part.unlink()
                raise OSError("the server sent it compressed, or not as long as it said: try again")
    except httpx.HTTPError as error:
        raise OSError(_reason(error)) from error
    return _checked(part, source)


def _checked(part: Path, source: Source) -> Path:
    """Verify the file's checksum; a wrong file is removed."""
    if source.md5 is None:
        logger.warning("no checksum is known for %s: it is taken as the server sent it", source.url)
    else:
        with part.open("rb") as stream:
            found = hashlib.file_digest(stream, lambda: hashlib.md5(usedforsecurity=False)).hexdigest()
        if found != source.md5:
            part.unlink()
            raise OSError(f"its md5 sum is {found}, its publisher gives {source.md5}")
    return part


def _unpack(archive: Path, url: str, wanted: tuple[str, ...], folder: Path) -> None:
    """Extract the wanted members under the matched part of their names, and nothing else."""
    found = 0
    for name, content in _members(archive, url):
        if target := _target(name, wanted, folder):
            target.parent.mkdir(exist_ok=True)
            part = target.with_name(f"{target.name}.part")
            with part.open("wb") as stream:
                shutil.copyfileobj(content, stream)
            part.replace(target)
            found += 1
    if not found:
        raise OSError(f"the archive holds none of {', '.join(wanted)}")


def _members(archive: Path, url: str) -> Iterator[tuple[str, IO[bytes]]]:
    """The names and contents of the files in an archive."""
    if url.endswith(".zip"):
        with zipfile.ZipFile(archive) as zipped:
            for info in zipped.infolist():
                with zipped.open(info) as content:
                    yield info.filename, content
        return
    with tarfile.open(archive) as tarred:
        for member in tarred:
            if opened := tarred.extractfile(member) if member.isfile() else None:
                with opened:
                    yield member.name, opened


def _target(member: str, wanted: tuple[str, ...], folder: Path) -> Path | None:
    """The target of a member, or None; compares as many of its last path components as the pattern has."""
    for pattern in wanted:
        depth = len(PurePosixPath(pattern).parts)
        tail = PurePosixPath(*PurePosixPath(member).parts[-depth:])
        if len(tail.parts) == depth and ".." not in tail.parts and tail.match(pattern):
            return folder / tail
    return None


def _reason(error: Exception) -> str:
    lines = str(error).strip().splitlines()
    return lines[0] if lines else type(error).__name__
