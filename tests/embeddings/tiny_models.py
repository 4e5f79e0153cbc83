"""Random transformers of one layer with the real tokenizer: small enough to be made on the spot."""

from pathlib import Path
from typing import Any

from dartboard.embeddings.model_files import bert_uncased_tokenizer


def save_tiny(folder: Path, kind: str, *, seed: int = 0, config: str = "BertConfig", **options: Any) -> Path:
    """A model of the class ``kind`` in the hub's layout; ``options`` are the configuration's."""
    import torch
    import transformers

    torch.manual_seed(seed)
    small = getattr(transformers, config)(
        hidden_size=16,
        num_hidden_layers=1,
        num_attention_heads=2,
        intermediate_size=32,
        max_position_embeddings=64,
        **options,
    )
    getattr(transformers, kind)(small).eval().save_pretrained(folder)
    special = {f"{name}_token": f"[{name.upper()}]" for name in ("pad", "unk", "cls", "sep", "mask")}
    transformers.PreTrainedTokenizerFast(
        tokenizer_object=bert_uncased_tokenizer(), model_max_length=64, **special
    ).save_pretrained(folder)
    return folder
