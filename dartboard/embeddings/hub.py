"""Fetch the files of an ONNX model from the Hugging Face hub, or say what to do without it."""

from pathlib import Path

from dartboard.embeddings.folder import LAYOUT, WEIGHTS
from dartboard.errors import MissingExtraError, ModelError


def download(repo_id: str, *, revision: str | None, filename: str | None) -> Path:
    """The local folder of a snapshot that holds the graph, the tokenizer and the small files beside them."""
    try:
        import httpx
        from huggingface_hub import snapshot_download
    except ImportError as error:
        raise MissingExtraError("huggingface_hub", "torch", "Loading a model from the hub") from error
    weights = [filename] if filename else list(WEIGHTS)
    wanted = ["*.json", *weights, *(f"{name}_data" for name in weights)]
    try:
        return Path(snapshot_download(repo_id, revision=revision, allow_patterns=wanted))
    except (OSError, ValueError, RuntimeError, httpx.HTTPError) as error:
        reason = str(error).strip().splitlines() or [type(error).__name__]
        raise ModelError(
            f"model {repo_id!r} could not be fetched from the hub: {reason[0]}. Without network, download it "
            f"elsewhere and call OnnxModel.from_folder on a folder that holds {LAYOUT}"
        ) from error
