"""Other software that does the same work, as functions that accept plain lists."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Sequence
from typing import Any

# Time of the released code as a multiple of one pass of NLTK's word_tokenize over a sentence. Its functions and NLTK's
# were timed in the same process. On another machine, its time is computed as this multiple of NLTK's time.
RELEASED_STATISTICS = 2.45
RELEASED_NEGATIVE_IDS = 5.3  # 2.4 to augment a sentence, 2.9 to tokenise the negative


def nltk_words(sentences: Sequence[str]) -> list[list[str]]:
    """Return the words of each lower-cased sentence by NLTK's Treebank tokenizer."""
    from nltk import word_tokenize

    return [word_tokenize(sentence.lower(), preserve_line=True) for sentence in sentences]


def nlpaug_substitution(words: Sequence[Sequence[str]]) -> Callable[[Sequence[str]], Any] | None:
    """Return nlpaug's TfIdfAug with the statistics of `words`, for up to half a sentence; None if not installed."""
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
    """Return padded ids and mask (B, L) from one call of a Hugging Face fast tokenizer, which uses all cores."""
    return tokenizer(list(sentences), truncation=True, padding="max_length", max_length=max_length, return_tensors="pt")
