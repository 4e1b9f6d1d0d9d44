"""Easy data augmentation: synonym replacement, random insertion, random swap, random deletion.

Wei and Zou 2019, https://arxiv.org/abs/1901.11196, section 2.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import Any, Literal

import numpy as np
import xxhash

from una_fast._kernels.draws.eda import EditedRows
from una_fast._kernels.draws.rows import RowKernel
from una_fast.arrays import ID, RaggedArray, StringTable, row_bounds
from una_fast.augment.counter_rng import SampleKey, integer
from una_fast.augment.kernel_augmentation import KernelAugmentation
from una_fast.augment.radius import is_number
from una_fast.augment.settings import check_choices, check_index
from una_fast.augment.surface import Detokenizer
from una_fast.augment.synonyms import Synonyms, open_synonyms
from una_fast.augment.text_rows import TextRows
from una_fast.augment.word_augmentation import EditedWords
from una_fast.errors import InputError
from una_fast.index.index import Index

NEEDS_SYNONYMS = ("synonym", "insert")


class EDA(KernelAugmentation):
    """Edits n = max(1, int(strength x words)) words of each sentence; "delete" edits each word by chance.

    synonym: n distinct words are replaced by one of their synonyms, each at all its places. insert: n times, a synonym
    of a word of the sentence is put at a random place. swap: n times, the words of two random places are exchanged.
    delete: each word is removed with probability `strength`. Each operation changes at least one word if that is
    possible, and leaves no sentence empty.

    Every draw is a function of (seed, epoch, sample index, row, position, number) alone, as in `Augmenter`. Each
    operation has draws of its own, independent of the other operations and of `Augmenter`.

    Args:
        index: the corpus.
        operation: "synonym", "insert", "swap" or "delete".
        strength: the share of the words, above 0 and up to 1; Wei and Zou take 0.1.
        seed: any integer.
        synonyms: for "synonym" and "insert": None for WordNet (needs nltk and its data), a file of lines
            ``word<TAB>synonym<TAB>...``, or a dict of lists. A synonym may be several words.
        tokenizer: a Hugging Face tokenizer; only `token_ids` needs it.
        n_jobs: threads for large batches; all cores this process may use if None.

    Raises:
        InputError: a setting out of its range, or no WordNet, or a file of synonyms that cannot be read.

    """

    def __init__(
        self,
        index: Index,
        operation: Literal["synonym", "insert", "swap", "delete"] = "synonym",
        strength: float = 0.1,
        seed: int = 42,
        synonyms: str | Path | Mapping[str, Sequence[str]] | None = None,
        tokenizer: Any = None,
        n_jobs: int | None = None,
    ):
        check_choices(EDA.__init__, {"operation": operation})
        check_index(index)
        if not is_number(strength) or not 0 < strength <= 1:  # NaN fails too
            raise InputError(f"strength={strength!r}: it is a share of words, above 0 and up to 1; EDA takes 0.1")
        self._look_up = open_synonyms(synonyms) if operation in NEEDS_SYNONYMS else lambda word: ()
        self._synonyms, extra = _synonyms_of_terms(index, self._look_up)
        self._operation, self._strength = operation, float(strength)
        self._seed = xxhash.xxh3_64_intdigest(f"eda {operation} {integer('seed', seed) % 2**64}".encode())
        super().__init__(
            index,
            tokenizer,
            n_jobs,
            {"operation": operation, "strength": strength, "seed": seed, "synonyms": synonyms},
            surface="spaced",
            extra=extra,
        )

    def explain(self, sentence: str, epoch: int = 0, *, sample_index: int = 0) -> EditedWords:
        """The words of `sentence` and of `augment([sentence], epoch)`; prints as two lines."""
        text = self._reader.read([sentence])
        drawn, strings = self._draw_text(text, SampleKey(epoch, sample_index))
        words = text.words(text.terms.values, self.index.terms)
        return EditedWords(words, [strings[-1 - i] for i in drawn.values.tolist()])

    def _make_kernel(self, detokenizer: Detokenizer) -> RowKernel:
        edits = self._operation, self._strength, self._synonyms
        return EditedRows(self.index.word_ids, *edits, self._seed, detokenizer.term_tokens)

    def _draw_text(self, text: TextRows, draws: SampleKey) -> tuple[RaggedArray, StringTable]:
        """All ids are negative."""
        distinct, local = np.unique(text.terms.values, return_inverse=True)
        words = text.words(distinct, self.index.terms)
        synonyms_of = [*map(self._look_up, words)]
        bounds = row_bounds([*map(len, synonyms_of)])
        synonyms = RaggedArray(np.arange(len(words), len(words) + bounds[-1], dtype=ID), bounds)
        rows, edits = RaggedArray(local.astype(ID), text.terms.indptr), (self._operation, self._strength, synonyms)
        kernel = EditedRows(rows, *edits, self._seed, numbers=text.keys)
        ids, bounds = kernel.terms(np.arange(len(text.keys)), draws.epoch, draws.sample_index)
        strings = StringTable.from_strings([*words, *chain.from_iterable(synonyms_of)])
        return RaggedArray(-1 - ids, bounds), strings


def _synonyms_of_terms(index: Index, look_up: Synonyms) -> tuple[RaggedArray, StringTable]:
    """int32 ids of the synonyms of each of V terms, V rows; and the synonyms that are no terms, of ids from V on."""
    synonyms_of = [*map(look_up, index.terms)]
    words = [*chain.from_iterable(synonyms_of)]
    ids = index.term_ids.find(StringTable.from_strings(words))
    extra: dict[str, int] = {}
    for i in np.flatnonzero(ids < 0).tolist():
        ids[i] = extra.setdefault(words[i], index.n_terms + len(extra))
    return RaggedArray(ids, row_bounds([*map(len, synonyms_of)])), StringTable.from_strings([*extra])
