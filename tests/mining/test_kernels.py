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
from dartboard.mining.kernels.expansion import CandidateSearch, same_words
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


def kernel_of(judge, *targets, **more):
    return find(judge, *targets, **more).kernel


def test_a_kernel_grows_by_what_is_missing_and_is_minimal():
    judge = KnowingJudge({"case": [["Avon.river"], ["Ghent.mayor"], ["Kiel.river"]]})
    kernel = kernel_of(judge, "Avon.river")
    assert kernel.contexts == ("Avon.river", "Ghent.mayor", "Kiel.river")
    assert kernel.status == "minimal"
    assert kernel.alternatives == ()
    assert kernel.calls == len(judge.asked) and judge.asked[0] == (("Avon.river",), 0)


def test_a_wrong_target_goes_out_again():
    judge = KnowingJudge({"case": [["Ghent.mayor"]]})
    kernel = kernel_of(judge, "Avon.bridge")
    assert (kernel.contexts, kernel.status) == (("Ghent.mayor",), "minimal")


def test_it_starts_from_the_question_where_there_is_no_target():
    judge = KnowingJudge({"case": [["Hull.river"], ["Jena.mayor"]]})
    assert kernel_of(judge).contexts == ("Hull.river", "Jena.mayor")


def label(verdict, **more):
    return Verdict(label=verdict, **more)


def test_a_context_that_answers_alone_is_the_kernel_and_others_are_alternatives():
    judge = KnowingJudge({"case": [["Avon.mayor", "Avon.mayor.copy"]]})
    case = case_of("Avon.mayor")
    pool = pool_of(case)
    pool.contexts.append(PooledContext(CORPUS.get("Avon.mayor.copy"), ("random",)))
    labels = {one.fqn: judge.judge(case, [one]) for one in pool.documents}
    found = find_kernel(case, pool, CORPUS, judge, labels=labels)
    assert (found.kernel.contexts, found.kernel.status) == (("Avon.mayor",), "minimal")
    assert found.kernel.alternatives == (("Avon.mayor.copy",),)
    assert {name for name, verdict in found.labels.items() if verdict.label == "YES"} == {
        "Avon.mayor",
        "Avon.mayor.copy",
    }


def test_a_label_that_votes_do_not_confirm_is_voted_down():
    judge = KnowingJudge({"case": [["Avon.river"], ["Ghent.mayor"]]})
    case = case_of("Avon.river")
    pool = pool_of(case)
    wrong = {one.fqn: label("YES" if one.fqn == "Avon.river" else "NO") for one in pool.documents}
    found = find_kernel(case, pool, CORPUS, judge, labels=wrong)
    assert found.kernel.contexts == ("Avon.river", "Ghent.mayor")
    assert found.labels["Avon.river"].label == "NO" and len(found.labels["Avon.river"].votes) > 2


def test_every_member_has_a_label_and_targets_that_are_not_enough_are_told():
    judge = KnowingJudge({"case": [["Avon.river"], ["Ghent.mayor"], ["Kiel.river"]]})
    found = find(judge, "Avon.river")
    assert set(found.kernel.contexts) <= found.labels.keys() and found.insufficient_targets
    assert not find(judge, "Avon.river", "Ghent.mayor", "Kiel.river").insufficient_targets


def test_a_judge_without_a_prompt_is_asked_once_a_set():
    judge = KnowingJudge({"case": [["Avon.river"], ["Ghent.mayor"]]}, prompt_version="")
    kernel = kernel_of(judge, "Avon.river")
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
    kernel = find_kernel(case, pool, None, judge).kernel
    assert kernel.contexts == ("Avon.river", "Cork.river")


class Unsure:
    name = "unsure"

    def judge(self, case, contexts, *, attempt=0):
        return Verdict(label="UNSURE")


def test_a_judge_that_cannot_tell_leaves_it_unresolved():
    kernel = kernel_of(Unsure(), "Avon.river", most_rounds=3)
    assert (kernel.contexts, kernel.status, kernel.calls) == ((), "unresolved", 4)


class Doubtful(KnowingJudge):
    """Says UNSURE in place of NO where two or more are shown."""

    def judge(self, case, contexts, *, attempt=0):
        verdict = super().judge(case, contexts, attempt=attempt)
        unsure = verdict.label == "NO" and len(contexts) > 1
        return Verdict(label="UNSURE", missing=verdict.missing) if unsure else verdict


def test_needs_that_nobody_confirms_leave_it_sufficient():
    judge = Doubtful({"case": [["Avon.river"], ["Ghent.mayor"], ["Kiel.river"]]})
    kernel = kernel_of(judge, "Avon.river")
    assert (len(kernel.contexts), kernel.status) == (3, "sufficient")


@pytest.mark.parametrize(("most_calls", "status"), [(1, "unresolved"), (6, "sufficient"), (100, "minimal")])
def test_calls_are_bounded(most_calls, status):
    judge = KnowingJudge({"case": [["Avon.river"], ["Ghent.mayor"], ["Kiel.river"]]})
    kernel = kernel_of(judge, "Avon.river", most_calls=most_calls)
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
            set(one.kernel.contexts) == {name for group in needs[one.case] for name in group} for one in found
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
    kernel = kernel_of(judge, names[start], most_rounds=12)
    assert (set(kernel.contexts), kernel.status) == (wanted, "minimal")


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
    assert panel.decide([Document("a", "A")]) == label
    assert panel.calls == calls
    assert panel.decide([Document("a", "A")]) == label and panel.calls == calls


def test_a_first_vote_is_not_asked_for_again_and_wishes_come_from_the_last_no():
    panel = Panel(case_of(), Scripted(["NO", "YES", "NO", "NO"]))
    document = Document("a", "A")
    assert panel.missing([document]) == ""
    assert panel.first([document]) == "NO" == panel.first([document])
    assert panel.calls == 1 and panel.missing([document]) == "wish 0"
    assert panel.decide([document]) == "NO" and panel.missing([document]) == "wish 3"


def test_a_tie_is_unsure():
    assert leader([Verdict(label="YES"), Verdict(label="NO")]) == "UNSURE"


def test_a_spent_panel_says_so():
    panel = Panel(case_of(), Scripted(["NO", "NO"]), most_calls=1)
    with pytest.raises(SpentError, match="1 calls"):
        panel.decide([Document("a", "A")])


@pytest.mark.parametrize("wrong", [{"votes": 0}, {"most_calls": 0}, {"most_rounds": -1}])
def test_bounds_are_checked(wrong):
    with pytest.raises(ConfigError, match=next(iter(wrong))):
        find(Unsure(), "Avon.river", **wrong)


def test_names_in_a_wish_are_found_first():
    case = case_of("Avon.river")
    search = CandidateSearch(pool_of(case), CORPUS)
    assert search.candidates("Lodz.bridge, perhaps", [CORPUS.get("Avon.river")])[0].fqn == "Lodz.bridge"


def test_it_ends_where_there_is_nothing_left_to_add(tmp_path, monkeypatch):
    monkeypatch.setenv("DARTBOARD_CACHE", str(tmp_path))
    case = case_of("Avon.river")
    pool = ContextPool(case, "Avon.river", [PooledContext(CORPUS.get("Avon.river"), ("target",))])
    kernel = find_kernel(case, pool, None, KnowingJudge({"case": [["Ghent.mayor"]]})).kernel
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
    kernel = kernel_of(judge, "Avon.river")
    assert kernel.contexts == ("Avon.river", "Ghent.mayor", "Kiel.bridge")
    assert judge.asked[1][0] == ("Avon.river", "Ghent.mayor", "Kiel.bridge")
