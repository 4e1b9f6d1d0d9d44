"""Negatives of the control experiments: augmentations for `--augment MODULE:CLASS`."""

from __future__ import annotations

import random
from abc import abstractmethod
from typing import Any, ClassVar, Literal

import numpy as np
import torch
import xxhash
from numpy.typing import NDArray
from torch.nn import functional

from train.evaluation.model import load_model
from una_fast.augment.base import TextAugmentation
from una_fast.augment.counter_rng import CounterRNG, SampleKey
from una_fast.augment.explain import WordExplanation
from una_fast.augment.split_sentences import SplitSentences
from una_fast.augment.una import Augmenter
from una_fast.index.index import Index

RANKS = (10, 50)  # mined sentences have these ranks by cosine; nearer ones may mean the same
MASK = "[MASK]"


class Control(TextAugmentation):
    """Makes negatives that are other sentences of the index. A subclass chooses which sentence."""

    def __init__(self, index: Index, seed: int = 42, **settings: Any) -> None:
        """settings: tokenizer, n_jobs and the arguments of a subclass."""
        super().__init__(index, seed=seed, **settings)
        self._seed = seed

    def others(self, rows: NDArray[np.int64], draws: SampleKey) -> NDArray[np.int64]:
        """Return another row of the index for each of `rows`, int64 (n_rows,). All other rows are equally likely."""
        found = self.draws(rows, draws).below(self.index.n_documents - 1, 1)[:, 0]
        return found + (found >= rows)

    def draws(self, rows: NDArray[Any], draws: SampleKey) -> CounterRNG:
        """Return the generator of the random numbers of these rows."""
        return CounterRNG(self._seed, draws.epoch, rows, draws.sample_index)

    def _texts(self, source: SplitSentences, rows: NDArray[np.int64], draws: SampleKey) -> list[str]:
        """Return another sentence for each row, or any sentence of the index for a text that is not a row."""
        if source.are_documents:
            return [self.index.sentence(row) for row in self.others(rows, draws).tolist()]
        found = self.draws(source.streams(rows), draws).below(self.index.n_documents, 1)[:, 0]
        return [self.index.sentence(row) for row in found.tolist()]


class OtherSentence(Control):
    """Makes negatives that are random other sentences.

    A step then has as many texts as with UNA, but no negative is similar to its anchor.
    """


class Mined(Control):
    """Makes mined negatives: sentences that are near the anchor under the initial encoder.

    The negative is one of the sentences at RANKS by cosine, chosen as in sentence-transformers. Each sentence has the
    same mined negative during the whole training, as with negatives that a user mines before training. model, pooling:
    the folder and the pooling of the initial encoder.
    """

    training_options: ClassVar[tuple[str, ...]] = ("model", "pooling")

    def __init__(self, index: Index, seed: int = 42, model: str = "", pooling: str = "mean", **settings: Any) -> None:
        super().__init__(index, seed, model=model, pooling=pooling, **settings)
        self._mined = mined_rows([index.sentence(row) for row in range(index.n_documents)], model, pooling, seed)

    def others(self, rows: NDArray[np.int64], draws: SampleKey) -> NDArray[np.int64]:
        """Return the mined row of each of `rows`, int64 (n_rows,), or a random other row if none was mined."""
        found = self._mined[rows]
        return np.where(found >= 0, found, super().others(rows, draws))


class MinedAndUna(Mined):
    """Makes a mined negative for one half of the sentences, and UNA's negative for the other half.

    Each epoch draws the halves again.
    """

    training_options = ("model", "pooling", "beta")

    def __init__(self, index: Index, seed: int = 42, beta: float = 0.3, **settings: Any) -> None:
        super().__init__(index, seed, beta=beta, **settings)
        self._una = Augmenter(index, beta=beta, radius="1%", seed=seed, surface="kept", n_jobs=settings.get("n_jobs"))

    def _texts(self, source: SplitSentences, rows: NDArray[np.int64], draws: SampleKey) -> list[str]:
        """Return the negative of each row."""
        mined = super()._texts(source, rows, draws)
        if not source.are_documents:
            return mined
        is_mined = self.draws(rows, draws).units(1, number=1)[:, 0] < 0.5
        altered = self._una.texts(rows, draws.epoch, sample_index=draws.sample_index)
        return [one if taken else other for one, other, taken in zip(mined, altered, is_mined, strict=True)]


def mined_rows(sentences: list[str], model: str, pooling: str, seed: int) -> NDArray[np.int64]:
    """Return the row of a mined negative for each sentence, int64 (n_sentences,), or -1 if there are too few sentences.

    The result equals that of sentence-transformers' `mine_hard_negatives`, which takes minutes on a GPU for this.
    model, pooling: folder and pooling of the encoder.
    """
    encoder = load_model(model, pooling)
    row_of = {sentence: row for row, sentence in reversed([*enumerate(sentences)])}
    distinct = [*dict.fromkeys(sentences)]
    batches = encoder.batches([distinct], 32)
    embeddings = functional.normalize(torch.from_numpy(batches.embed(encoder.encode, None)).to(encoder.device))
    n, rng = min(RANKS[1] + 1, len(distinct)), random.Random(seed)
    nearest = [(part @ embeddings.T).topk(n).indices.cpu() for part in embeddings.split(4096)]
    mined = dict.fromkeys(distinct, -1)
    for own, places in enumerate(torch.cat(nearest).tolist()):
        if options := [place for place in places if place != own][RANKS[0] : RANKS[1]]:
            mined[distinct[own]] = row_of[distinct[options[rng.sample(range(len(options)), 1)[0]]]]
    return np.array([mined[sentence] for sentence in sentences])


class Spliced(Control):
    """Makes negatives that have other text instead of the words that UNA would replace. A subclass chooses the text.

    beta, select, keep_punctuation: how UNA chooses the words, as in `Augmenter`.
    """

    training_options: ClassVar[tuple[str, ...]] = ("beta", "select", "keep_punctuation")

    def __init__(
        self,
        index: Index,
        seed: int = 42,
        beta: float = 0.3,
        select: Literal["tfidf", "random"] = "tfidf",
        keep_punctuation: bool = False,
        **settings: Any,
    ) -> None:
        chosen: dict[str, Any] = {"beta": beta, "select": select, "keep_punctuation": keep_punctuation}
        super().__init__(index, seed, **chosen, **settings)
        n_jobs = settings.get("n_jobs")
        self._una = Augmenter(index, radius="1%", seed=seed, surface="paper", n_jobs=n_jobs, **chosen)

    @abstractmethod
    def put(self, word: WordExplanation, written: str, unit: float) -> str:
        """Return the text for a word that UNA replaces.

        Args:
            word: the word and its replacement by UNA.
            written: the word as the sentence has it, with its case.
            unit: a random number, uniform in [0, 1).
        """

    def _texts(self, source: SplitSentences, rows: NDArray[np.int64], draws: SampleKey) -> list[str]:
        """Return each text with its chosen words replaced."""
        return [self._splice(text, draws) for text in source.texts(rows)]

    def _splice(self, sentence: str, draws: SampleKey) -> str:
        lower, parts, end = sentence.lower(), [], 0
        key = xxhash.xxh3_64_intdigest(sentence.encode())
        rng = np.random.default_rng([self._seed, draws.epoch, draws.sample_index, key])
        units: dict[str, float] = {}  # a repeated word is replaced by the same text each time
        for word in self._una.explain(sentence, draws.epoch, sample_index=draws.sample_index).words:
            at = lower.find(word.word, end)
            if at >= 0 and word.replacement is not None:  # at < 0: NLTK spells quotation marks differently
                unit = units.setdefault(word.word, rng.random())
                parts += [sentence[end:at], self.put(word, sentence[at : at + len(word.word)], unit)]
            elif at >= 0:
                parts.append(sentence[end : at + len(word.word)])
            end = at + len(word.word) if at >= 0 else end
        return " ".join("".join([*parts, sentence[end:]]).split())


class Deleted(Spliced):
    """Deletes each word with probability `beta`, as EDA does."""

    training_options = ("beta",)

    def __init__(self, index: Index, seed: int = 42, beta: float = 0.3, **settings: Any) -> None:
        super().__init__(index, seed, beta, "random", **settings)

    def put(self, word: WordExplanation, written: str, unit: float) -> str:
        """Return an empty text."""
        return ""


class Masked(Spliced):
    """Writes [MASK] instead of the words that UNA would replace."""

    def put(self, word: WordExplanation, written: str, unit: float) -> str:
        """Return BERT's mask token."""
        return MASK
