"""Easy data augmentation: synonym replacement, random insertion, random swap, random deletion.

Wei and Zou 2019, https://arxiv.org/abs/1901.11196, section 2.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, Literal

from una_fast.augment.base import WordAugmentation, check_choices
from una_fast.augment.counter_rng import CounterRNG, below, pick, seed_of, unit
from una_fast.augment.word_lists import FUNCTION, read_word_lists
from una_fast.errors import InputError, is_number, suggests_keywords
from una_fast.index.index import Index
from una_fast.storage.files import numbered_lines

NEEDS_SYNONYMS = ("synonym", "insert")
Synonyms = Callable[[str], Sequence[str]]
Bits = list[list[int]]  # bits[number][step]: the random bits of a step of an operation
Operation = Callable[[list[str], Bits, int], list[str]]
LINES = "lines of word<TAB>synonym<TAB>..."


class EDA(WordAugmentation):
    """Applies one of EDA's four operations to each sentence.

    Let n be max(1, int(strength * number of words)). The operations are:

    - synonym: replace all occurrences of n distinct words with synonyms.
    - insert: insert a synonym of one of the sentence's words at a random position, n times.
    - swap: swap the words at two random positions, n times.
    - delete: remove each word with probability `strength`.

    Every operation changes at least one word if possible, and never empties a sentence. The random numbers depend only
    on the seed, epoch, sample index, row and operation.

    Args:
        index: the corpus.
        operation: "synonym", "insert", "swap" or "delete".
        strength: the share of the words to change, above 0 and up to 1; Wei and Zou use 0.1.
        seed: any integer.
        synonyms: a file of lines ``word<TAB>synonym<TAB>...``, a dict from words to lists of synonyms, or None for
            WordNet, which needs nltk and its data. A synonym can be several words.
        tokenizer: a Hugging Face tokenizer; only `token_ids` needs it.
        n_jobs: threads that encode the index with the tokenizer.

    Raises:
        InputError: a setting is out of range, WordNet is missing, or the file of synonyms cannot be read.
    """

    training_options = ("strength", "synonyms")

    @suggests_keywords
    def __init__(
        self,
        index: Index,
        *,
        operation: Literal["synonym", "insert", "swap", "delete"] = "synonym",
        strength: float = 0.1,
        seed: int = 42,
        synonyms: str | Path | Mapping[str, Sequence[str]] | None = None,
        tokenizer: Any = None,
        n_jobs: int | None = None,
    ):
        check_choices(EDA.__init__, locals())
        if not is_number(strength) or not 0 < strength <= 1:  # NaN fails too
            raise InputError(f"strength={strength!r}: must be a share above 0 and up to 1; Wei and Zou use 0.1")
        self._synonyms = cache(open_synonyms(synonyms)) if operation in NEEDS_SYNONYMS else lambda word: ()
        settings: dict[str, Any] = {"operation": operation, "strength": strength, "synonyms": synonyms}
        super().__init__(index, seed=seed, tokenizer=tokenizer, n_jobs=n_jobs, **settings)
        self._seed = seed_of(f"eda {operation}", seed)
        self._operation: Operation = getattr(self, f"_{operation}")
        self._strength = float(strength)

    def edit(self, words: list[str], draws: CounterRNG) -> list[str]:  # noqa: D102  see WordAugmentation
        bits = [draws.bits(len(words) + 1, number)[0].tolist() for number in range(3)]
        return self._operation(words, bits, max(1, int(self._strength * len(words))))

    def _synonym(self, words: list[str], bits: Bits, n: int) -> list[str]:
        pool = [word for word in dict.fromkeys(words) if self._synonyms(word)]
        new = {}
        for step in range(min(n, len(pool))):
            place = step + below(bits[0][step], len(pool) - step)
            pool[step], pool[place] = pool[place], pool[step]
            new[pool[step]] = pick(bits[1][step], self._synonyms(pool[step]))
        return [new.get(word, word) for word in words]

    def _insert(self, words: list[str], bits: Bits, n: int) -> list[str]:
        pool = [word for word in words if self._synonyms(word)]
        for step in range(n if pool else 0):
            synonyms = self._synonyms(pick(bits[0][step], pool))
            words.insert(below(bits[2][step], len(words) + 1), pick(bits[1][step], synonyms))
        return words

    def _swap(self, words: list[str], bits: Bits, n: int) -> list[str]:
        before = [*words]
        for step in range(n if len(words) > 1 else 0):
            i, j = below(bits[0][step], len(words)), below(bits[1][step], len(words) - 1)
            j += j >= i
            words[i], words[j] = words[j], words[i]
        if words == before and len({*words}) > 1:  # the swaps cancelled each other, or swapped equal words
            i = below(bits[0][n], len(words))
            j = pick(bits[1][n], [k for k, word in enumerate(words) if word != words[i]])
            words[i], words[j] = words[j], words[i]
        return words

    def _delete(self, words: list[str], bits: Bits, n: int) -> list[str]:
        kept = [word for word, drawn in zip(words, bits[0], strict=False) if unit(drawn) >= self._strength]
        if 0 < len(kept) < len(words) or len(words) == 1:
            return kept or words
        place = below(bits[0][len(words)], len(words))  # delete this word if all were kept; keep it if none was
        return words[:place] + words[place + 1 :] if kept else [words[place]]


def open_synonyms(source: str | Path | Mapping[str, Sequence[str]] | None) -> Synonyms:
    """Turn the argument `synonyms` of `EDA` into a function that maps a word to its synonyms, in a fixed order."""
    if source is None:
        return wordnet_synonyms()
    given = read_table(Path(source)) if isinstance(source, str | Path) else source
    if not isinstance(given, Mapping):
        raise InputError(
            f"synonyms: is {type(given).__name__}, must be a TSV file, a dict of lists, or None for WordNet"
        )
    for word, synonyms in given.items():
        if not isinstance(synonyms, list | tuple) or not all(isinstance(one, str) for one in synonyms):
            raise InputError(f"synonyms: {word!r}: is {synonyms!r}, must be a list of str")
    table = {word: _cleaned(word, synonyms) for word, synonyms in given.items()}
    return lambda word: table.get(word, ())


def read_table(path: Path) -> dict[str, list[str]]:
    """Read a file with lines ``word<TAB>synonym<TAB>...`` as a dict from words to their synonyms."""
    table: dict[str, list[str]] = {}
    for number, line in numbered_lines("synonyms", path, LINES):
        word, *synonyms = (part.strip() for part in line.split("\t"))
        if not any(synonyms):
            raise InputError(f"synonyms: {path}: line {number}: {word!r} has no synonym: give it one, after a tab")
        table.setdefault(word, []).extend(synonyms)
    if not table:
        raise InputError(f"synonyms: {path}: contains no word: give {LINES}")
    return table


def wordnet_synonyms() -> Synonyms:
    """Return a function from a word to the lemmas of all its senses in WordNet. Function words have no synonyms."""
    try:
        from nltk.corpus import wordnet

        wordnet.ensure_loaded()
    except (ImportError, LookupError) as error:
        is_installed = isinstance(error, LookupError)
        need = "run `python -m nltk.downloader wordnet`" if is_installed else "pip install nltk"
        raise InputError(f"synonyms: nltk's WordNet is not on this machine: {need}, or give a TSV file") from error

    function_words = read_word_lists().words[FUNCTION]

    def synonyms(word: str) -> list[str]:
        if word in function_words or not any(map(str.isalpha, word)):
            return []
        lemmas = [name for sense in wordnet.synsets(word) for name in sense.lemma_names()]
        return _cleaned(word, [lemma.replace("_", " ").replace("-", " ").lower() for lemma in lemmas])

    return synonyms


def _cleaned(word: str, synonyms: Sequence[str]) -> list[str]:
    """Return the distinct `synonyms` in order, without "" and `word`. Spaces inside a synonym become a single one."""
    spaced = [" ".join(synonym.split()) for synonym in synonyms]
    return [synonym for synonym in dict.fromkeys(spaced) if synonym and synonym != word]
