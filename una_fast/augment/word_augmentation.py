"""Text augmentations written in Python: a subclass says what becomes of the words of one sentence."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import xxhash

from una_fast.augment.counter_rng import CounterRNG, SampleKey, integer
from una_fast.augment.surface import QUOTES
from una_fast.augment.text_augmentation import TextAugmentation
from una_fast.errors import InputError
from una_fast.index.index import Index


@dataclass(frozen=True)
class EditedWords:
    """The words of a sentence, and the words that they became."""

    words: list[str]
    result: list[str]

    def to_dict(self) -> dict[str, Any]:
        """Plain lists of strings."""
        return asdict(self)

    def __str__(self) -> str:
        return f"{' '.join(self.words)}\n{' '.join(self.result)}"


class WordAugmentation(TextAugmentation):
    """An augmentation that edits the words of a sentence, one sentence after the other.

    A sentence takes some 10 us, and the tokenizer's time besides where token ids are made. For training on a large
    corpus derive from `KernelAugmentation` instead, with which a sentence takes about 1 us.

    Args:
        index: the corpus.
        seed: any integer; each class has draws of its own.
        tokenizer: a Hugging Face tokenizer; only `token_ids` needs it.
        n_jobs: threads that read the tokenizer's sub-words of the index.
        settings: further arguments of the subclass' constructor, by name.

    """

    def __init__(
        self,
        index: Index,
        seed: int = 42,
        tokenizer: Any = None,
        n_jobs: int | None = None,
        **settings: Any,
    ):
        self._seed = xxhash.xxh3_64_intdigest(f"{type(self).__name__} {integer('seed', seed) % 2**64}".encode())
        super().__init__(index, tokenizer, n_jobs, {"seed": seed, **settings})

    @abstractmethod
    def edit(self, words: list[str], draws: CounterRNG) -> list[str]:
        """The words that replace `words`, of which there is at least one. draws: of this sentence, B = 1."""

    def explain(self, sentence: str, epoch: int = 0, *, sample_index: int = 0) -> EditedWords:
        """The words of `sentence` and of `augment([sentence], epoch)`; prints as two lines."""
        ((words, result),) = self._edit_texts([sentence], SampleKey(epoch, sample_index))
        return EditedWords(words, result)

    def _augment_texts(self, sentences: Iterable[str], draws: SampleKey) -> list[str]:
        return [self._spell(result) for _, result in self._edit_texts(sentences, draws)]

    def _edit_texts(self, sentences: Iterable[str], draws: SampleKey) -> list[tuple[list[str], list[str]]]:
        text = self._reader.read(sentences)
        rows = [text.words(ids, self.index.terms) for ids in text.terms]
        return [(words, self._edit(words, text.keys[i : i + 1], draws)) for i, words in enumerate(rows)]

    def _augment_rows(self, rows: np.ndarray, draws: SampleKey) -> list[str]:
        return [self._spell(self._edit(self.index.words(int(row)), np.array([row]), draws)) for row in rows]

    def _spell(self, words: list[str]) -> str:
        """The words joined by spaces; a quotation mark, for which NLTK has two words, is '"'."""
        marks = QUOTES if self.index.word_tokenizer == "treebank" else ()
        return " ".join('"' if word in marks else word for word in words)

    def _edit(self, words: list[str], key: np.ndarray, draws: SampleKey) -> list[str]:
        result = self.edit([*words], CounterRNG(self._seed, draws.epoch, key, draws.sample_index)) if words else []
        if not isinstance(result, list) or not all(isinstance(word, str) for word in result):
            raise InputError(f"{type(self).__name__}.edit made {result!r} of {words!r}: it must return a list of str")
        return result
