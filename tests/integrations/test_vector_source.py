"""What the frameworks share: models, vectors, knobs, filters."""

import importlib
import os
import re
import subprocess
import sys
from types import SimpleNamespace

os.environ["HAYSTACK_TELEMETRY_ENABLED"] = "False"

import numpy as np
import pytest

from dartboard.errors import ConfigError, InvalidInputError, MissingExtraError, ModelError, install_command
from dartboard.integrations.haystack.retriever import from_haystack
from dartboard.integrations.llama_index.retriever import from_llama_index
from dartboard.integrations.models import ForeignModel, UnknownModel, as_model
from dartboard.integrations.pick_metadata import with_note
from tests.models import WordBag


@pytest.mark.parametrize(
    ("module", "package", "extra"),
    [
        ("langchain", "langchain_core", "langchain"),
        ("llama_index", "llama_index", "llama-index"),
        ("haystack", "haystack", "haystack"),
    ],
)
def test_a_missing_framework_says_what_to_type(monkeypatch, module, package, extra):
    ours = f"dartboard.integrations.{module}"
    for name in [
        name for name in sys.modules if name == ours or name.startswith((f"{ours}.", f"{package}."))
    ]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(MissingExtraError, match=re.escape(install_command(extra))):
        importlib.import_module(ours)


def test_the_package_is_light():
    heavy = ("langchain_core", "llama_index", "haystack", "pydantic", "onnxruntime")
    code = f"import sys, dartboard.integrations; print([m for m in {heavy!r} if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


class Theirs:
    """As LangChain's embeddings look."""

    model = "owner/all-MiniLM-L6-v2"

    def embed_query(self, text):
        return [1.0, 2.0]

    def embed_documents(self, texts):
        return [[float(len(text)), 1.0] for text in texts]


def test_a_foreign_model_is_one_of_ours():
    model = as_model(Theirs())
    assert model.name == "owner/all-MiniLM-L6-v2" and model.sigma == 0.09
    assert model.embedding_dim == 2
    heard = []
    documents = model.encode_task(["a", "bc"], "RETRIEVAL_DOCUMENT", progress=heard.append)
    assert documents.tolist() == [[1, 1], [2, 1]] and documents.dtype == np.float32 and heard == [2]
    assert model.encode("abc").tolist() == [[3, 1]]
    assert model.encode_query("?").tolist() == [1, 2]
    assert model.encode_documents([]).shape == (0, 2)
    assert ":2:" in model.fingerprint


@pytest.mark.parametrize(
    "answer", [[[1.0, 2.0]], [[1.0], [2.0, 3.0]], [["x"], ["y"]], None, [], [[np.nan], [1.0]]]
)
def test_nonsense_of_a_foreign_model_is_refused(answer):
    model = ForeignModel("odd", embed_query=lambda text: [1.0], embed_documents=lambda texts: answer)
    with pytest.raises(ModelError, match=r"'odd' (answered|returned)"):
        model.encode_documents(["a", "b"])


def test_models_by_name_are_loaded_once():
    assert as_model(" default ") is as_model("default") is as_model(None)
    bag = WordBag()
    assert as_model(bag) is bag
    for wrong in (3, "", Theirs, "nonsense:x"):
        with pytest.raises(ConfigError):
            as_model(wrong)


def test_an_unknown_model_encodes_nothing():
    assert UnknownModel().sigma is None
    with pytest.raises(ConfigError, match="not known"):
        UnknownModel().encode_query("tea")


def test_a_note_destroys_nothing():
    metadata = {"dartboard": "mine", "source": "x"}
    noted = with_note(metadata, "dartboard", {"gain": 1.0})
    assert noted == {"dartboard": {"gain": 1.0, "before": "mine"}, "source": "x"}
    assert metadata == {"dartboard": "mine", "source": "x"}
    assert with_note(None, "why", {"gain": 1.0}) == {"why": {"gain": 1.0}}


ROWS = [
    {"year": 2020, "lang": "en", "tags": ["a", "b"]},
    {"year": 2021, "lang": "de", "tags": ["b"]},
    {"year": 2022, "lang": "fr"},
    {"lang": "en", "draft": True},
]


def field(name, operator, value):
    return {"field": f"meta.{name}", "operator": operator, "value": value}


@pytest.mark.parametrize(
    "given",
    [
        field("year", ">=", 2021),
        field("year", "<", 2021),
        field("lang", "==", "en"),
        field("lang", "!=", "en"),
        field("lang", "in", ["en", "fr"]),
        field("lang", "not in", ["en", "fr"]),
        field("year", "==", None),
        field("year", "!=", None),
        {"field": "lang", "operator": "==", "value": "de"},
        {"operator": "AND", "conditions": [field("year", ">", 2019), field("lang", "==", "en")]},
        {"operator": "OR", "conditions": [field("year", ">", 2021), field("draft", "==", True)]},
        {"operator": "NOT", "conditions": [field("year", ">", 2019), field("lang", "==", "en")]},
    ],
)
def test_haystack_filters_mean_what_haystack_says(given):
    from haystack import Document
    from haystack.utils.filters import document_matches_filter

    ours = from_haystack(given)
    for row in ROWS:
        assert ours.matches(row) == document_matches_filter(given, Document(content="x", meta=row)), row


@pytest.mark.parametrize(
    "given",
    [
        {},
        "year > 2020",
        {"operator": "XOR", "conditions": []},
        {"operator": "AND"},
        {"operator": "AND", "conditions": "x"},
        {"field": "meta.year", "operator": ">="},
        {"field": "meta.year", "operator": "~", "value": 1},
        {"field": 3, "operator": "==", "value": 1},
        {"field": "content", "operator": "==", "value": "x"},
    ],
)
def test_haystack_filters_that_cannot_be_said_are_refused(given):
    with pytest.raises(InvalidInputError):
        from_haystack(given)


def test_haystack_ids_and_depth():
    by_id = from_haystack({"field": "id", "operator": "==", "value": "a"})
    assert by_id.matches({}, "a") and not by_id.matches({}, "b")
    assert from_haystack({"field": "id", "operator": "in", "value": ["a", "b"]}).matches({}, "b")
    deep = field("year", ">", 1)
    for _ in range(70):
        deep = {"operator": "NOT", "conditions": [deep]}
    with pytest.raises(InvalidInputError, match="deep"):
        from_haystack(deep)


@pytest.mark.parametrize(
    ("operator", "key", "value"),
    [
        ("==", "lang", "en"),
        ("!=", "lang", "en"),
        (">", "year", 2020),
        (">=", "year", 2020),
        ("<", "year", 2021),
        ("<=", "year", 2021),
        ("in", "lang", ["en", "fr"]),
        ("nin", "lang", ["en", "fr"]),
        ("any", "tags", ["a", "z"]),
        ("all", "tags", ["a", "b"]),
        ("contains", "tags", "b"),
        ("is_empty", "tags", None),
    ],
)
@pytest.mark.parametrize("condition", ["and", "or", "not"])
def test_llama_index_filters_mean_what_llama_index_says(operator, key, value, condition):
    from llama_index.core.vector_stores import MetadataFilter, MetadataFilters
    from llama_index.core.vector_stores.utils import build_metadata_filter_fn

    filters = [
        MetadataFilter(key=key, value=value, operator=operator),
        MetadataFilter(key="lang", value="de"),
    ]
    given = MetadataFilters(filters=filters, condition=condition)
    theirs = build_metadata_filter_fn(lambda id: ROWS[int(id)], given)
    ours = from_llama_index(given)
    assert [ours.matches(row) for row in ROWS] == [theirs(str(place)) for place in range(len(ROWS))]


def test_llama_index_filters_nest_and_refuse():
    from llama_index.core.vector_stores import MetadataFilter, MetadataFilters

    inner = MetadataFilters(
        filters=[MetadataFilter(key="year", value=2020), MetadataFilter(key="year", value=2022)],
        condition="or",
    )
    given = MetadataFilters(filters=[inner, MetadataFilter(key="lang", value="fr")])
    assert [from_llama_index(given).matches(row) for row in ROWS] == [False, False, True, False]
    part = MetadataFilter(key="lang", value="e", operator="text_match")
    for wrong in (MetadataFilters(filters=[part]), 3):
        with pytest.raises(InvalidInputError):
            from_llama_index(wrong)
    deep = SimpleNamespace(filters=[], condition="and")
    deep.filters.append(deep)
    with pytest.raises(InvalidInputError, match="deep"):
        from_llama_index(deep)
