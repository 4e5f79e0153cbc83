"""Text to terms: identifiers whole and in parts, languages, scripts."""

import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dartboard.errors import ConfigError, MissingExtraError
from dartboard.lexical import Analyzer, analysis

ENGLISH = Analyzer()


@pytest.mark.parametrize(
    "text, terms",
    [
        ("The cats were running.", ["cat", "run"]),
        ("get_user_id", ["get_user_id", "get", "user", "id"]),
        ("HTTPServer", ["httpserver", "http", "server"]),
        ("parseHTML5Doc", ["parsehtml5doc", "pars", "html5", "doc"]),
        ("v1.2.3", ["v1.2.3", "v1", "2", "3"]),
        ("foo.bar()", ["foo.bar", "foo", "bar"]),
        ("self.get_id", ["self.get_id", "self", "get_id", "get", "id"]),
        ("__init__", ["__init__", "init"]),
        ("std::vector<int>", ["std::vector", "std", "vector", "int"]),
        ("p->next", ["p->next", "p", "next"]),
        ("C++ and C#, #tag", ["c++", "c", "c#", "c", "tag"]),
        ("CVE-2024-1234", ["cve-2024-1234", "cve", "2024", "1234"]),
        ("don't; the user’s", ["user"]),
        ("src/main.py", ["src", "main.py", "main", "py"]),
        ("___ -- ... _", []),
        ("", []),
    ],
)
def test_english(text, terms):
    assert ENGLISH.terms(text) == terms


@pytest.mark.parametrize(
    "spelt, query",
    [("UserServices", "userservices"), ("Straße", "STRASSE"), ("ﬁle", "file"), ("ＡＢＣ", "abc")],
)
def test_other_spellings_meet(spelt, query):
    assert set(ENGLISH.terms(query)) <= set(ENGLISH.terms(spelt))


@pytest.mark.parametrize(
    "text, terms",
    [
        ("東京都に行くv2", ["東京", "京都", "都に", "に行", "行く", "v2"]),
        ("水", ["水"]),
        ("हिन्दी भाषा", ["हिन्दी", "भाषा"]),
        ("Привет, мир", ["привет", "мир"]),
        ("cafe\u0301 café", ["café", "café"]),
    ],
)
def test_scripts(text, terms):
    assert Analyzer(stem=False).terms(text) == terms


def test_switches():
    text = "The houses"
    assert Analyzer(stem=False).terms(text) == ["houses"]
    assert Analyzer(stop_words=False).terms(text) == ["the", "hous"]
    assert Analyzer(stem=False, stop_words=False).terms(text) == ["the", "houses"]
    assert Analyzer("german").terms("Die Häuser und die Bäume") == ["haus", "baum"]
    assert Analyzer("french").terms("l'eau et les arbres") == ["eau", "arbre"]
    assert Analyzer("finnish").terms("ja taloissa") == ["ja", "talo"]  # no list of stop words: all stay


@pytest.mark.parametrize("language", analysis.LANGUAGES)
def test_every_language_stems(language):
    assert Analyzer(language).terms("internationalisation")


def test_unknown_language():
    with pytest.raises(ConfigError, match=r"english.*got 'klingon'.*stem=False"):
        Analyzer("klingon")


def test_json_round_trip():
    analyzer = Analyzer("german", stem=False)
    assert Analyzer.from_json(analyzer.to_json()) == analyzer
    for bad in ({}, {"language": "german"}, {"language": 1, "stem": True, "stop_words": True}):
        with pytest.raises(ConfigError, match="expected an analyzer"):
            Analyzer.from_json(bad)


@given(st.text(max_size=60))
def test_any_text(text):
    for term in ENGLISH.terms(text):
        assert term
        assert "\n" not in term
        assert not any(character.isspace() for character in term)


@given(st.text(max_size=60))
def test_a_term_finds_itself(text):
    """Whoever pastes an identifier as it is spelt gets the terms that the passage has for it."""
    for word in analysis.words(text):
        assert ENGLISH.terms(word) == list(ENGLISH.terms_of(word))


def test_threads_share_a_stemmer():
    words = [f"running{n} houses{n} nationally{n}" for n in range(300)] * 4
    alone = [Analyzer("english").terms(text) for text in words]
    analysis._terms_of.cache_clear()
    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(ENGLISH.terms, words)) == alone


def test_missing_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "Stemmer", None)
    analysis._stemmer.cache_clear()
    analysis._terms_of.cache_clear()
    with pytest.raises(MissingExtraError, match=r"stem=False.*pip install .*\[search\]'"):
        ENGLISH.terms("houses")
    assert Analyzer(stem=False).terms("houses") == ["houses"]


def test_import_is_light():
    code = "import sys, dartboard.lexical; print({'bm25s', 'scipy', 'numba', 'Stemmer'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"
