"""Easy data augmentation: synonym replacement, random insertion, random swap, random deletion.

Wei and Zou 2019, https://arxiv.org/abs/1901.11196, section 2.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import Any, Literal

import numpy as np
import xxhash

from una_fast._kernels.draws.eda import EditedRows
from una_fast.arrays import ID, RaggedArray, StringTable, row_bounds
from una_fast.augment.base import EditedWords, KernelRewriter, TextAugmentation, check_choices, check_index
from una_fast.augment.counter_rng import SampleKey, integer
from una_fast.augment.radius import is_number
from una_fast.augment.surface import Detokenizer
from una_fast.augment.text_rows import TextRows
from una_fast.errors import InputError
from una_fast.index.index import Index

NEEDS_SYNONYMS = ("synonym", "insert")
Synonyms = Callable[[str], Sequence[str]]
FETCH = "python -m nltk.downloader wordnet"
# English words that carry grammar rather than meaning: they have no synonyms, as in EDA's code
FUNCTION_WORDS = frozenset(
    """
    a an the this that these those each every either neither some any no none all both few many much more most other
    another such own same i me my mine myself we us our ours ourselves you your yours yourself yourselves he him his
    himself she her hers herself it its itself they them their theirs themselves one who whom whose which what
    am is are was were be been being have has had having do does did doing done will would shall should can could may
    might must ought not n't 's 're 've 'll 'd 'm and or but nor so yet if then else than as because while until unless
    although though since whether of at by for with about against between into through during before after above below
    to from up down in out on off over under upon within without toward towards among along across behind beyond
    again further once here there when where why how very too just only also even ever never now
    """.split()
)


class EDA(TextAugmentation):
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
        self._edit = operation, float(strength)
        self._seed = xxhash.xxh3_64_intdigest(f"eda {operation} {integer('seed', seed) % 2**64}".encode())
        super().__init__(
            index,
            tokenizer,
            n_jobs,
            {"operation": operation, "strength": strength, "seed": seed, "synonyms": synonyms},
        )
        synonyms_of, extra = _synonyms_of_terms(index, self._look_up)
        detokenizer = Detokenizer(index, "spaced", self.tokens, extra)
        kernel = EditedRows(index.word_ids, *self._edit, synonyms_of, self._seed, detokenizer.term_tokens)
        self._rewriter = KernelRewriter(kernel, detokenizer, self._draw_text, n_jobs)

    def explain(self, sentence: str, epoch: int = 0, *, sample_index: int = 0) -> EditedWords:
        """The words of `sentence` and of `augment([sentence], epoch)`; prints as two lines."""
        text = self._reader.read([sentence])
        drawn, strings = self._draw_text(text, SampleKey(epoch, sample_index))
        words = text.words(text.terms.values, self.index.terms)
        return EditedWords(words, [strings[-1 - i] for i in drawn.values.tolist()])

    def _draw_text(self, text: TextRows, key: SampleKey) -> tuple[RaggedArray, StringTable]:
        """All ids are negative."""
        distinct, local = np.unique(text.terms.values, return_inverse=True)
        words = text.words(distinct, self.index.terms)
        synonyms_of = [*map(self._look_up, words)]
        bounds = row_bounds([*map(len, synonyms_of)])
        synonyms = RaggedArray(np.arange(len(words), len(words) + bounds[-1], dtype=ID), bounds)
        rows = RaggedArray(local.astype(ID), text.terms.indptr)
        kernel = EditedRows(rows, *self._edit, synonyms, self._seed, numbers=text.keys)
        ids, bounds = kernel.terms(np.arange(len(text.keys)), key.epoch, key.sample_index)
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


def open_synonyms(source: str | Path | Mapping[str, Sequence[str]] | None) -> Synonyms:
    """A function from a word to its synonyms, in a fixed order, itself not among them.

    Args:
        source: None for WordNet; a file of lines ``word<TAB>synonym<TAB>...``; or a dict of lists.

    Raises:
        InputError: nltk or its WordNet is missing, or the file cannot be read; the message says what to do.

    """
    if source is None:
        return wordnet_synonyms()
    if isinstance(source, Mapping):
        table = {word: _cleaned(word, synonyms) for word, synonyms in source.items()}
    elif isinstance(source, (str, Path)):
        table = read_table(Path(source))
    else:
        raise InputError(
            f"synonyms: got {type(source).__name__}: give a TSV file, a dict of lists, or None for WordNet"
        )
    return lambda word: table.get(word, ())


def read_table(path: Path) -> dict[str, list[str]]:
    """The synonyms by word of a file of lines ``word<TAB>synonym<TAB>...``; blank lines are skipped."""
    try:
        lines = path.read_bytes().decode().splitlines()
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror or error if isinstance(error, OSError) else "not UTF-8"
        raise InputError(f"synonyms: {path}: {reason}: give lines of word<TAB>synonym<TAB>...") from error
    table: dict[str, list[str]] = {}
    for number, line in enumerate(lines, 1):
        word, *synonyms = (part.strip() for part in line.split("\t"))
        if word and not any(synonyms):
            raise InputError(f"synonyms: {path}: line {number}: {word!r} has no synonym: give it one, after a tab")
        if word:
            table[word] = _cleaned(word, [*table.get(word, []), *synonyms])
    if not table:
        raise InputError(f"synonyms: {path}: it holds no word: give lines of word<TAB>synonym<TAB>...")
    return table


def wordnet_synonyms() -> Synonyms:
    """WordNet's synonyms by nltk: the lemmas of all senses of a word; none for function words."""
    try:
        from nltk.corpus import wordnet
    except ImportError as error:
        raise InputError("synonyms from WordNet need nltk: pip install 'una_fast[eda]', or give a TSV file") from error
    try:
        wordnet.ensure_loaded()
    except LookupError as error:
        raise InputError(
            f"synonyms: nltk's WordNet is not on this machine: run `{FETCH}`, or give a TSV file of your own"
        ) from error

    def synonyms(word: str) -> list[str]:
        if word in FUNCTION_WORDS or not any(map(str.isalpha, word)):
            return []
        lemmas = [name for sense in wordnet.synsets(word) for name in sense.lemma_names()]
        return _cleaned(word, [lemma.replace("_", " ").replace("-", " ").lower() for lemma in lemmas])

    return synonyms


def _cleaned(word: str, synonyms: Sequence[str]) -> list[str]:
    """Each synonym once, in order, with single spaces; not the word itself."""
    spaced = [" ".join(synonym.split()) for synonym in synonyms]
    return [synonym for synonym in dict.fromkeys(spaced) if synonym and synonym != word]
