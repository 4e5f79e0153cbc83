"""What a search is asked for: one type that every door makes, and that the engine and the core take."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from difflib import get_close_matches
from functools import cache
from typing import Annotated, Any, Self, TypedDict, get_type_hints

import numpy as np
from annotated_doc import Doc
from annotated_types import Ge, Le, MaxLen

from dartboard.config import RERANKERS, RerankerType, check_choice, check_number, check_whole
from dartboard.embeddings.reader_tokenizer import Tokenizer
from dartboard.errors import ConfigError, InvalidInputError
from dartboard.retrievers.query import check_query
from dartboard.selection import Limits, Method
from dartboard.selection.kernel import Auto
from dartboard.selection.limits import RELEVANCE_BELOW
from dartboard.selection.pool import MOST_QUESTIONS, check_weights
from dartboard.selection.select import method_of, with_pages_before
from dartboard.stores import Filter, parse_filter
from dartboard.types import LARGEST_SIGMA, SMALLEST_SIGMA, FloatArray, check_matrix

DEFAULT_K = 5
TRIAGE = 100
MOST_EACH = 1000
"""Candidates of one question."""
MOST_SEEN = 1000
MOST_CANDIDATES = 2000
"""Of several questions together: selection compares all pairs of candidates."""

_IDS = ("must_include", "exclude", "seen")


@dataclass(frozen=True, slots=True)
class Names:
    """How doors let users call an option, beside its own name.

    Args:
        aliases: names in JSON and in other libraries, taken wherever the own name is.
        flags: further flags on the command line; ``--own-name`` is one of itself.
        panel: the group that it stands in where options are listed.
    """

    aliases: tuple[str, ...] = ()
    flags: tuple[str, ...] = ()
    panel: str = "Search"


_SET = "Set"


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchOptions:
    """How much to select, from what, and how. Checked when it is made, not at the first query.

    This is the one declaration of an option: its type, range, help and names. The command line, the requests
    of the API, MCP and the frameworks derive theirs from it (:func:`declared_options`).

    Raises:
        ConfigError: a value is out of its range; ``field`` is the option.
        InvalidInputError: ``where``, ``also`` or a list of ids are of another type, or a question is blank.
    """

    k: Annotated[
        int | None,
        Ge(1),
        Le(MOST_EACH),
        Doc("How many passages; 5 where no token budget is given."),
        Names(("top_k",), ("-k",), panel=_SET),
    ] = None
    token_budget: Annotated[
        int | None,
        Ge(1),
        Doc("As many passages as fit into so many tokens, for a prompt of limited length."),
        Names(flags=("--tokens", "-t"), panel=_SET),
    ] = None
    offset: Annotated[
        int, Ge(0), Doc("Leave out so many picks: those of earlier pages."), Names(panel=_SET)
    ] = 0
    also: Annotated[
        Sequence[str],
        MaxLen(MOST_QUESTIONS - 1),
        Doc("Further questions answered together with the query, such as the parts of it."),
        Names(flags=("-a",)),
    ] = ()
    weights: Annotated[
        Sequence[float] | None,
        MaxLen(MOST_QUESTIONS),
        Doc("How much the query and each further question count; equal by default."),
    ] = None
    seen: Annotated[
        Sequence[str] | FloatArray,
        MaxLen(MOST_SEEN),
        Doc(
            "What the reader has already, as ids of chunks (in Python also as vectors): it counts as "
            "covered, and only what adds to it is picked."
        ),
        Names(panel=_SET),
    ] = ()
    method: Annotated[
        Method | str,
        Doc("Who picks from the candidates: dartboard, or to compare mmr, top_k, near_duplicate_filter."),
        Names(panel=_SET),
    ] = "dartboard"
    sigma: Annotated[
        float | Auto,
        Ge(SMALLEST_SIGMA),
        Le(LARGEST_SIGMA),
        Doc("Width of P(t|q), in distances; auto takes it from the index's calibration or the candidates."),
        Names(panel=_SET),
    ] = "auto"
    reranker: Annotated[
        RerankerType,
        Doc(
            "Who scores query and passages: cosine, or with a pair scorer crossencoder or hybrid. Without a "
            "pair scorer of your own hybrid takes about 15 ms a question and crossencoder about a second, as "
            "it scores every two passages."
        ),
        Names(("reranker_type",)),
    ] = "cosine"
    triage_k: Annotated[
        int,
        Ge(1),
        Le(MOST_EACH),
        Doc(
            "How many candidates to select from, for each question, and at least twice as many as are shown "
            "up to this page; more cost time and may find more."
        ),
        Names(flags=("--triage",)),
    ] = TRIAGE
    where: Annotated[
        Filter | str | None,
        Doc("Only chunks whose metadata match, such as: year >= 2020."),
        Names(("filter",), ("--filter", "-f")),
    ] = None
    must_include: Annotated[
        Sequence[str], Doc("Ids of chunks that are picked first, whatever they gain."), Names(panel=_SET)
    ] = ()
    exclude: Annotated[Sequence[str], Doc("Ids of chunks that are left out.")] = ()
    max_per_source: Annotated[
        int | None,
        Ge(1),
        Doc("At most so many passages of one document (that agree in source_field)."),
        Names(panel=_SET),
    ] = None
    source_field: Annotated[str, Doc("The metadata field that max_per_source counts."), Names(panel=_SET)] = (
        "source"
    )
    max_per: Annotated[
        Mapping[str, int] | None,
        Doc("At most so many passages that agree in a metadata field; chunks without it are not capped."),
        Names(panel=_SET),
    ] = None
    prefer: Annotated[
        str | None,
        Doc(
            "A metadata field such as version: of near-duplicates, the one with the largest value is picked."
        ),
        Names(panel=_SET),
    ] = None
    min_gain_share: Annotated[
        float,
        Ge(0),
        Le(1),
        Doc("Stop once a pick gains less than this share of what the first gained."),
        Names(panel=_SET),
    ] = 0.0
    relevance_below: Annotated[
        float,
        Ge(0),
        Le(1),
        Doc(
            "Once no passage gains this share of P(t|q), go on with the most relevant ones; 0 goes on by "
            "gain."
        ),
        Names(panel=_SET),
    ] = RELEVANCE_BELOW
    min_similarity: Annotated[
        float | None, Ge(-1), Le(1), Doc("Leave out candidates whose cosine to the query is lower.")
    ] = None
    tokenizer: Annotated[
        Tokenizer | None,
        Doc(
            "Whose tokens the budget counts: a name of tiktoken or a tokenizer.json; by default the "
            "embedding model's."
        ),
        Names(panel=_SET),
    ] = None
    sigma_min: Annotated[float, Ge(1e-12), Le(1), Doc("The smallest sigma that may be given.")] = (
        SMALLEST_SIGMA
    )

    def __post_init__(self) -> None:
        if self.k is None and self.token_budget is None:
            object.__setattr__(self, "k", DEFAULT_K)
        object.__setattr__(self, "method", method_of(self.method))
        if isinstance(self.method, type) or not hasattr(self.method, "select"):
            raise ConfigError(
                f"method must be a name or a selection method, such as 'mmr' or MMR(), got {self.method!r}",
                field="method",
            )
        self._check_numbers()
        check_choice("reranker", self.reranker, RERANKERS)
        object.__setattr__(self, "where", as_filter(self.where))
        for name, what in (("also", "questions"), *dict.fromkeys(_IDS, "chunk ids").items()):
            given = getattr(self, name)
            if name == "seen" and np.ndim(given) == 2:
                object.__setattr__(self, name, check_matrix(given, name="seen"))
            else:
                object.__setattr__(self, name, _strings(name, what, given))
        for text in self.also:
            check_query(text, "a question in also")
        object.__setattr__(self, "weights", _weights(self.weights, len(self.also)))
        for name, option in declared_options().items():
            entries = getattr(self, name)
            if option.most is not None and entries is not None and len(entries) > option.most:
                raise ConfigError(
                    f"{name} has {len(entries)} entries: at most {option.most} are allowed", field=name
                )
        for name, ids in (("exclude", self.exclude), ("seen", self.seen_ids)):
            if both := set(self.must_include) & set(ids):
                raise ConfigError(f"chunk {min(both)!r} is both in must_include and in {name}", field=name)
        for name in ("source_field", "prefer"):
            value = getattr(self, name)
            if not (isinstance(value, str) and value) and not (name == "prefer" and value is None):
                raise ConfigError(f"{name} must be the name of a field, got {value!r}", field=name)
        if self.tokenizer is not None and not (callable(self.tokenizer) or isinstance(self.tokenizer, str)):
            raise ConfigError(
                f"tokenizer must be a name, a file or a function, got {self.tokenizer!r}", field="tokenizer"
            )
        shown = 0 if self.k is None else self.k + self.offset
        if self.triage_k != TRIAGE and self.triage_k < shown <= MOST_EACH:
            raise ConfigError(
                f"triage_k must be at least {shown}, as many as are shown up to this page, got "
                f"{self.triage_k}: leave it out, and there are enough",
                field="triage_k",
            )
        # These check how the limits go together.
        fields = dict.fromkeys(self.max_per, ()) if isinstance(self.max_per, Mapping) else None
        limits = self.limits([], [], [*self.must_include, *self.seen_ids], fields)
        with_pages_before(limits, self.offset, method_of(self.method))

    def _check_numbers(self) -> None:
        """Hold every number that is given to the range that is declared."""
        for name, option in declared_options().items():
            value = getattr(self, name)
            if option.low is None or value is None:
                continue
            low = self.sigma_min if name == "sigma" else option.low
            high = math.inf if option.high is None else option.high
            if name == "sigma":
                if not isinstance(value, str) or value != "auto":
                    check_number(name, value, low, high, " or be 'auto'")
            elif option.type in (int, int | None):
                check_whole(name, value, int(low), high)
            else:
                check_number(name, value, low, high)

    @property
    def candidates_each(self) -> int:
        """How many candidates each question finds: twice as many as are shown, and at least ``triage_k``."""
        shown = 0 if self.k is None else self.k + self.offset
        most = min(MOST_EACH, MOST_CANDIDATES // (1 + len(self.also)))
        return min(max(self.triage_k, 2 * shown), most)

    @property
    def seen_ids(self) -> tuple[str, ...]:
        """The ids in ``seen``; none where it holds vectors."""
        return self.seen if isinstance(self.seen, tuple) else ()

    @property
    def seen_vectors(self) -> FloatArray | None:
        """The vectors in ``seen``, ``(s, d)``; None where it holds ids."""
        return None if isinstance(self.seen, tuple) else np.asarray(self.seen)

    @classmethod
    def of(cls, given: Self | None, changes: "SearchKeywords", function: str = "search") -> Self:
        """``given``, or the defaults, with some options changed.

        Raises:
            TypeError: ``given`` is something else, or an option does not exist; the message has the name
                that was probably meant.
        """
        if given is not None and not isinstance(given, cls):
            raise TypeError(f"options must be SearchOptions, got {given!r}: write {function}(query, k=5)")
        if not changes:
            return cls() if given is None else given
        names = ["query", *(field.name for field in fields(cls))]
        for wrong in changes:
            if wrong not in names:
                meant = option_name(wrong) or next(iter(get_close_matches(wrong, names, 1)), None)
                advice = f"did you mean {meant!r}?" if meant else f"there are {', '.join(names)}"
                raise TypeError(f"{function}() takes no {wrong!r}: {advice}")
        if given is None:
            return cls(**changes)
        return replace(given, **changes)

    def limits(
        self,
        costs: Sequence[float],
        sources: Sequence[Any],
        ids: Sequence[str],
        fields: Mapping[str, Sequence[Any]] | None = None,
    ) -> Limits:
        """The limits of a selection from candidates of these ``ids``.

        ``costs``, ``sources`` and the values of ``max_per`` (``fields``) are one a candidate, where needed.
        """
        places: dict[str, int] = {}
        if self.must_include or self.exclude or len(self.seen):
            places = {id: at for at, id in enumerate(ids)}
        for name in ("must_include", "seen_ids"):
            for id in getattr(self, name):
                if id not in places:
                    option = name.removesuffix("_ids")
                    raise InvalidInputError(
                        f"no chunk {id!r} among the candidates: check {option}", field=option
                    )
        return Limits(
            k=self.k,
            token_budget=self.token_budget,
            costs=None if self.token_budget is None else costs,
            must_include=[places[id] for id in self.must_include],
            exclude=[places[id] for id in self.exclude if id in places],
            max_per_source=self.max_per_source,
            sources=None if self.max_per_source is None else sources,
            max_per=self.max_per,
            fields=fields,
            seen=[places[id] for id in self.seen_ids],
            min_gain_share=self.min_gain_share,
            min_similarity=self.min_similarity,
            relevance_below=self.relevance_below,
        )


@dataclass(frozen=True, slots=True)
class Option:
    """One option as :class:`SearchOptions` declares it: what a door needs to derive its own spelling."""

    name: str
    type: Any
    """Its type in Python, without the annotations."""
    default: Any
    help: str
    low: float | None
    high: float | None
    most: int | None
    """How many entries a list may have."""
    names: Names


@cache
def declared_options() -> Mapping[str, Option]:
    """Every option of a search by its name, in the order of their declaration."""
    hints = get_type_hints(SearchOptions, include_extras=True)
    found = {}
    for field in fields(SearchOptions):
        notes = {type(note): note for note in hints[field.name].__metadata__}
        found[field.name] = Option(
            name=field.name,
            type=hints[field.name].__origin__,
            default=field.default,
            help=notes[Doc].documentation,
            low=notes[Ge].ge if Ge in notes else None,
            high=notes[Le].le if Le in notes else None,
            most=notes[MaxLen].max_length if MaxLen in notes else None,
            names=notes.get(Names, Names()),
        )
    return found


def option_name(name: str) -> str | None:
    """The option that goes by this name, its own or an alias; None where there is none."""
    for option in declared_options().values():
        if name == option.name or name in option.names.aliases:
            return option.name
    return None


def _strings(name: str, what: str, given: Any) -> tuple[str, ...]:
    if isinstance(given, str):
        raise InvalidInputError(f"{name} is a list of {what}, got one string: write [{given!r}]", field=name)
    listed = tuple(given) if isinstance(given, Iterable) else (given,)
    if not all(isinstance(one, str) for one in listed):
        raise InvalidInputError(f"{name} is a list of {what}, got {given!r}", field=name)
    return listed


def _weights(weights: Sequence[float] | None, others: int) -> tuple[float, ...] | None:
    """Weights of the query and of so many other questions, or None."""
    if weights is None:
        return None
    if not others:
        raise ConfigError(
            "weights say how much the query and each question in also count: give also", field="weights"
        )
    check_weights(weights, others + 1)
    return tuple(float(weight) for weight in weights)


def as_filter(where: Filter | str | None) -> Filter | None:
    """A filter from what callers give."""
    if where is None or isinstance(where, Filter):
        return where
    if isinstance(where, str):
        try:
            return parse_filter(where)
        except InvalidInputError as error:
            error.field = "where"
            raise
    raise InvalidInputError(
        f"a filter is text such as 'year >= 2020' or what parse_filter makes, got {type(where).__name__}",
        field="where",
    )


class SearchKeywords(TypedDict, total=False):
    """The same options as keyword arguments: ``engine.search(query, k=8, where="year >= 2020")``."""

    k: int | None
    token_budget: int | None
    offset: int
    also: Sequence[str]
    weights: Sequence[float] | None
    seen: Sequence[str] | FloatArray
    method: Method | str
    sigma: float | Auto
    reranker: RerankerType
    triage_k: int
    where: Filter | str | None
    must_include: Sequence[str]
    exclude: Sequence[str]
    max_per_source: int | None
    source_field: str
    max_per: Mapping[str, int] | None
    prefer: str | None
    min_gain_share: float
    relevance_below: float
    min_similarity: float | None
    tokenizer: Tokenizer | None
    sigma_min: float
