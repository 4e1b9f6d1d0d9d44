"""Easy data augmentation: synonym replacement, random insertion, random swap, random deletion.

Wei and Zou 2019, https://arxiv.org/abs/1901.11196, section 2.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
import xxhash

from una_fast._kernels.draws.eda import EditedRows
from una_fast._kernels.draws.rows import RowKernel
from una_fast.arrays import ID, MAX_IDS, Ragged, StringTable, row_bounds
from una_fast.augment.kernel_augmentation import KernelAugmentation
from una_fast.augment.radius import is_number
from una_fast.augment.row_draws import DrawSet
from una_fast.augment.settings import check_choice, check_index, checked_seed
from una_fast.augment.speller import Speller
from una_fast.augment.synonyms import Synonyms, open_synonyms
from una_fast.augment.text_rows import TextRows
from una_fast.errors import InputError
from una_fast.index.index import Index
from una_fast.text_table import aligned

NEEDS_SYNONYMS = ("synonym", "insert")


@dataclass(frozen=True)
class EditedSentence:
    """What an operation did to a sentence: its words, how many synonyms each has, and the words that it became."""

    operation: str
    words: list[str]
    n_synonyms: list[int]
    result: list[str]

    def to_dict(self) -> dict[str, Any]:
        """Plain lists, numbers and strings."""
        return asdict(self)

    def __str__(self) -> str:
        rows = [("word", "synonyms"), *zip(self.words, map(str, self.n_synonyms), strict=True)]
        return "\n".join([*aligned(rows, left=(0,)), "", " ".join(self.result)])


class EDA(KernelAugmentation):
    """Edits n = max(1, int(strength x words)) words of each sentence; "delete" edits each word by chance.

    synonym: n distinct words are replaced by one of their synonyms, each at all its places. insert: n times, a synonym
    of a word of the sentence is put at a random place. swap: n times, the words of two random places are exchanged.
    delete: each word is removed with probability `strength`. Each operation changes at least one word if that is
    possible, and leaves no sentence empty.

    Every draw is a function of (seed, epoch, draw set, row, position, number) alone, as in `Augmenter`. Each operation
    has draws of its own, independent of the other operations and of `Augmenter`.

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
        check_choice("operation", operation)
        check_index(index)
        if not is_number(strength) or not 0 < strength <= 1:  # NaN fails too
            raise InputError(f"strength={strength!r}: it is a share of words, above 0 and up to 1; EDA takes 0.1")
        look_up = open_synonyms(synonyms) if operation in NEEDS_SYNONYMS else lambda word: ()
        self._table = SynonymTable(index, look_up)
        self._operation, self._strength = operation, float(strength)
        self._seed = xxhash.xxh3_64_intdigest(f"eda {operation} {checked_seed(seed)}".encode())
        super().__init__(
            index,
            tokenizer,
            n_jobs,
            {"operation": operation, "strength": strength, "seed": seed, "synonyms": synonyms},
            surface="spaced",
            make_kernel=self._make_kernel,
            extra=self._table.extra,
        )

    def explain(self, sentence: str, epoch: int = 0, *, draw_set: int = 0) -> EditedSentence:
        """What `augment([sentence], epoch)` does; prints as a table."""
        text = self._reader.read([sentence])
        drawn, unseen, n_synonyms = self._edit(text, DrawSet(epoch, draw_set))
        words = [text.word(i, self.index.terms) for i in text.terms.values.tolist()]
        strings = self._table.strings
        result = [strings[i] if i >= 0 else unseen[-1 - i] for i in drawn.values.tolist()]
        return EditedSentence(self._operation, words, n_synonyms.tolist(), result)

    def _make_kernel(self, speller: Speller) -> RowKernel:
        edits = self._operation, self._strength, self._table.synonyms
        return EditedRows(self.index.word_ids, *edits, self._seed, speller.term_tokens)

    def _draw_text(self, text: TextRows, draws: DrawSet) -> tuple[Ragged, StringTable]:
        return self._edit(text, draws)[:2]

    def _edit(self, text: TextRows, draws: DrawSet) -> tuple[Ragged, StringTable, np.ndarray]:
        """The ids of the edited rows; the strings of negative ids; and how many synonyms each word has, int64 (T,)."""
        distinct, local = np.unique(text.terms.values, return_inverse=True)
        words = [text.word(i, self.index.terms) for i in distinct.tolist()]
        names, synonyms, new = self._table.number(distinct, words, len(text.unseen))
        rows, edits = Ragged(local.astype(ID), text.terms.indptr), (self._operation, self._strength, synonyms)
        kernel = EditedRows(rows, *edits, self._seed, numbers=text.keys)
        ids, bounds = kernel.terms(np.arange(len(text.keys)), draws.epoch, draws.number)
        unseen = StringTable.from_strings([*text.unseen, *new])
        return Ragged(names[ids], bounds), unseen, synonyms.lengths()[local]


class SynonymTable:
    """Synonyms of the V terms of an index.

    synonyms: `Ragged` int32 (V rows); extra: the W other synonyms, of ids V to V + W - 1; strings: the
    V + W strings by id.
    """

    def __init__(self, index: Index, look_up: Synonyms):
        self._look_up, self._term_ids = look_up, index.term_ids
        self._extra_ids: dict[str, int] = {}
        found = [look_up(term) for term in index.terms]
        ids = self._ids(found, self._extra_ids, range(index.n_terms, MAX_IDS))
        self.synonyms = Ragged(ids, row_bounds([len(words) for words in found]))
        self.extra = StringTable.from_strings(list(self._extra_ids))
        self.strings = index.terms.followed_by(self.extra) if self._extra_ids else index.terms

    def number(self, ids: np.ndarray, words: Sequence[str], n_unseen: int) -> tuple[np.ndarray, Ragged, list[str]]:
        """Number `words` 0, 1, ..., and their synonyms after them.

        ids: int32 (n,), the id of each of `words`, -1 - k for unseen word k of `n_unseen`. Returns (the id of each
        number, int32; the numbers of each word's synonyms, n rows; the synonyms that have no id, which get the
        negative ids that follow the ids of the unseen words).
        """
        found = [self._look_up(word) for word in words]
        new: dict[str, int] = {}
        names = self._ids(found, new, range(-1 - n_unseen, -MAX_IDS, -1))
        bounds = row_bounds([len(synonyms) for synonyms in found])
        numbers = np.arange(len(words), len(words) + bounds[-1], dtype=ID)
        return np.concatenate([ids, names]), Ragged(numbers, bounds), list(new)

    def _ids(self, found: Iterable[Sequence[str]], new: dict[str, int], free: range) -> np.ndarray:
        """int32: the id of each word of the lists; words that have none get the next ones of `free`, in `new`."""
        words = [word for synonyms in found for word in synonyms]
        ids = self._term_ids.find(StringTable.from_strings(words))
        for i in np.flatnonzero(ids < 0).tolist():
            extra = self._extra_ids.get(words[i])
            ids[i] = new.setdefault(words[i], free[len(new)]) if extra is None else extra
        return ids
