"""Real clients of other rerankers, pointed at a real server: only the URL changes."""

import os
import re
import warnings
from pathlib import Path

import pytest

from dartboard.api.app import create_app
from dartboard.api.keys import Keys
from dartboard.api.settings import ServiceSettings
from tests.api.small_app import serving
from tests.api.test_rerank import COPIES, QUERY, TEXTS

cohere = pytest.importorskip("cohere")


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    folder = tmp_path_factory.mktemp("clients")
    path = folder / "keys.json"
    secret = Keys.open(path, create=True).create("reranking", ["read"])
    settings = ServiceSettings(store=str(folder / "none.db"), home=folder, keys=path, vectors=100)
    with serving(create_app(settings)) as port:
        yield f"http://127.0.0.1:{port}", secret


@pytest.fixture
def client(server):
    url, secret = server
    with cohere.ClientV2(secret, base_url=url) as made:
        yield made


def test_cohere_second_version(client):
    answer = client.rerank(model="rerank-v3.5", query=QUERY, documents=TEXTS, top_n=3, max_tokens_per_doc=100)
    scores = [one.relevance_score for one in answer.results]
    assert len(scores) == 3
    assert scores == sorted(scores, reverse=True)
    assert len({one.index for one in answer.results} & COPIES) == 1
    assert answer.id
    assert answer.meta.api_version.version == "2"
    assert answer.meta.tokens.input_tokens > 50
    assert answer.results[0].dartboard["gain"] > 0


def test_cohere_first_version(server):
    url, secret = server
    with cohere.Client(secret, base_url=url) as client:
        answer = client.rerank(
            model="rerank-english-v3.0",
            query=QUERY,
            documents=[{"text": text} for text in TEXTS],
            top_n=2,
            rank_fields=["text"],
            return_documents=True,
        )
        plain = client.rerank(query=QUERY, documents=TEXTS, top_n=2)
    assert answer.results[0].document.text == TEXTS[answer.results[0].index]
    assert [one.index for one in plain.results] == [one.index for one in answer.results]


def test_cohere_hears_what_is_wrong(server, client):
    with pytest.raises(cohere.UnprocessableEntityError) as caught:
        client.rerank(model="m", query=QUERY, documents=["text"] * 101)
    assert "limited to 100 texts" in caught.value.body["message"]
    with (
        cohere.ClientV2("wrong", base_url=server[0]) as stranger,
        pytest.raises(cohere.UnauthorizedError) as refused,
    ):
        stranger.rerank(model="m", query=QUERY, documents=TEXTS)
    assert "key" in refused.value.body["message"]


def test_langchain(client):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        langchain_cohere = pytest.importorskip("langchain_cohere")
    from langchain_core.documents import Document

    reranker = langchain_cohere.CohereRerank(client=client, model="rerank-v3.5", top_n=3)
    documents = [Document(text, metadata={"page": page}) for page, text in enumerate(TEXTS)]
    kept = reranker.compress_documents(documents, QUERY)
    pages = [document.metadata["page"] for document in kept]
    assert pages == [one["index"] for one in reranker.rerank(documents, QUERY)]
    assert len(set(pages) & COPIES) == 1
    scores = [document.metadata["relevance_score"] for document in kept]
    assert scores == sorted(scores, reverse=True)


def test_the_documentation_runs(server, capsys):
    url, secret = server
    page = Path(__file__).parents[2] / "docs" / "rerank.md"
    blocks = re.findall(r"```python\n(.*?)```", page.read_text(), re.DOTALL)
    assert len(blocks) == 2
    cohere_block, plain_block = (block.replace("http://127.0.0.1:8000", url) for block in blocks)
    names = {}
    exec(compile(cohere_block.replace("any key", secret), str(page), "exec"), names)
    names["client"].__exit__(None, None, None)
    picked = [int(line.split()[0]) for line in capsys.readouterr().out.splitlines()]
    assert 2 in picked, "not both of the first two, which say the same"
    with_key = plain_block.replace("json={", f"headers={{'X-API-Key': '{secret}'}}, json={{")
    exec(compile(with_key, str(page), "exec"), {})
    assert capsys.readouterr().out.endswith("'Copper conducts.']\n")


# Without it, litellm fetches a list of prices when it is imported.
os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"


def own_order(client, k):
    return [one.index for one in client.rerank(model="m", query=QUERY, documents=TEXTS, top_n=k).results]


@pytest.mark.parametrize(
    "provider", ["huggingface", "cohere", "jina_ai", "voyage", "hosted_vllm", "together_ai", "azure_ai"]
)
def test_litellm(server, client, provider):
    with warnings.catch_warnings(action="ignore"):
        litellm = pytest.importorskip("litellm")
        url, secret = server
        calls = [{}, {"top_n": 3}, {"top_n": 3, "return_documents": True}]
        if provider == "voyage":  # without top_n, it sends what Jina's clients send
            calls = calls[1:]
        for more in calls:
            answer = litellm.rerank(
                model=f"{provider}/m", query=QUERY, documents=TEXTS, api_base=url, api_key=secret, **more
            )
            ranked = [one["index"] for one in answer.results]
            assert ranked[:3] == own_order(client, 3)
            assert all(0 < one["relevance_score"] < 1 for one in answer.results)
            if more.get("return_documents"):
                assert answer.results[0]["document"]["text"] == TEXTS[ranked[0]]


@pytest.mark.parametrize(
    ("provider", "path"),
    [
        ("text-embeddings-inference", "/rerank"),
        ("cohere", "/v1/rerank"),
        ("jina", "/v1/rerank"),
        ("voyage", "/v1/rerank"),
    ],
)
def test_rerankers(server, client, provider, path):
    with warnings.catch_warnings(action="ignore"):
        rerankers = pytest.importorskip("rerankers")
        url, secret = server
        ranker = rerankers.Reranker(
            "m", model_type="APIRanker", api_provider=provider, api_key=secret, url=url + path, verbose=0
        )
        found = ranker.rank(QUERY, TEXTS)
        assert [one.document.doc_id for one in found.top_k(len(TEXTS))] == own_order(client, len(TEXTS))
        assert found.results[0].document.text == TEXTS[found.results[0].document.doc_id]
