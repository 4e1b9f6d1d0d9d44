"""Other software that does the same work, as functions that accept plain lists."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Sequence
from typing import Any

# Time of the released code as a multiple of the time that NLTK's word_tokenize takes for a sentence. Both were timed in
# the same process. On another machine, only NLTK is timed, and its time is multiplied by these numbers.
RELEASED_STATISTICS = 2.45
RELEASED_TOKEN_IDS = 5.3  # 2.4 to augment a sentence, 2.9 to tokenise the negative


def nltk_words(sentences: Sequence[str]) -> list[list[str]]:
    """Return the words of each lower-cased sentence by NLTK's Treebank tokenizer."""
    from nltk import word_tokenize

    return [word_tokenize(sentence.lower(), preserve_line=True) for sentence in sentences]


def nlpaug_substitution(words: Sequence[Sequence[str]]) -> Callable[[Sequence[str]], Any] | None:
    """Return a function that replaces up to half of the words of each sentence with nlpaug's TfIdfAug.

    words: the words of the sentences from which TfIdfAug learns its statistics. Returns None without nlpaug.
    """
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
    """Encode all sentences in one call of a Hugging Face fast tokenizer, which uses all cores.

    Returns token ids and attention mask of the shape (n_sentences, max_length).
    """
    return tokenizer(list(sentences), truncation=True, padding="max_length", max_length=max_length, return_tensors="pt")
