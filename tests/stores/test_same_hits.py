"""What the contract takes for the same answer."""

from dartboard.testing import same_hits
from dartboard.types import Hit

CLEAR = [Hit("a", 0.9), Hit("b", 0.8), Hit("c", 0.7)]


def test_another_id_is_another_answer_at_every_rank():
    assert same_hits(CLEAR, CLEAR)
    for at in range(3):
        wrong = [*CLEAR]
        wrong[at] = Hit("x", wrong[at].score)
        assert not same_hits(wrong, CLEAR)
    assert not same_hits([Hit("x", 0.9)], CLEAR[:1])
    assert not same_hits([Hit("x", 0.9)], CLEAR, k=1)
    assert not same_hits(CLEAR[:2], CLEAR)
    assert not same_hits([CLEAR[0], CLEAR[0], CLEAR[2]], CLEAR)
    assert not same_hits([Hit("a", 0.95), *CLEAR[1:]], CLEAR)
    assert not same_hits([Hit("a", float("nan")), *CLEAR[1:]], CLEAR)


def test_equals_may_change_places_also_across_the_end():
    tied = [Hit("a", 0.9), Hit("b", 0.9 - 1e-6), Hit("c", 0.5), Hit("d", 0.5 - 1e-6)]
    assert same_hits([tied[1], tied[0], *tied[2:]], tied)
    assert same_hits([tied[0], tied[1], tied[3]], tied, k=3)
    assert not same_hits([tied[0], tied[1], Hit("e", 0.5)], tied, k=3)
    assert not same_hits([tied[0], tied[2], tied[1]], tied, k=3)
