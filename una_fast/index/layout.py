"""What the folder of a saved index lists. Saving, loading and binding a tokenizer share this one definition."""

from __future__ import annotations

from typing import Any

import numpy as np

from una_fast.arrays import ID, POINTER, SCORE
from una_fast.corpus.word_tokenizers import Probe, Split, tokenizer_name

KIND, VERSION = "index", 1
SCORE_LAW = 2  # how scores are rounded: 2, correctly, so equal on all processors; 1, in old indexes, as numpy does it
# kinds of folders inside it, each beside its arrays
TOKENS = "token ids"
THRESHOLDS = "thresholds"
KEPT = "kept ids"

# The arrays of the folder, each one-dimensional.
DTYPES: dict[str, type[np.generic]] = {
    "chunks_utf8": np.uint8,
    "chunks_offsets": POINTER,
    "sentences_values": ID,
    "sentences_indptr": POINTER,
    "terms_utf8": np.uint8,
    "terms_offsets": POINTER,
    "words_values": ID,
    "words_indptr": POINTER,
    "document_frequency": POINTER,
    "idf": SCORE,
    "max_tfidf": SCORE,
}


def index_meta(
    sources: list[dict[str, Any]],
    word_tokenizer: str | Split,
    word_probe: Probe | None,
    lowercase: bool,
    score_law: int = SCORE_LAW,
) -> dict[str, Any]:
    """The metadata in the manifest of an index."""
    law = {"score_law": score_law} if score_law > 1 else {}
    name = tokenizer_name(word_tokenizer)
    return {"sources": sources, "word_tokenizer": name, "word_probe": word_probe, "lowercase": lowercase, **law}
