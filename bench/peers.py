"""Other software that does the same work, as functions of plain lists."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Sequence
from typing import Any

# Time of the released code, as a multiple of one pass of NLTK's word_tokenize over a sentence; its own functions and
# NLTK's were timed in one process. Its time on another machine is this multiple of NLTK's time there.
RELEASED_STATISTICS = 2.45
RELEASED_NEGATIVE_IDS = 5.3  # 2.4 to augment a sentence, 2.9 to tokenise the negative


def nltk_words(sentences: Sequence[str]) -> list[list[str]]:
    """NLTK's Treebank words of each lower-cased sentence."""
    from nltk import word_tokenize

    return [word_tokenize(sentence.lower(), preserve_line=True) for sentence in sentences]


def nlpaug_substitution(words: Sequence[Sequence[str]]) -> Callable[[Sequence[str]], Any] | None:
    """nlpaug's TfIdfAug with the statistics of `words`, replacing up to half a sentence; None if not installed."""
    try:
        import nlpaug.augmenter.word as augmenters
        import nlpaug.model.word_stats as statistics
    except ImportError:
        return None
    model = statistics.TfIdf()
    model.train([[word for word in sentence if not any(map(str.isspace, word))] for sentence in words])
    with tempfile.TemporaryDirectory() as folder:
        model.save(folder)
        augmenter = augmenters.TfIdfAug(model_path=folder, aug_p=0.5, aug_max=None, tokenizer=str.split)
    return lambda sentences: [augmenter.augment(sentence) for sentence in sentences]


def tokenizer_batch(tokenizer: Any, sentences: Sequence[str], max_length: int = 32) -> Any:
    """Padded ids and mask (B, L) from a Hugging Face fast tokenizer in one call, on all cores it takes."""
    return tokenizer(list(sentences), truncation=True, padding="max_length", max_length=max_length, return_tensors="pt")
