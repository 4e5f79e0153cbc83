"""A hundred thousand passages about running software, and questions that people would ask of them.

Texts are sentences put together from lists: 4,000 passages, each noted in 25 ways (who saw it, when, where),
as a company's wiki repeats itself. The 4,000 are encoded by the default model; the vector of a note is that
of its passage, moved to a cosine of about .94. Questions are encoded by the service, as real ones are.
"""

import json
import random
import tempfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np

DIM, NOTES, SHARE_REPEATED, HOT = 384, 25, 0.1, 100
_APART = 0.36

SYSTEMS = (
    "billing service", "checkout page", "search cluster", "message broker", "image pipeline", "login service",
    "mobile gateway", "report builder", "recommendation engine", "inventory database", "shipping tracker",
    "audit log", "mail sender", "data warehouse", "feature store", "chat backend", "video encoder",
    "partner interface", "pricing engine", "fraud detector", "document archive", "session cache",
    "build farm", "metrics collector", "invoice printer", "stock feed", "map renderer", "survey tool",
    "support desk", "training cluster", "voice assistant", "calendar sync", "file share", "backup service",
    "ad server", "payment gateway", "load balancer", "event calendar", "geo index", "identity provider",
)  # fmt: skip
COMPONENTS = (
    "worker pool", "connection pool", "write queue", "read replica", "cache layer", "scheduler", "retry loop",
    "nightly job", "index", "health check", "rate limiter", "token store", "config loader", "log shipper",
    "schema migration", "import script", "export task", "webhook handler", "leader election", "memory limit",
    "disk volume", "network proxy", "certificate", "time zone table", "search filter",
)  # fmt: skip
SYMPTOMS = (
    "falls behind", "runs out of memory", "times out", "returns stale results", "drops requests",
    "restarts every few minutes", "answers twice", "locks up", "fills the disk", "loses its connection",
    "rejects valid input", "slows down", "misses its schedule", "reports wrong totals", "refuses to start",
    "leaks file handles",
)  # fmt: skip
CAUSES = (
    "the default limit is far too low for the traffic of a campaign",
    "one tenant sends ten times as much as all others together",
    "a library update changed how connections are given back",
    "the clock of two machines differs by more than the lease",
    "the table has grown beyond what its index was made for",
    "retries of a failing call pile up behind each other",
    "the new compression setting costs more processor time than it saves",
    "a forgotten test job reads the same partition all day",
    "the certificate of an upstream expired over the weekend",
    "garbage collection pauses are longer than the heartbeat allows",
    "the queue is ordered by age and never skips a poisoned entry",
    "the deployment halved the number of replicas without anybody noticing",
)  # fmt: skip
REMEDIES = (
    "Raise the limit, watch it for a day, and write down the new value.",
    "Give the noisy tenant a quota of its own and tell its owners.",
    "Pin the old version until the fix is released, then upgrade one region at a time.",
    "Set up time synchronisation again and shorten the lease to ten seconds.",
    "Rebuild the index with more partitions while reads go to the replica.",
    "Add a jittered back-off and give up after five attempts.",
    "Turn compression off for small payloads.",
    "Stop the job, and alert on readers that nobody owns.",
    "Renew the certificate, and check expiry dates every morning.",
    "Lower the heap, use smaller batches, and lengthen the heartbeat.",
    "Move poisoned entries aside after three tries so that others can pass.",
    "Restore the replicas and make their number part of the review.",
)  # fmt: skip
MOMENTS = (
    "after a deployment", "during the night", "at the end of the month", "when traffic doubles",
    "after a failover", "on the first request", "while a backup runs", "since the last upgrade",
    "when two regions disagree", "under load",
)  # fmt: skip
PLACES = ("Dublin", "Osaka", "Toronto", "Nairobi", "Lisbon", "Oslo", "Lima", "Pune", "Graz", "Perth")
SHORT_FORMS = (
    "{system} {component} {symptom}",
    "why {component} of {system} {symptom}",
    "fix {component} that {symptom} {system}",
    "{component} {symptom}{moment} {system}",
    "what if {system} {symptom} {component}",
)
LONG_FORMS = (
    "Why is it that the {component} of the {system} {symptom}{moment}?",
    "What helps when the {system}'s {component} {symptom}{moment}?",
    "How do I fix a {component} in the {system} that {symptom}{moment}?",
    "{system}: {component} {symptom}{moment}, any ideas?",
    "Who knows why our {system} {symptom}{moment}? Is it the {component}?",
)


def passages(count: int) -> Iterator[tuple[str, str, int]]:
    """Text, source and number of the passage behind it, of ``count`` notes."""
    for number in range(count):
        base, note = divmod(number, NOTES)
        draw = random.Random(number)
        seen = (
            f"Seen in {draw.choice(PLACES)} on day {draw.randint(1, 365)}, ticket {100_000 + number}; "
            f"{draw.choice(('confirmed', 'suspected', 'closed', 'reopened'))} by team {draw.randint(1, 60)}."
        )
        yield f"{_passage(base)} {seen}", f"{SYSTEMS[base % len(SYSTEMS)]}/{note}.md", base


def _passage(base: int) -> str:
    draw = random.Random(f"passage {base}")
    system, component, symptom = SYSTEMS[base % len(SYSTEMS)], draw.choice(COMPONENTS), draw.choice(SYMPTOMS)
    at = draw.randrange(len(CAUSES))
    return (
        f"The {component} of the {system} {symptom} {draw.choice(MOMENTS)}, mostly because {CAUSES[at]}. "
        f"{REMEDIES[at]} {draw.choice(REMEDIES)}"
    )


def questions(count: int, *, seed: int, long: bool = False) -> list[str]:
    """One in ten is a repeat from a hundred hot questions; of the others, none comes twice in one list.

    Most are as long as what people type: 11 word pieces at the median, where MS MARCO's queries have 9. Long
    ones are whole sentences: 19, as HotpotQA's questions (20).
    """
    forms = LONG_FORMS if long else SHORT_FORMS
    draw = random.Random(f"questions {seed}")
    hot = [_question(random.Random(f"hot {number}"), forms) for number in range(HOT)]
    known = set(hot)
    asked: list[str] = []
    while len(asked) < count:
        if draw.random() < SHARE_REPEATED:
            asked.append(draw.choice(hot))
            continue
        new = _question(draw, forms)
        if new not in known:
            known.add(new)
            asked.append(new)
    return asked


def _question(draw: random.Random, forms: tuple[str, ...]) -> str:
    return draw.choice(forms).format(
        component=draw.choice(COMPONENTS),
        system=draw.choice(SYSTEMS),
        symptom=draw.choice(SYMPTOMS),
        moment=draw.choice(("", f" {draw.choice(MOMENTS)}")),
    )


def vectors(count: int) -> np.ndarray:
    """``(count, 384)`` float32, unit length."""
    from dartboard.embeddings.by_name import default_model

    bases = [_passage(base) for base in range(-(-count // NOTES))]
    known = default_model().encode_documents(bases)
    rng = np.random.default_rng(5)
    noise = rng.standard_normal((count, DIM), dtype=np.float32)
    noise *= _APART / np.linalg.norm(noise, axis=1, keepdims=True)
    moved = known[np.arange(count) // NOTES] + noise
    return np.asarray(moved / np.linalg.norm(moved, axis=1, keepdims=True), dtype=np.float32)


def prepared(count: int) -> Path:
    """The folder with ``index.dartboard`` and ``vectors.npy``, made once and kept with temporary files."""
    folder = Path(tempfile.gettempdir()) / f"dartboard-load-{count}-2"
    done = folder / "done.json"
    if done.exists():
        return folder
    folder.mkdir(parents=True, exist_ok=True)
    made = vectors(count)
    np.save(folder / "vectors.npy", made)
    _index(folder / "index.dartboard", count, made)
    done.write_text(json.dumps({"chunks": count}))
    return folder


def _index(path: Path, count: int, made: np.ndarray) -> None:
    from dartboard.embeddings.by_name import default_model
    from dartboard.engine import Engine
    from dartboard.stores import Record
    from dartboard.stores.records import with_fingerprints

    for old in path.parent.glob(path.name + "*"):
        old.unlink()
    batch: list[Record] = []
    with Engine.open(str(path), model=default_model()) as engine:
        collection = engine.create()
        for number, (text, source, _) in enumerate(passages(count)):
            batch.append(Record(f"n{number}", text, made[number], {"source": source}))
            if len(batch) == 5000 or number == count - 1:
                collection.upsert(with_fingerprints(batch))
                batch = []
        engine.search("warm", k=1)  # builds and saves the indexes
