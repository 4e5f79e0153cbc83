"""Encoders of the benchmarks: only verified files are read, and our own parts compute what they should."""

import numpy as np
import pytest

from benchmarks import tables, wheel_models
from benchmarks.encoders import OURS
from benchmarks.natural import NEAREST
from dartboard.embeddings.model_files import PackageFile, sha256_of


def test_a_changed_file_is_refused(tmp_path):
    path = tmp_path / "weights.bin"
    path.write_bytes(b"weights")
    file = PackageFile(package="p", version="1", path="weights.bin", size=7, sha256=sha256_of(path))
    assert wheel_models.fetched(file, tmp_path) == path
    path.write_bytes(b"Weights")
    with pytest.raises(SystemExit, match=r"weights\.bin is not the file of p 1: delete it"):
        wheel_models.fetched(file, tmp_path)


def test_windows_are_those_of_a_slow_loop():
    states = np.arange(12, dtype=np.float32).reshape(4, 3) + 1
    for count, before in ((2, 0), (3, 1), (5, 2)):
        rows = []
        for at in range(4):
            seen = [states[i] if 0 <= i < 4 else np.zeros(3) for i in range(at - before, at - before + count)]
            rows.append(np.concatenate(seen))
        assert np.array_equal(wheel_models._windows(states, count, before), np.stack(rows))


def test_a_sentence_piece_file_becomes_a_tokenizer():
    def message(field, content):
        return bytes([field << 3 | 2, len(content)]) + content

    pieces = {"<unk>": 0.0, "<s>": 0.0, "</s>": 0.0, "▁": -4.0, "▁ab": -1.0, "a": -3.0, "b": -3.0, "c": -2.0}
    content = b"".join(
        message(1, message(1, piece.encode()) + b"\x15" + np.float32(score).tobytes() + b"\x18\x01")
        for piece, score in pieces.items()
    )
    tokenizer = wheel_models.unigram_tokenizer(content)
    assert tokenizer.encode("ab  abc", add_special_tokens=False).tokens == ["▁ab", "▁ab", "c"]


def test_with_copies_the_rule_holds_for_every_encoder():
    """Its lowest share over data sets and conditions is above that of nearest neighbours and of MMR."""
    found = tables.results("encoders")["shares"]
    for by_set in found.values():
        cells = [cell["systems"] for cells in by_set.values() for cell in cells.values()]
        if len(cells) > len(by_set):
            lowest = {name: min(row[name]["both"]["mean"] for row in cells) for name in cells[0]}
            assert lowest[OURS] > max(lowest[NEAREST], lowest["MMR 0.5"], lowest["MMR 0.7"])
