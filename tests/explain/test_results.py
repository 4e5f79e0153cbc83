"""Results as people meet them: an index, a table, a card, JSON."""

import itertools
import json
import re
from xml.etree import ElementTree

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dartboard import Chunk, RetrievalResult
from dartboard.explain.html_card import as_html
from dartboard.explain.records import PER_PICK, as_record, pick_records
from dartboard.explain.result_view import MOST, Pick, View, coverage_facts, percent, view_of
from dartboard.explain.svg_map import COLOURS, INK, PAPER, SOFT, round_gap
from dartboard.plain_text import clean, shortened
from dartboard.selection import (
    Dartboard,
    Limits,
    from_distances,
    from_log_probs,
    log_softmax,
    select,
    select_many,
)
from dartboard.selection.kernel import distances
from dartboard.utils import unit_rows
from tests.examples import examples
from tests.selection.pools import topical
from tests.tea import QUERY as TEA
from tests.tea import filled

QUERY, VECTORS = topical(100, seed=3, copies=1, noise=0.3)
HOSTILE = (
    '</p><script>alert(1)</script><img src=x onerror="alert(2)">&amp; "quoted" \'single\' \x1b[31mred\x07'
)
ACTIVE = {"script", "iframe", "link", "img", "object", "embed", "foreignObject", "a", "use"}


def card_of(html):
    """The card as a tree; it is well-formed, runs nothing, and fetches nothing."""
    tree = ElementTree.fromstring(html)
    for element in tree.iter():
        assert element.tag not in ACTIVE
        for name, value in element.attrib.items():
            assert not name.lower().startswith("on") and name not in {"href", "src", "id", "action"}
            assert not re.search(r"url\(|javascript:|https?:", value)
    style = "".join(element.text or "" for element in tree.iter("style"))
    assert "@import" not in style and "url(" not in style and "<" not in style
    return tree


def rows_of(tree):
    """The cells of the picks' table, line by line."""
    table = next(tree.iter("table"))
    return [["".join(cell.itertext()).strip() for cell in row] for row in table.iter("tr")]


def true_distances(query, vectors):
    unit = unit_rows(np.asarray(vectors), np.float64)
    return (1.0 - unit @ unit_rows(np.asarray(query)[None], np.float64)[0]) / 2.0


# A selection


def test_a_selection_is_an_index():
    found = select(VECTORS, QUERY, k=4)
    assert np.array_equal(VECTORS[found], VECTORS[found.indices])
    assert list(found) == found.indices.tolist() and all(type(one) is int for one in found)
    assert np.asarray(found).dtype == np.intp and np.shares_memory(np.asarray(found), found.indices)
    copied = np.array(found)
    copied[0] = -1
    assert found.indices[0] != -1


def test_the_map_shows_what_was_selected_from():
    found = select(VECTORS, QUERY, k=5)
    shown = view_of(found).map
    assert shown.total == len(shown.names) == 200 and shown.picks == 5
    assert shown.names[:5] == [str(one) for one in found]
    positions = np.array(shown.names, dtype=int)
    assert shown.distance == pytest.approx(true_distances(QUERY, VECTORS)[positions], abs=1e-6)
    radius = np.linalg.norm(shown.points, axis=1)
    assert radius * shown.distance.max() == pytest.approx(shown.distance, abs=1e-9)
    expected = np.exp(-(shown.distance**2) / (2 * found.sigma.value**2))
    assert shown.weight == pytest.approx(expected / expected.sum(), rel=1e-3)
    for order, stands in enumerate(found.stands_for):
        assert set(positions[shown.owner == order]) == set(stands)


def test_the_card_and_the_table_agree_with_the_numbers():
    found = select(VECTORS, QUERY, k=5)
    tree, text = card_of(found._repr_html_()), repr(found)
    for place, pick in enumerate(found):
        row = [str(place + 1), str(pick), f"{found.similarity[place]:.3f}", percent(found.gains[place])]
        assert rows_of(tree)[1 + place][:4] == row
        assert re.search(rf"^{place + 1} +{pick} +{row[2]} +{row[3]} ", text, flags=re.MULTILINE)
    assert text.startswith("5 of 200 candidates by dartboard\n")
    assert f"σ {found.sigma.value:.3g} from the candidates" in text and "█" in text
    bar = next(svg for svg in tree.iter("svg") if svg.get("class") == "dbv-mass")
    wide = [float(one.get("width")[:-1]) / 100 for one in bar.iter("rect") if one.get("class")]
    assert wide == pytest.approx(found.gains.tolist(), abs=1e-4)
    (most,) = [float(line.get("x1")[:-1]) / 100 for line in bar.iter("line")]
    assert most == pytest.approx(found.coverage[-1] / found.bound, abs=1e-4)


def test_the_drawing_is_true():
    found = select(VECTORS, QUERY, k=5)
    shown = view_of(found).map
    svg = next(one for one in card_of(found._repr_html_()).iter("svg") if one.get("class") == "dbv-map")
    dots = {one.find("title").text.split(":")[0]: one for one in svg.iter("circle") if len(one)}
    rings = [one for one in svg.iter("circle") if one.get("class") == "dbv-ring"]
    labels = [one.text for one in svg.iter("text") if one.get("class") == "dbv-scale"]
    unit = float(rings[0].get("r")) / float(labels[0])  # a distance of 1
    assert len(dots) == 200 and len(rings) == len(labels)
    for place, name in enumerate(shown.names):
        where = np.array([float(dots[name].get("cx")), float(dots[name].get("cy"))])
        assert np.linalg.norm(where - 200) == pytest.approx(unit * shown.distance[place], abs=0.5)
    first, other = (float(dots[name].get("r")) for name in (shown.names[0], shown.names[7]))
    assert (first / other) ** 2 == pytest.approx(shown.weight[0] / shown.weight[7], rel=0.1)
    assert sorted(one.text for one in svg.iter("text") if one.get("class") == "dbv-no") == list("12345")
    assert len(list(svg.iter("line"))) == int((shown.owner[5:] >= 0).sum()) > 0


def test_large_pools_show_the_nearest():
    query, vectors = topical(1500, seed=1, dim=32)
    found = select(vectors, query, k=4, must_include=[int(np.argmax(true_distances(query, vectors)))])
    shown = view_of(found).map
    assert len(shown.names) == MOST and shown.total == 1500
    hidden = np.setdiff1d(np.arange(1500), np.array(shown.names, dtype=int))
    assert true_distances(query, vectors)[hidden].min() >= shown.distance[4:].max() - 1e-9
    html = found._repr_html_()
    assert "The 300 nearest of 1,500 candidates are shown." in html and len(html) < 120_000


def test_limits_scores_and_a_vocabulary_show_on_the_map():
    shown = view_of(select(VECTORS, QUERY, k=3, exclude=[0, 1, 2])).map
    assert shown.total == 197 and not {"0", "1", "2"} & set(shown.names)
    scores = np.linspace(0, 1, 200)
    shown = view_of(select(VECTORS, QUERY, k=3, scores=scores)).map
    assert shown.weight == pytest.approx(np.exp(log_softmax(scores))[np.array(shown.names, dtype=int)])
    view = view_of(select(VECTORS, QUERY, k=3, targets=VECTORS[:20], sigma=0.2, exclude=[5]))
    assert (view.map.owner == -1).all() and view.targets_are == "vocabulary"
    assert view.head == "3 of 199 candidates by dartboard"
    assert all(re.fullmatch(r"t1?\d", one) for pick in view.picks for one in pick.stands_for)


@pytest.mark.parametrize("distance", ["scaled_cosine", "euclidean"])
def test_rings_have_the_distance_of_the_selection(distance):
    found = select(VECTORS, QUERY, k=3, distance=distance)
    gaps = np.linalg.norm(VECTORS[found].astype(np.float64) - QUERY, axis=1)
    wanted = gaps if distance == "euclidean" else true_distances(QUERY, VECTORS)[found]
    assert view_of(found).map.distance[:3] == pytest.approx(wanted, abs=1e-6)


def test_distances_are_enough_for_a_map_and_probabilities_for_a_table():
    unit = unit_rows(VECTORS.astype(np.float64))
    lopsided = distances(unit, unit, "scaled_cosine") + np.triu(np.full((200, 200), 0.01), 1)
    to_query = true_distances(QUERY, VECTORS)
    found = Dartboard().select(from_distances(to_query, lopsided), Limits(k=4))
    assert view_of(found).map.distance[:4] == pytest.approx(to_query[found.indices])
    logs = np.log(np.array([[0.9, 0.1, 0.1], [0.1, 0.9, 0.1], [0.1, 0.1, 0.9]]))
    found = Dartboard().select(from_log_probs(np.log([0.5, 0.3, 0.2]), logs), Limits(k=2))
    tree = card_of(found._repr_html_())
    assert view_of(found).map is None and len(rows_of(tree)) == 3 and not list(tree.iter("figure"))
    assert "probabilities as given" in repr(found)


def test_other_selections_show_themselves():
    for found in select_many(np.stack([VECTORS] * 2), np.stack([QUERY, VECTORS[7]]), k=3):
        assert len(rows_of(card_of(found._repr_html_()))) == 4 and "by dartboard" in repr(found)
    assert "by mmr (relevance_weight = 0.7)" in repr(select(VECTORS, QUERY, k=2, method="mmr"))
    nothing = select(VECTORS, QUERY, token_budget=1, costs=np.full(200, 5.0))
    assert repr(nothing).startswith("0 of 200 candidates by dartboard")
    assert not list(card_of(nothing._repr_html_()).iter("table"))
    several = select(VECTORS, VECTORS[:2] + 0.1, k=3, seen=[7])
    assert repr(several).count("for: question ") == 3 and "was covered before" in repr(several)
    assert view_of(several).map.total == 200 and "for: question" in several._repr_html_()


# A search's result


def test_a_result_shows_passages_gains_and_a_map_of_the_picks():
    found = filled(retriever="dense").search(TEA, k=3)
    tree = card_of(found._repr_html_())
    rows = rows_of(tree)
    assert rows[0][:2] == ["#", "passage"] and len(rows) == 1 + 2 * 3
    for place, chunk in enumerate(found.chunks):
        assert rows[1 + 2 * place][1] == chunk.metadata["source"] and rows[2 + 2 * place][1] == chunk.text
        assert chunk.text in repr(found)
    shown = view_of(found).map
    assert shown.distance == pytest.approx((1 - np.array(found.metadata["similarity"])) / 2)
    assert (shown.picks, shown.weight_is) == (3, "gain")
    said = "".join(tree.itertext())
    assert "3 passages of 10 candidates by dartboard, found by dense" in said and "Area: gain." in said


def test_several_questions_copies_and_what_was_seen():
    found = filled(retriever="dense").search(TEA, k=1, also=["how is coffee roasted"], seen=["d"])
    differing = {"id": "x", "year": 1, "differs": [["5", HOSTILE]]}
    copies = [differing, *({"id": f"copy{one}", "year": one} for one in range(4))]
    found = found.with_explanation(copies=[copies])
    tree = card_of(found._repr_html_())
    for text in (repr(found), "\n".join(tree.itertext())):
        assert "for: " in text and "of “how is coffee roasted”" in text and "\x1b" not in text
        assert "was covered before, by what was seen" in text and 'differs: "5" vs "' in text
        assert "copy: copy1 (year 1)" in text and "and 2 more" in text and "copy2" not in text
    first = next(one for one in tree.iter("rect") if one.get("class") == "dbv-pick")
    assert float(first.get("x")[:-1]) > 0.0


def test_nothing_relevant_nothing_found_and_a_result_from_elsewhere():
    bare = RetrievalResult(HOSTILE, [Chunk(HOSTILE, HOSTILE, np.ones(2), {"source": HOSTILE})], [1.0])
    assert rows_of(card_of(bare._repr_html_()))[1][1] == shortened(HOSTILE, 60)
    assert "\x1b" not in repr(bare) and view_of(bare).map is None
    nothing = filled().search(TEA, where="number > 100")
    assert "0 passages of 0 candidates" in repr(nothing)
    assert "0 passages" in "".join(card_of(nothing._repr_html_()).itertext())
    relevance = {**nothing.explanation.relevance, "message": "Nothing relevant found: so."}
    warned = nothing.with_explanation(relevance=relevance)
    assert "Nothing relevant found: so." in repr(warned) and "Nothing relevant found" in warned._repr_html_()


def test_each_pick_as_a_record_and_the_whole_as_json():
    result = filled().search(TEA, k=3)
    records = pick_records(result)
    known = [name for name in PER_PICK if result.metadata.get(name)]
    assert {"gain", "coverage", "similarity", "stands_for", "shares", "retriever_score"} <= {*known}
    for name in known:
        assert [record[name] for record in records] == result.metadata[name]
    found = json.loads(json.dumps(as_record(result)))
    assert list(found)[:2] == ["query", "chunks"]
    assert [(one["rank"], one["id"], one["text"]) for one in found["chunks"]] == [
        (place, chunk.id, chunk.text) for place, chunk in enumerate(result.chunks, start=1)
    ]
    assert found.keys() - {"query", "chunks"} == result.metadata.keys() - set(PER_PICK)


# What is drawn


@given(st.text(st.characters(exclude_categories=("Cn", "Cs")), max_size=400))
@examples(150)
def test_any_text_comes_out_as_it_went_in(text):
    view = View(head=text, facts=(text,), picks=(Pick(name=text, text=text or "x", notes=(text,)),))
    tree = card_of(as_html(view))
    cells = rows_of(tree)
    assert "".join(next(tree.iter("p")).itertext()) == clean(text)
    if clean(text).strip():
        assert cells[1][1] == shortened(text, 60).strip()
        assert cells[2][1] == (2 * shortened(text, 300)).strip()


def luminance(colour):
    parts = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def test_words_and_numbers_are_readable():
    def contrast(colour):
        return 1.05 / (luminance(colour) + 0.05)

    assert PAPER == "#ffffff" and contrast(INK) >= 7 and contrast(SOFT) >= 4.5
    assert all(contrast(colour) >= 4.2 for colour in COLOURS)
    assert all(one != other for one, other in itertools.pairwise(COLOURS))


@pytest.mark.parametrize(("about", "gap"), [(0.11, 0.1), (0.16, 0.2), (3.4, 5.0), (0.8, 1.0), (2.3e-7, 2e-7)])
def test_rings_stand_at_round_distances(about, gap):
    assert round_gap(about) == pytest.approx(gap)


def test_shares_in_words():
    said = {0.0: "0 %", -1.0: "0 %", 1e-9: "<0.1 %", 0.0123: "1.2 %", 0.0996: "10 %", 0.5: "50 %"}
    said |= {0.9971: "99.7 %", 0.99999: ">99.9 %", 1.0: "100 %", float("nan"): "0 %"}
    assert {share: percent(share) for share in said} == said


def test_what_is_covered_in_words():
    words, most = coverage_facts(0.75, 0.8)
    assert most == pytest.approx(0.9375) and "94 %" in words
    words, most = coverage_facts(0.75, 1.0)
    assert most == 0.75 and "no set" in words
    assert coverage_facts(0.9, 0.9) == ("covers 90 % of the probable targets", 1.0)
    assert coverage_facts(0.0, 0.0) == ("covers 0 % of the probable targets", None)


def test_what_a_pick_stands_for_in_words():
    def said(stands_for):
        return Pick(name="1", stands_for=stands_for).stands_for_text(2)

    assert said(("1", "2", "3", "4")) == "itself and 3: 2, 3 …" and said(("t2", "t3")) == "2: t2, t3"
    assert (said(("1",)), said(()), said(None)) == ("itself", "nothing new", "")
