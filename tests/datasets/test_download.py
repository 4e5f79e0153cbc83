"""Downloads from a real server on this machine: whole, resumed, damaged, refused."""

import gzip
import hashlib
import http.server
import io
import tarfile
import threading
import zipfile

import pytest

from dartboard.datasets import load_text
from dartboard.datasets.download import SOURCES, Source, download
from dartboard.errors import DatasetError
from tests.datasets.folders import beir_folder


class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.server.asked.append((self.path, self.headers.get("Range")))
        packs = "gzip" in self.headers.get("Accept-Encoding", "")
        content = self.server.files.get(self.path)
        if content is None:
            self.send_error(404)
            return
        start = int((self.headers.get("Range") or "bytes=0-")[6:-1])
        if start >= len(content):
            self.send_error(416)
            return
        self.send_response(206 if start else 200)
        sent = gzip.compress(content[start:]) if packs else content[start:]
        if packs:
            self.send_header("Content-Encoding", "gzip")
        self.send_header("Content-Length", str(len(sent)))
        self.end_headers()
        self.wfile.write(sent)

    def log_message(self, *_):
        pass


@pytest.fixture
def server():
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.files, server.asked = {}, []
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    server.url = f"http://127.0.0.1:{server.server_address[1]}"
    yield server
    server.shutdown()
    server.server_close()
    thread.join()


@pytest.fixture
def archive(tmp_path):
    """A BEIR archive with more in it than was asked for, and a member that wants to leave its folder."""
    folder = beir_folder(tmp_path / "made")
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as zipped:
        for path in sorted(folder.rglob("*")):
            if path.is_file():
                zipped.write(path, f"tiny/{path.relative_to(folder)}")
        zipped.writestr("tiny/run_me.py", "raise SystemExit")
        zipped.writestr("../../../queries.jsonl.py", "raise SystemExit")
        zipped.writestr("../qrels/../evil.tsv", "x")
    return stream.getvalue()


@pytest.fixture
def source(server, archive, monkeypatch):
    server.files["/scifact.zip"] = archive
    source = Source(
        url=f"{server.url}/scifact.zip",
        layout=SOURCES["scifact"].layout,
        md5=hashlib.md5(archive).hexdigest(),
        wanted=SOURCES["scifact"].wanted,
    )
    monkeypatch.setitem(SOURCES, "scifact", source)
    return source


def files_in(folder):
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())


def test_a_missing_data_set_is_fetched_and_read(source, tmp_path):
    heard = []
    data = load_text("scifact", tmp_path / "data", progress=lambda *told: heard.append(told))
    assert len(data) == 2
    assert files_in(tmp_path / "data") == [
        "scifact/corpus.jsonl",
        "scifact/qrels/test.tsv",
        "scifact/queries.jsonl",
    ]
    assert heard[-1][0] == "Downloading scifact"
    assert heard[-1][1] == heard[-1][2]


def test_what_is_there_is_not_fetched(source, server, tmp_path):
    load_text("scifact", tmp_path)
    load_text("scifact", tmp_path)
    assert len(server.asked) == 1


def test_an_interrupted_download_goes_on(source, server, archive, tmp_path):
    (tmp_path / "scifact").mkdir()
    (tmp_path / "scifact" / "scifact.zip.part").write_bytes(archive[:100])
    download("scifact", tmp_path)
    assert server.asked == [("/scifact.zip", "bytes=100-")]
    (tmp_path / "scifact" / "scifact.zip.part").write_bytes(archive)
    download("scifact", tmp_path)
    assert not (tmp_path / "scifact" / "scifact.zip.part").exists()


def test_a_file_without_a_checksum_is_resumed_from_a_server_that_would_pack_it(
    server, monkeypatch, tmp_path, caplog
):
    content = b'{"id": 1, "query": "Why?", "answer": "x", "positive": ["x"], "negative": []}\n' * 40
    server.files["/en.json"] = content
    monkeypatch.setitem(SOURCES, "rgb_en", Source(url=f"{server.url}/en.json", layout="en.json"))
    (tmp_path / "rgb_en").mkdir()
    (tmp_path / "rgb_en" / "en.json.part").write_bytes(content[:1000])
    assert (download("rgb_en", tmp_path) / "en.json").read_bytes() == content
    assert "no checksum" in caplog.text


def test_a_damaged_download_is_thrown_away(source, server, archive, tmp_path):
    server.files["/scifact.zip"] = archive[:-50] + bytes(50)
    with pytest.raises(DatasetError, match=r"its md5 sum is .*, its publisher gives .*put corpus.jsonl"):
        download("scifact", tmp_path)
    assert not (tmp_path / "scifact").exists()
    server.files["/scifact.zip"] = archive
    download("scifact", tmp_path)


def test_without_a_network_the_error_says_what_to_put_where(monkeypatch, tmp_path):
    gone = Source(url="http://127.0.0.1:9/en_int.json", layout="en_int.json")
    monkeypatch.setitem(SOURCES, "rgb_en_int", gone)
    with pytest.raises(DatasetError) as caught:
        load_text("rgb_en_int", tmp_path)
    for part in (
        "could not be fetched from http://127.0.0.1:9",
        f"put en_int.json into {tmp_path / 'rgb_en_int'}",
    ):
        assert part in str(caught.value)
    assert list(tmp_path.iterdir()) == []


def test_a_server_that_refuses(server, monkeypatch, tmp_path):
    monkeypatch.setitem(SOURCES, "rgb_en", Source(url=f"{server.url}/en.json", layout="en.json"))
    with pytest.raises(DatasetError, match=r"404"):
        download("rgb_en", tmp_path)
    server.files["/en.json"] = b'{"id": 1}\n'
    assert (download("rgb_en", tmp_path) / "en.json").read_bytes() == b'{"id": 1}\n'


def test_tar_archives(server, monkeypatch, tmp_path):
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w:gz") as tarred:
        for name, content in (
            ("collection.tsv", b"1\tx\n"),
            ("queries.dev.small.tsv", b"9\tq\n"),
            ("a.py", b""),
        ):
            info = tarfile.TarInfo(name)
            info.size = len(content)
            tarred.addfile(info, io.BytesIO(content))
        link = tarfile.TarInfo("qrels.dev.small.tsv")
        link.type, link.linkname = tarfile.SYMTYPE, "/etc/passwd"
        tarred.addfile(link)
    server.files["/c.tar.gz"] = stream.getvalue()
    known = SOURCES["msmarco"]
    monkeypatch.setitem(
        SOURCES, "msmarco", Source(url=f"{server.url}/c.tar.gz", layout=known.layout, wanted=known.wanted)
    )
    folder = download("msmarco", tmp_path)
    assert files_in(folder) == ["collection.tsv", "queries.dev.small.tsv"]


@pytest.mark.parametrize("content", [b"not an archive", b""])
def test_what_is_no_archive(server, monkeypatch, tmp_path, content):
    server.files["/x.zip"] = content
    monkeypatch.setitem(
        SOURCES, "nq", Source(url=f"{server.url}/x.zip", layout="a file", wanted=("corpus.jsonl",))
    )
    with pytest.raises(DatasetError, match=r"could not be fetched"):
        download("nq", tmp_path)


def test_an_archive_of_something_else(server, monkeypatch, tmp_path):
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as zipped:
        zipped.writestr("other.txt", "x")
    server.files["/x.zip"] = stream.getvalue()
    monkeypatch.setitem(
        SOURCES, "nq", Source(url=f"{server.url}/x.zip", layout="a file", wanted=("corpus.jsonl",))
    )
    with pytest.raises(DatasetError, match=r"the archive holds none of corpus.jsonl"):
        download("nq", tmp_path)


@pytest.mark.parametrize("kind", ["zip", "tar.gz"])
def test_names_in_archives_lead_nowhere_else(server, monkeypatch, tmp_path, kind):
    names = (
        "../../corpus.jsonl",
        "/corpus.jsonl",
        "a/../../queries.jsonl",
        "..",
        "../evil.txt",
        "qrels/../../test.tsv",
        "C:\\\\corpus.jsonl",
    )
    stream = io.BytesIO()
    if kind == "zip":
        with zipfile.ZipFile(stream, "w") as zipped:
            for name in names:
                zipped.writestr(name, "x")
            link = zipfile.ZipInfo("qrels/link.tsv")
            link.external_attr = 0o120777 << 16
            zipped.writestr(link, "/etc/passwd")
    else:
        with tarfile.open(fileobj=stream, mode="w:gz") as tarred:
            for name in names:
                info = tarfile.TarInfo(name)
                info.size = 1
                tarred.addfile(info, io.BytesIO(b"x"))
            for number, make in enumerate((tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.FIFOTYPE)):
                info = tarfile.TarInfo(f"qrels/{number}.tsv")
                info.type, info.linkname = make, "/etc/passwd"
                tarred.addfile(info)
    server.files[f"/x.{kind}"] = stream.getvalue()
    wanted = ("corpus.jsonl", "queries.jsonl", "qrels/*.tsv")
    monkeypatch.setitem(SOURCES, "nq", Source(url=f"{server.url}/x.{kind}", layout="files", wanted=wanted))
    folder = download("nq", tmp_path / "data")
    made = [path for path in tmp_path.rglob("*") if not path.is_dir()]
    assert made and all(path.is_relative_to(folder) and not path.is_symlink() for path in made)
    assert (
        {"corpus.jsonl", "queries.jsonl"}
        <= set(files_in(folder))
        <= {"corpus.jsonl", "queries.jsonl", "qrels/link.tsv"}
    )
