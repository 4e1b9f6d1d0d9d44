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

from una_fast._kernels.draws.eda import EditedRows, Edits, EditWorkspace, edit_rows
from una_fast._kernels.draws.rows import RowKernel, Workspace
from una_fast._kernels.ids.emit import TermTokens
from una_fast.arrays import ID, Ragged, StringTable
from una_fast.augment.draw_set import DrawSet
from una_fast.augment.kernel_augmentation import KernelAugmentation
from una_fast.augment.radius import is_number
from una_fast.augment.settings import check_choice, check_index, checked_seed
from una_fast.augment.synonym_table import SynonymTable
from una_fast.augment.synonyms import open_synonyms
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


@dataclass(frozen=True)
class EditableText(TextRows):
    """Text whose distinct words and their synonyms are numbered 0, 1, ... for one call.

    local: int32 (T,), the number of each word; names: int32, the id of each number; synonyms: `Ragged`, for the number
    of each distinct word the numbers of its synonyms.
    """

    local: np.ndarray
    names: np.ndarray
    synonyms: Ragged


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

    growth = 2

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
        settings = {"operation": operation, "strength": strength, "seed": seed, "synonyms": synonyms}
        super().__init__(index, tokenizer, n_jobs, settings)

    def explain(self, sentence: str, epoch: int = 0, *, draw_set: int = 0) -> EditedSentence:
        """What `augment([sentence], epoch)` does; prints as a table."""
        text = self._read([sentence])
        words = [text.word(i, self._strings) for i in text.terms.values.tolist()]
        n_synonyms = text.synonyms.lengths()[text.local].tolist()
        drawn = self._draw_text(text, DrawSet(epoch, draw_set))
        return EditedSentence(
            self._operation, words, n_synonyms, [text.word(i, self._strings) for i in drawn.values.tolist()]
        )

    @property
    def _strings(self) -> StringTable:
        return self._table.strings

    def _make_kernel(self) -> RowKernel:
        edits = Edits(self._operation, self._strength, self._table.synonyms)
        return EditedRows(self.index.word_ids, edits, self._seed, self._term_tokens())

    def _make_workspace(self) -> Workspace:
        return EditWorkspace(self._longest_row)

    def _term_tokens(self) -> TermTokens | None:
        if self.tokens is None:
            return None
        terms, first_terms, self._irregular = self.tokens.with_terms(self._table.extra)
        return TermTokens(terms, first_terms, self.tokens.frame, self._irregular)

    def _read(self, sentences: Iterable[str]) -> EditableText:
        """Sentences with the synonyms of their words, seen and unseen."""
        text = self._reader.read(sentences)
        distinct, local = np.unique(text.terms.values, return_inverse=True)
        words = [text.word(i, self._strings) for i in distinct.tolist()]
        names, synonyms, new = self._table.number(distinct, words, len(text.unseen))
        unseen = StringTable.from_strings([*text.unseen, *new])
        return EditableText(text.texts, text.terms, unseen, text.keys, local.astype(ID), names, synonyms)

    def _draw_text(self, text: TextRows, draws: DrawSet) -> Ragged:
        assert isinstance(text, EditableText)
        edits, out = Edits(self._operation, self._strength, text.synonyms), np.empty(2 * len(text.local), dtype=ID)
        bounds = edit_rows(edits, self._seed, text.keys, draws.epoch, draws.number, text.local, text.terms.indptr, out)
        return Ragged(text.names[out[: bounds[-1]]], bounds)
