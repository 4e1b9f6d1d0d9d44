"""Small edits that change what a sentence means. `EditFinder` finds those of word lists. Nothing here is random."""

from __future__ import annotations

import heapq
from collections.abc import Collection, Mapping, Sequence
from itertools import combinations
from typing import NamedTuple

from una_fast._kernels.edits.finder import RULES, FoundBatch, like
from una_fast._kernels.edits.words import MARKS
from una_fast.augment.counter_rng import pick
from una_fast.augment.word_lists import WordLists

BY_LISTS = "polarity", "number"  # the kinds of edits that `EditFinder` finds, in its order
WORD = r"[^\s\d{}]+".format("".join(f"\\{first}-\\{last}" for first, last in zip(MARKS[::2], MARKS[1::2], strict=True)))
MOST_SWAPPED = 16  # only the most important words of a sentence change places, so that a long text has few pairs


class Edit(NamedTuple):
    """A possible edit: it replaces ``text[start:stop]`` with one of `options`, which all differ from the old text."""

    start: int
    stop: int
    options: Sequence[str]
    why: str  # the rule that found the edit

    def drawn(self, bits: int) -> Edit:
        """Return this edit with only one of its options, chosen by 64 random bits."""
        return self._replace(options=(pick(bits, self.options),))

    def applied(self, text: str) -> str:
        """Return `text` with ``options[0]`` instead of ``text[start:stop]``."""
        return f"{text[: self.start]}{self.options[0]}{text[self.stop :]}"


def listed_edits(text: str, lists: WordLists, words: Sequence[str] = ()) -> dict[str, list[Edit]]:
    """Find the edits of each kind in BY_LISTS. words: see `word_ends`."""
    found = FoundBatch()
    lists.finder.find(text, found, word_ends(text, words))
    edits = [
        Edit(start, stop, found.lists[options], RULES[rule]) for start, stop, options, rule in found.table.tolist()
    ]
    n_polarity = int(found.bounds[0])
    return dict(zip(BY_LISTS, (edits[:n_polarity], edits[n_polarity:]), strict=True))


def word_ends(text: str, words: Sequence[str]) -> set[int] | None:
    """Return where `words`, the words of `text` in order, begin and end, or None if one of them is not in the text.

    A word tokenizer knows them better than `EditFinder` in languages without spaces.
    """
    lower, at, ends = text.lower(), 0, set()
    if not words or len(lower) != len(text):  # lower-casing changed the positions
        return None
    for word in words:
        start = lower.find(word.lower(), at)
        if start < 0:
            return None
        at = start + len(word)
        ends |= {start, at}
    return ends


def swap_edits(
    text: str,
    importance: Mapping[str, float],
    function_words: Collection[str],
    lists: WordLists,
    words: Sequence[str] = (),
) -> list[Edit]:
    """Return the edits that swap two words of similar importance that are not adjacent.

    Both words are content words with at least the mean importance of the text's words, and among its MOST_SWAPPED most
    important ones. The edits are sorted by the words' difference in importance, and only the first half, at least one
    edit, is returned. Words without an importance are ignored.

    Args:
        text: any text.
        importance: by word, in lower case.
        function_words: words that stay in their places, in lower case.
        lists: the word lists; only their `EditFinder` splits the text into words.
        words: see `word_ends`.
    """
    found, places = lists.finder.words(text, word_ends(text, words))
    scores = {i: importance[word] for i, word in enumerate(found) if word in importance}
    mean = sum(scores.values()) / max(1, len(scores))
    content = [i for i in scores if scores[i] >= mean and found[i] not in function_words]
    content = sorted(heapq.nlargest(MOST_SWAPPED, content, key=scores.__getitem__))
    pairs = [(i, j) for i, j in combinations(content, 2) if j > i + 1 and found[i] != found[j]]
    pairs.sort(key=lambda pair: abs(scores[pair[0]] - scores[pair[1]]))
    return [_swapped(text, places[i], places[j], i == 0) for i, j in pairs[: max(1, len(pairs) // 2)]]


def _swapped(text: str, former: tuple[int, int], latter: tuple[int, int], is_first: bool) -> Edit:
    """Swap two words. former, latter: where each starts and stops. is_first: whether the former starts the text."""
    first, second = text[slice(*former)], text[slice(*latter)]
    if is_first and first.istitle():  # keep the sentence's capital at its start
        first, second = first.lower(), like(first, second)
    return Edit(former[0], latter[1], (f"{second}{text[former[1] : latter[0]]}{first}",), "two words change places")
