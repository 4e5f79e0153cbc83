"""``select`` takes what people have: frames, columns of vectors, tensors, anything with ``__array__``."""

import re
import subprocess
import sys

import numpy as np
import pytest

from dartboard.errors import InvalidInputError, MissingExtraError, install_command
from dartboard.selection import select
from tests.selection.pools import topical

QUERY, VECTORS = topical(80, seed=5, dim=24)
PICKS = select(VECTORS, QUERY, k=5).indices.tolist()


class Wrapped:
    """An array in another library's clothes."""

    def __init__(self, values):
        self._values = values

    def __array__(self, dtype=None, copy=None):
        return np.array(self._values, dtype=dtype)


@pytest.mark.parametrize(
    "make",
    [
        np.asarray,
        Wrapped,
        np.asfortranarray,
        lambda values: values.astype(np.float64),
        lambda values: values.tolist(),
        lambda values: [row for row in values],  # noqa: C416
        lambda values: tuple(map(tuple, values.tolist())),
    ],
)
def test_arrays_and_lists(make):
    assert (
        list(select(make(VECTORS), make(QUERY[None])[0] if make is not Wrapped else Wrapped(QUERY), k=5))
        == PICKS
    )


def test_frames_and_columns():
    pandas = pytest.importorskip("pandas")
    numbers = pandas.DataFrame(VECTORS)
    column = pandas.Series(list(VECTORS))
    lists = pandas.Series(VECTORS.tolist())
    for given in (numbers, column, lists, column.to_frame(), numbers.astype(object)):
        assert list(select(given, pandas.Series(QUERY), k=5)) == PICKS


def test_positions_do_not_depend_on_labels():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"embedding": list(VECTORS), "n": range(80)}, index=np.arange(80)[::-1])
    found = select(frame["embedding"], QUERY, k=5)
    assert frame.iloc[found]["n"].tolist() == frame.iloc[found, 1].tolist() == PICKS
    assert frame["n"].iloc[found].tolist() == PICKS
    assert frame.iloc[select(frame["embedding"], QUERY, token_budget=1, costs=[2] * 80)].empty


def test_sources_of_a_frame_go_by_position():
    pandas = pytest.importorskip("pandas")
    labels = [f"s{place % 7}" for place in range(80)]
    shuffled = pandas.Series(labels, index=np.random.default_rng(0).permutation(80))
    wanted = select(VECTORS, QUERY, k=7, max_per_source=1, sources=labels)
    assert list(select(VECTORS, QUERY, k=7, max_per_source=1, sources=shuffled)) == list(wanted)
    assert list(select(VECTORS, QUERY, k=7, max_per_source=1, sources=np.array(labels))) == list(wanted)
    costs = pandas.Series(np.linspace(1, 3, 80), index=shuffled.index)
    by_list = select(VECTORS, QUERY, token_budget=9, costs=costs.tolist())
    assert list(select(VECTORS, QUERY, token_budget=9, costs=costs)) == list(by_list)


def test_a_mask_that_hides_values_is_refused():
    nothing_hidden = np.ma.masked_array(VECTORS, mask=np.zeros(VECTORS.shape, dtype=bool))
    assert list(select(nothing_hidden, np.ma.masked_array(QUERY), k=5)) == PICKS
    mask = np.zeros(VECTORS.shape, dtype=bool)
    mask[PICKS[0]] = True
    hidden = np.ma.masked_array(VECTORS, mask=mask)
    with pytest.raises(InvalidInputError, match=r"embeddings is a masked array that hides 24 values"):
        select(hidden, QUERY, k=5)
    with pytest.raises(InvalidInputError, match="query is a masked array that hides 1 value,"):
        select(VECTORS, np.ma.masked_array(QUERY, mask=np.arange(24) == 3), k=5)
    scores = np.ma.masked_invalid(np.where(np.arange(80) == 7, np.nan, 1.0))
    with pytest.raises(InvalidInputError, match="scores is a masked array"):
        select(VECTORS, QUERY, k=5, scores=scores)


def test_a_frame_of_the_result():
    pandas = pytest.importorskip("pandas")
    found = select(VECTORS, QUERY, k=5)
    frame = found.to_frame()
    assert isinstance(frame, pandas.DataFrame) and frame.index.tolist() == PICKS
    assert list(frame) == ["similarity", "gain", "coverage", "stands_for"]
    assert frame["gain"].sum() == pytest.approx(frame["coverage"].iloc[-1])
    assert all(pick in stands for pick, stands in frame["stands_for"].items())


def test_without_pandas_the_error_names_the_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(MissingExtraError, match=re.escape(install_command("pandas"))):
        select(VECTORS, QUERY, k=2).to_frame()


def test_tensors():
    torch = pytest.importorskip("torch")
    tensor = torch.from_numpy(VECTORS)
    assert list(select(tensor, torch.from_numpy(QUERY), k=5)) == PICKS
    assert list(select(list(tensor), QUERY, k=5)) == PICKS
    for unreadable in (tensor.clone().requires_grad_(), tensor.to(torch.bfloat16)):
        with pytest.raises(
            InvalidInputError, match=r"got Tensor: .* give tensor.detach\(\).cpu\(\).float\(\)"
        ):
            select(unreadable, QUERY, k=5)


@pytest.mark.parametrize(
    ("cells", "says"),
    [
        ([[1.0, 2.0], None, [3.0, 4.0]], "row 1 has no vector"),
        ([[1.0, 2.0], [1.0, 2.0, 3.0], [3.0, 4.0]], "row 1 has 3 numbers"),
        (["[1.0, 2.0]", "[3.0, 4.0]", "[5.0, 6.0]"], "row 0 is text, not a vector"),
        ([[1.0, 2.0], "[3.0, 4.0]", [5.0, 6.0]], "row 1 is text"),
        ([[1.0, 2.0], ["a", "b"], [5.0, 6.0]], "of numbers"),
    ],
)
def test_a_bad_cell_is_named(cells, says):
    column = np.empty(3, dtype=object)
    for place, cell in enumerate(cells):
        column[place] = cell
    with pytest.raises(InvalidInputError, match=says):
        select(column, [1.0, 2.0], k=1)


def test_a_frame_with_other_columns_is_refused_with_advice():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"text": ["a", "b"], "x": [1.0, 2.0]})
    with pytest.raises(InvalidInputError, match="give the column that holds the vectors"):
        select(frame, [1.0, 2.0], k=1)


def test_selecting_and_printing_import_neither_pandas_nor_torch():
    code = (
        "import sys, numpy as np; from dartboard import select; "
        "found = select(np.eye(9), np.ones(9), k=2); repr(found); found._repr_html_(); "
        "print([name for name in ('pandas', 'torch', 'scipy', 'matplotlib') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_texts_of_a_frame_are_read_by_position():
    pandas = pytest.importorskip("pandas")
    query, rows = topical(20, seed=8, copies=4, noise=0.1)
    words = [f"Place{i % 20} is where river number {i % 20} meets the sea at last." for i in range(100)]
    column = pandas.Series(words, index=range(1099, 999, -1))
    want = select(rows, query, 10, texts=words)
    for given in (column, (word for word in words)):
        assert select(rows, query, 10, texts=given).indices.tolist() == want.indices.tolist()


def test_a_frame_gives_vectors_and_texts():
    pandas = pytest.importorskip("pandas")
    query, rows = topical(20, seed=8)
    texts = [f"Place{i} is where river number {i} meets the sea." for i in range(20)]
    frame = pandas.DataFrame({"embedding": list(rows), "text": texts})
    want = select(rows, query, 5, texts=texts)
    assert select(frame["embedding"], query, 5, texts=frame["text"]).indices.tolist() == want.indices.tolist()
    with pytest.raises(InvalidInputError, match="embeddings"):
        select([1.0, 2.0], [1.0], 1, texts=["a", "b"])


@pytest.mark.parametrize("scale", [1e-60, 1.0, 1e200])
def test_near_duplicates_are_removed_at_any_scale(scale):
    query, rows = topical(12, dtype=np.float64)
    text = "The bridge over the wide river was opened in spring, and everybody came to see it."
    found = select(
        np.repeat(rows, 2, axis=0) * scale, query, 3, texts=[text + str(i // 2) for i in range(24)]
    )
    assert found.near_copies == 12
