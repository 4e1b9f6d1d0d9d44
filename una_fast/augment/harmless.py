"""Harmless edits: each text is reworded, and keeps its meaning.

The compiled finder does not serve here: an edit rewrites the result of the one before, so no place can be stored.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from una_fast.augment.base import Explanation, TextAugmentation
from una_fast.augment.counter_rng import CounterRNG, SampleKey, seed_of
from una_fast.augment.draws import Draws
from una_fast.augment.rewordings import Change, exchanged_word, harmless_changes
from una_fast.augment.split_sentences import SplitSentences
from una_fast.augment.wordnet import WordNet
from una_fast.errors import InputError, integer, nearest, suggests_keywords
from una_fast.index.index import Index

# a change that fits few texts has a large weight, so that these texts get it; all others have the weight 1
WEIGHTS = dict.fromkeys(
    "time order, passive, active, asked, compared, symmetric, from to, twice negated".split(", "), 9.0
)
WEIGHTS |= {"coordinated": 2.0, "fronted": 1.5, "synonym": 2.0, "filler": 0.6, "marks": 0.4, "typo": 0.2}


@dataclass(frozen=True)
class HarmlessEdit(Explanation):
    """A text, its edited form, and the names of the edits, which were applied one after another."""

    text: str
    edits: list[str]

    def __str__(self) -> str:
        return f"{self.text}\n{self.result}  ({', '.join(self.edits) or 'no edit fits'})"


class HarmlessEdits(TextAugmentation):
    """Rewords English texts without changing what they mean: openings, phrases, word order, passives and others.

    Each text gets 1 to `most` edits, one after another. A text that no edit fits stays as it is. The result depends
    only on the seed, epoch, sample index, row and settings.

    Args:
        index: the corpus.
        most: the largest number of edits per text.
        edits: the names of the edits to use; None uses all. `rewordings.harmless_changes` lists them, and with
            `wordnet` there is also "synonym".
        wordnet: the folder of WordNet's files, for synonyms; None does without.
        seed: any integer.
        tokenizer: a Hugging Face tokenizer; only `token_ids` needs it.
        n_jobs: threads that encode the index with the tokenizer.

    Raises:
        InputError: no edit has one of the names, `most` is below 1, or WordNet's files cannot be read.
    """

    @suggests_keywords
    def __init__(
        self,
        index: Index,
        *,
        seed: int = 42,
        most: int = 2,
        edits: list[str] | None = None,
        wordnet: str | Path | None = None,
        tokenizer: Any = None,
        n_jobs: int | None = None,
    ):
        super().__init__(index, seed=seed, most=most, edits=edits, wordnet=wordnet, tokenizer=tokenizer, n_jobs=n_jobs)
        if integer("most", most) < 1:
            raise InputError(f"most={most}: must be at least 1")
        self._seed, self._most = seed_of("harmless edits", seed), most
        self._changes = chosen_changes(edits, WordNet(Path(wordnet)) if wordnet else None)

    def _edit(self, text: str, stream: np.ndarray, key: SampleKey) -> HarmlessEdit:
        if not text.strip():
            return HarmlessEdit(text, text, [])
        draws = Draws(CounterRNG(self._seed, key.epoch, stream, key.sample_index))
        result, names = reworded(text, 1 + draws.below(self._most), self._changes, draws)
        return HarmlessEdit(result, text, names)

    def _texts(self, source: SplitSentences, rows: np.ndarray, key: SampleKey) -> list[str]:
        streams = source.streams(rows)[:, np.newaxis]
        texts = zip(source.texts(rows), streams, strict=True)
        return [self._edit(text, stream, key).result for text, stream in texts]

    def explain(self, sentence: str, epoch: int = 0, *, sample_index: int = 0) -> HarmlessEdit:
        """Return the edits that a sentence gets. The result prints as two lines.

        Args:
            sentence: any text.
            epoch: as in `augment`.
            sample_index: as in `augment`.

        Returns:
            The text, its edited form as `result`, and the names of the edits.
        """
        source, row = self._read([sentence]), np.zeros(1, dtype=np.int64)
        return self._edit(source.texts(row)[0], source.streams(row), SampleKey(epoch, sample_index))


def chosen_changes(edits: list[str] | None = None, wordnet: WordNet | None = None) -> dict[str, Change]:
    """Return the harmless changes with these names, or all, by name."""
    changes = harmless_changes() | ({"synonym": exchanged_word(wordnet, wordnet.synonyms)} if wordnet else {})
    for name in edits or ():
        if name not in changes:
            answer = nearest(name, changes) or f"choose from {', '.join(changes)}"
            raise InputError(f"edits={edits!r}: no harmless edit is called {name!r}: {answer}")
    return {name: changes[name] for name in edits} if edits is not None else changes


def reworded(text: str, n: int, changes: Mapping[str, Change], draws: Draws) -> tuple[str, list[str]]:
    """Apply up to n of `changes` one after another. Return the text, and the names of those that fitted."""
    done: list[str] = []
    for name in draws.ordered({name: WEIGHTS.get(name, 1.0) for name in changes}):
        if len(done) == n:
            break
        new = changes[name](text, draws)
        if new and new != text:
            text, done = new, [*done, name]
    return text, done
