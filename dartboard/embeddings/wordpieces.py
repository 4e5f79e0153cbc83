"""The uncased BERT tokenizer, built from the word pieces that the ``blingfire`` package carries as data.

The file is little-endian int32: number 24 is the count of pieces, then come count + 1 ascending offsets
into the string area that follows them. A piece with a leading space starts a word (``" the"``), one
without continues it (``"s"`` is BERT's ``"##s"``). Four special tokens are stored in lower case.
"""

from itertools import pairwise
from pathlib import Path

import numpy as np
from tokenizers import Tokenizer
from tokenizers.models import WordPiece
from tokenizers.normalizers import BertNormalizer
from tokenizers.pre_tokenizers import BertPreTokenizer
from tokenizers.processors import TemplateProcessing

from dartboard.embeddings.wheels import WheelFile, verified_path

WORD_PIECES = WheelFile(
    package="blingfire",
    version="0.1.8",
    path="blingfire/bert_base_tok.i2w",
    size=336_228,
    sha256="1726bb621dcd08fb3cced286e8fd48b98f8e47ff967e8e7565116d0b5f15515c",
)

_COUNT_AT = 24
_SPECIAL = {"[unk]": "[UNK]", "[cls]": "[CLS]", "[sep]": "[SEP]", "[mask]": "[MASK]"}


def bert_uncased_tokenizer() -> Tokenizer:
    """The tokenizer of bert-base-uncased and of the many models that share its vocabulary."""
    vocabulary = {piece: index for index, piece in enumerate(read_pieces(verified_path(WORD_PIECES)))}
    tokenizer = Tokenizer(WordPiece(vocabulary, unk_token="[UNK]", max_input_chars_per_word=100))  # noqa: S106
    tokenizer.add_special_tokens(["[PAD]", *_SPECIAL.values()])
    tokenizer.normalizer = BertNormalizer(clean_text=True, handle_chinese_chars=True, lowercase=True)
    tokenizer.pre_tokenizer = BertPreTokenizer()
    tokenizer.post_processor = TemplateProcessing(
        single="[CLS] $A [SEP]",
        pair="[CLS] $A [SEP] $B:1 [SEP]:1",
        special_tokens=[(token, vocabulary[token]) for token in ("[CLS]", "[SEP]")],
    )
    return tokenizer


def read_pieces(path: Path) -> list[str]:
    """The pieces in the order of their ids, in BERT's own spelling."""
    content = path.read_bytes()
    count = int(np.frombuffer(content, "<i4", count=1, offset=4 * _COUNT_AT)[0])
    offsets = np.frombuffer(content, "<i4", count=count + 1, offset=4 * (_COUNT_AT + 1)).tolist()
    strings = content[4 * (_COUNT_AT + 2 + count) :]
    return [_bert_spelling(strings[start:end].decode()) for start, end in pairwise(offsets)]


def _bert_spelling(piece: str) -> str:
    if not piece.startswith(" "):
        return f"##{piece}"
    return _SPECIAL.get(piece[1:], piece[1:])
