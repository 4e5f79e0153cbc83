"""Kernels by expansion and minimality, with judges that know, that err and that cannot tell."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dartboard.errors import ConfigError
from dartboard.mining.cases import Case
from dartboard.mining.context_pool import ContextPool, PooledContext, PoolSettings, build_pool
from dartboard.mining.corpora.base import Document
from dartboard.mining.judges.base import Verdict
from dartboard.mining.kernels import find_kernel
from dartboard.mining.kernels.expansion import CandidateSearch, Minimality, same_words
from dartboard.mining.kernels.voting import Panel, SpentError, leader
from tests.examples import examples
from tests.mining.knowing import TOWNS, KnowingJudge, town_corpus

CORPUS = town_corpus()


def case_of(*targets: str, name: str = "case") -> Case:
    return Case(id=name, question="Who rules where, and over which water?", targets=targets)


def pool_of(case: Case) -> ContextPool:
    return build_pool(case, CORPUS, PoolSettings(random_negatives=2, hard_negatives=2, neighbours=0))


def find(judge, *targets, name="case", **more):
    case = case_of(*targets, name=name)
    return find_kernel(case, pool_of(case), CORPUS, judge, **more)


def test_a_kernel_grows_by_what_is_missing_and_is_minimal():
    judge = KnowingJudge({"case": [["Avon.river"], ["Ghent.mayor"], ["Kiel.river"]]})
    kernel = find(judge, "Avon.river")
    assert kernel.contexts == ("Avon.river", "Ghent.mayor", "Kiel.river")
    assert kernel.status == "minimal"
    assert kernel.alternatives == ()
    assert kernel.calls == len(judge.asked) == kernel.usage.calls
    first = kernel.trail[0]
    assert (first.stage, first.contexts, first.label) == ("expand", ("Avon.river",), "NO")
    assert first.missing == "the mayor of Ghent"
    assert {step.stage for step in kernel.trail} == {"expand", "leave out", "replace"}


def test_a_wrong_target_goes_out_again():
    judge = KnowingJudge({"case": [["Ghent.mayor"]]})
    kernel = find(judge, "Avon.bridge")
    assert (kernel.contexts, kernel.status) == (("Ghent.mayor",), "minimal")


def test_it_starts_from_the_question_where_there_is_no_target():
    judge = KnowingJudge({"case": [["Hull.river"], ["Jena.mayor"]]})
    assert find(judge).contexts == ("Hull.river", "Jena.mayor")


def test_the_other_spelling_is_an_alternative():
    judge = KnowingJudge({"case": [["Avon.mayor", "Avon.mayor.copy"], ["Kiel.river"]]})
    kernel = find(judge, "Avon.mayor")
    assert kernel.contexts == ("Avon.mayor", "Kiel.river")
    assert kernel.alternatives == (("Avon.mayor.copy", "Kiel.river"),)
    assert find(judge, "Avon.mayor", alternatives=0).alternatives == ()


def test_a_judge_without_a_prompt_is_asked_once_a_set():
    judge = KnowingJudge({"case": [["Avon.river"], ["Ghent.mayor"]]}, prompt_version="")
    kernel = find(judge, "Avon.river")
    assert kernel.status == "minimal"
    assert all(attempt == 0 for _, attempt in judge.asked)
    assert len(set(judge.asked)) == len(judge.asked)


def test_without_a_corpus_the_pool_is_searched(tmp_path, monkeypatch):
    monkeypatch.setenv("DARTBOARD_CACHE", str(tmp_path))
    case = case_of("Avon.river")
    pool = ContextPool(
        case,
        "Avon.river",
        [PooledContext(CORPUS.get(name), ("target",)) for name in ("Avon.river", "Brno.mayor", "Cork.river")],
    )
    judge = KnowingJudge({"case": [["Avon.river"], ["Cork.river"]]})
    kernel = find_kernel(case, pool, None, judge)
    assert kernel.contexts == ("Avon.river", "Cork.river")


class Unsure:
    name = "unsure"

    def judge(self, case, contexts, *, attempt=0):
        return Verdict(label="UNSURE")


def test_a_judge_that_cannot_tell_leaves_it_unresolved():
    kernel = find(Unsure(), "Avon.river", most_rounds=3)
    assert (kernel.contexts, kernel.status, kernel.calls) == ((), "unresolved", 4)


class Doubtful(KnowingJudge):
    """Says UNSURE in place of NO where two or more are shown."""

    def judge(self, case, contexts, *, attempt=0):
        verdict = super().judge(case, contexts, attempt=attempt)
        unsure = verdict.label == "NO" and len(contexts) > 1
        return Verdict(label="UNSURE", missing=verdict.missing) if unsure else verdict


def test_needs_that_nobody_confirms_leave_it_sufficient():
    judge = Doubtful({"case": [["Avon.river"], ["Ghent.mayor"], ["Kiel.river"]]})
    kernel = find(judge, "Avon.river")
    assert (len(kernel.contexts), kernel.status) == (3, "sufficient")


@pytest.mark.parametrize(("most_calls", "status"), [(1, "unresolved"), (6, "sufficient"), (100, "minimal")])
def test_calls_are_bounded(most_calls, status):
    judge = KnowingJudge({"case": [["Avon.river"], ["Ghent.mayor"], ["Kiel.river"]]})
    kernel = find(judge, "Avon.river", most_calls=most_calls)
    assert kernel.status == status
    assert kernel.calls <= most_calls


def test_votes_mend_a_judge_that_errs():
    names = [f"{town}.{what}" for town in TOWNS for what in ("mayor", "river")]
    needs = {f"c{at}": [[names[at]], [names[(at * 7 + 5) % 24]]] for at in range(24)}
    exact = {}
    for votes in (1, None):
        judge = KnowingJudge(needs, flips=0.1)
        found = [find(judge, needs[name][0][0], name=name, votes=votes) for name in needs]
        exact[votes] = sum(
            set(kernel.contexts) == {one for group in needs[kernel.case] for one in group} for kernel in found
        )
    assert exact[None] >= 22 > exact[1]


def test_the_same_judge_gives_the_same_kernel():
    needs = {"case": [["Avon.river"], ["Ghent.mayor"]]}
    assert find(KnowingJudge(needs, flips=0.2), "Avon.river") == find(
        KnowingJudge(needs, flips=0.2), "Avon.river"
    )


@examples(40)
@given(st.sets(st.integers(0, 35), min_size=1, max_size=5), st.integers(0, 35))
def test_any_kernel_within_reach_is_found_exactly(rows, start):
    names = [document.fqn for document in CORPUS if "copy" not in document.fqn]
    wanted = {names[row] for row in rows}
    judge = KnowingJudge({"case": [[name] for name in sorted(wanted)]}, prompt_version="")
    kernel = find(judge, names[start], most_rounds=12, alternatives=0)
    assert (set(kernel.contexts), kernel.status) == (wanted, "minimal")


def test_junk_of_a_round_goes_in_a_few_calls():
    documents = list(CORPUS)[:16]
    judge = KnowingJudge({"case": [[documents[3].fqn]]}, prompt_version="")
    panel = Panel(case_of(), judge, votes=1)
    shrinking = Minimality(panel, documents)
    shrinking.run([documents])
    assert [one.fqn for one in shrinking.kept] == [documents[3].fqn]
    assert shrinking.proved and panel.calls <= 9


class Scripted:
    """Gives labels one after another."""

    name, prompt_version = "scripted", "1"

    def __init__(self, labels):
        self.labels = list(labels)

    def judge(self, case, contexts, *, attempt=0):
        label = self.labels[attempt]
        return Verdict(label=label, missing=f"wish {attempt}" if label != "YES" else "")


@pytest.mark.parametrize(
    ("labels", "label", "calls"),
    [
        (["NO", "NO"], "NO", 2),
        (["YES", "YES", "YES"], "YES", 3),
        (["NO", "YES", "NO", "NO"], "NO", 4),
        (["YES", "NO", "YES", "YES", "YES"], "YES", 5),
        (["YES", "NO"] * 3 + ["YES"], "YES", 7),
        (["YES", "NO", "UNSURE"] * 2 + ["UNSURE"], "UNSURE", 7),
        (["UNSURE", "UNSURE"], "UNSURE", 2),
    ],
)
def test_votes_are_cast_until_one_leads(labels, label, calls):
    panel = Panel(case_of(), Scripted(labels))
    assert panel.decide("s", [Document("a", "A")]) == label
    assert panel.calls == calls
    assert panel.decide("s", [Document("a", "A")]) == label and panel.calls == calls
    assert panel.trail[0].votes == tuple(labels[:calls])


def test_a_first_vote_is_not_asked_for_again_and_wishes_come_from_the_last_no():
    panel = Panel(case_of(), Scripted(["NO", "YES", "NO", "NO"]))
    document = Document("a", "A")
    assert panel.missing([document]) == ""
    assert panel.first("s", [document]) == "NO" == panel.first("s", [document])
    assert panel.calls == 1 and panel.missing([document]) == "wish 0"
    assert panel.decide("s", [document]) == "NO" and panel.missing([document]) == "wish 3"


def test_a_tie_is_unsure():
    assert leader([Verdict(label="YES"), Verdict(label="NO")]) == "UNSURE"


def test_a_spent_panel_says_so():
    panel = Panel(case_of(), Scripted(["NO", "NO"]), most_calls=1)
    with pytest.raises(SpentError, match="1 calls"):
        panel.decide("s", [Document("a", "A")])


@pytest.mark.parametrize("wrong", [{"votes": 0}, {"most_calls": 0}, {"most_rounds": -1}])
def test_bounds_are_checked(wrong):
    with pytest.raises(ConfigError, match=next(iter(wrong))):
        find(Unsure(), "Avon.river", **wrong)


def test_names_in_a_wish_are_found_first():
    case = case_of("Avon.river")
    search = CandidateSearch(pool_of(case), CORPUS)
    assert search.candidates("Lodz.bridge, perhaps", [CORPUS.get("Avon.river")])[0].fqn == "Lodz.bridge"


def test_candidates_repeat_no_known_text_but_replacements_may():
    known = CORPUS.get("Avon.mayor")
    case = case_of("Avon.river")
    twin = Document("Twin", known.text)
    pool = ContextPool(case, None, [PooledContext(twin, ("random",))])
    search = CandidateSearch(pool, CORPUS)
    assert "Twin" not in [one.fqn for one in search.candidates("mayor of Avon", [known])]
    assert "Twin" in [one.fqn for one in search.replacements("mayor of Avon", [known])]


def test_a_question_with_blanks_around_it_is_searched_for():
    case = Case(id="case", question="  Who is the mayor of Avon? ", targets=("Avon.mayor",))
    judge = KnowingJudge({"case": [["Avon.mayor", "Avon.mayor.copy"]]})
    kernel = find_kernel(case, pool_of(case), CORPUS, judge)
    assert (kernel.contexts, kernel.alternatives) == (("Avon.mayor",), (("Avon.mayor.copy",),))


def test_it_ends_where_there_is_nothing_left_to_add(tmp_path, monkeypatch):
    monkeypatch.setenv("DARTBOARD_CACHE", str(tmp_path))
    case = case_of("Avon.river")
    pool = ContextPool(case, "Avon.river", [PooledContext(CORPUS.get("Avon.river"), ("target",))])
    kernel = find_kernel(case, pool, None, KnowingJudge({"case": [["Ghent.mayor"]]}))
    assert (kernel.status, kernel.calls) == ("unresolved", 1)


def test_wishes_in_other_words():
    assert same_words("the mayor of Avon", "Avon: the mayor of it") and same_words("", "")
    assert not same_words("the mayor of Avon", "a bridge in Cork")


class Naming(KnowingJudge):
    """Says what is missing by name, all of it."""

    def judge(self, case, contexts, *, attempt=0):
        verdict = super().judge(case, contexts, attempt=attempt)
        there = {one.fqn for one in contexts}
        missing = ", ".join(group[0] for group in self.needs[case.id] if group[0] not in there)
        return verdict if verdict.label == "YES" else Verdict(label="NO", missing=missing)


def test_what_is_missing_by_name_is_added_at_once():
    judge = Naming({"case": [["Avon.river"], ["Ghent.mayor"], ["Kiel.bridge"]]}, prompt_version="")
    kernel = find(judge, "Avon.river", alternatives=0)
    assert kernel.contexts == ("Avon.river", "Ghent.mayor", "Kiel.bridge")
    assert [step.stage for step in kernel.trail].count("expand") == 2
