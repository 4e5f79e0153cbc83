"""Small data sets as files, for loaders to read."""

import json


def write_jsonl(path, rows):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


def write_text(path, content):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(content, encoding="utf-8")
    return path


def beir_folder(root, name="tiny", docs=10):
    folder = root / name
    write_jsonl(
        folder / "corpus.jsonl",
        [{"_id": f"d{i}", "title": f"Title {i}", "text": f"Text number {i}."} for i in range(docs)],
    )
    write_jsonl(
        folder / "queries.jsonl",
        [
            {"_id": "q1", "text": "First?", "metadata": {"answers": [["one", "1"], "uno"]}},
            {"_id": "q2", "text": "Second?", "metadata": {}},
            {"_id": "train", "text": "Of another split?"},
        ],
    )
    write_text(
        folder / "qrels" / "test.tsv",
        "query-id\tcorpus-id\tscore\nq1\td0\t1\nq1\td1\t2\nq2\td2\t1\nq2\td3\t0\n",
    )
    return folder
