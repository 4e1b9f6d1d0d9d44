"""Looks for opposites that no word list has, and scores encoders on them: ``python -m bench.evidence.opposites``.

``--make SOURCE --corpus FILE`` prints opposites for ``--word-lists una_fast/augment/english.txt FILE``. Without it, a
model and its trainings are scored on dev sets, for docs/appendix/opposites.md. Runs with one NAME are seeds.
"""

from __future__ import annotations

import math
import re
import sys
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from bench import script
from bench.evidence.near_scores import cell, figures_of
from bench.evidence.near_sets import PAIRS
from bench.report import table, write_between_marks
from train.evaluation.tasks.reading import read_lines
from train.record.folder import BEST
from una_fast.augment.word_lists import FUNCTION, WordLists, read_word_lists
from una_fast.augment.wordnet import WordNet, inflected
from una_fast.pair_scores import read_pairs, score_overlap, score_pairs
from una_fast_cli.probe import load_encode

PAGE, SICK = script.DOCS / "appendix" / "opposites.md", "senteval/downstream/SICK/SICK"
BY_HAND = Path(__file__).with_suffix(".tsv")  # opposites in SICK's pairs that differ by one word; read before training
WORD = re.compile(r"[a-z]+(?:['’-][a-z]+)*", re.IGNORECASE)
PREFIXES = {"un|non-?": "", "in|im|il|ir|dis": "..(ble|al|[^m]ent|ate|ive|ous|ar|ic|ly|ice|ity)$"}  # ends of the base
JOINTS = frozenset({"or", "and", "vs", "versus", "nor", "than"})
MOST_OFTEN = 10  # times: a word seldom takes the place of one that is more frequent than that
SHOWN = {"qqp_near": "all polarity", "qqp_close": "all", "checklist": "all polarity", "sick": "list new wordnet reader"}
FREQUENT, CLOSE = 8, 0.08  # "frames": least occurrences, least cosine
Pair = tuple[str, str]
Lists = Mapping[str, WordLists]  # "list": the project's, "new": those of --word-list


def new_words(texts: Iterable[str], lists: WordLists) -> dict[str, int]:
    """Count the words of texts that no list has and that are no names, which mostly have a capital inside a text."""
    found = [WORD.findall(text) for text in texts]
    counts = Counter(word.lower() for words in found for word in words)
    capitals = Counter(word.lower() for words in found for word in words[1:] if word[0].isupper())
    new = counts.keys() - {*lists.roles, *lists.negative, *lists.classes, *lists.words[FUNCTION]}
    return {word: counts[word] for word in new if len(word) > 2 and 2 * capitals[word] <= counts[word]}


def of_wordnet(words: Iterable[str], net: WordNet) -> Iterator[Pair]:
    """Yield antonyms in any regular form, except verbs: a verb and its opposite take other words after them."""
    for word in words:
        base, ending = net.lemma(word)
        for other in net.opposites.get(base, ()):
            if base in net.opposites.get(other, ()) and net.kind(base) == net.kind(other) in ("a", "n", "r"):
                yield word, inflected(other, ending)


def of_affixes(words: Iterable[str]) -> Iterator[Pair]:
    """Yield words with and without a negative prefix, and words in "-less" and "-ful"."""
    for word in words:
        yield word, re.sub("less$", "ful", word)
        for prefix, ends in PREFIXES.items():
            if (base := re.sub(f"^({prefix})", "", word)) != word and re.search(ends, base):
                yield word, base


def of_frames(words: Mapping[str, int], texts: Iterable[str]) -> Iterator[Pair]:
    """Yield frequent words that JOINTS join, if the sets of their frames (the words around them) have a high cosine."""
    frames, joined = defaultdict[str, set[Sequence[str]]](set), set[Pair]()
    for text in texts:
        padded = [".", ".", *map(str.lower, WORD.findall(text)), ".", "."]
        for two, one, word, after, then in zip(*(padded[i:] for i in range(5)), strict=False):
            frames[word] |= {(one, "_", after), (two, one, "_"), ("_", after, then)}
            joined |= {(two, word)} if one in JOINTS else set()
    for pair in joined:
        first, second = (frames[word] for word in pair)
        if min(words.get(word, 0) for word in pair) >= FREQUENT:
            yield from [pair] * (len(first & second) >= CLOSE * math.sqrt(len(first) * len(second)))


def word_list(words: Mapping[str, int], found: Iterable[Pair]) -> list[str]:
    """Return the lines of a file of word lists: the pairs whose words are in `words`, about equally often."""
    pairs = {(min(pair), max(pair)) for pair in found if pair[0] != pair[1] and words.keys() >= {*pair}}
    counts = {pair: sorted(words[word] for word in pair) for pair in pairs}
    return ["[opposites]", *sorted(", ".join(pair) for pair, (low, high) in counts.items() if high <= MOST_OFTEN * low)]


def groups(first: str, second: str, lists: Lists, net: WordNet, by_hand: Sequence[list[str]]) -> list[str]:
    """Return the groups of a near-miss, none if its texts differ by more than a word each, or by no opposites."""
    one, two = ({*map(str.lower, WORD.findall(text))} for text in (first, second))
    if not len(one - two) == len(two - one) == 1:
        return []
    pair = [*(one - two), *(two - one)]
    if listed := [name for name, of in lists.items() if pair[1] in of.opposites.get(pair[0], ())]:
        return listed[:1]
    a, b = (net.lemma(word)[0] for word in pair)
    is_antonym = b in net.opposites.get(a, ()) or a in net.opposites.get(b, ())
    return ["wordnet"] * is_antonym + ["reader"] * (sorted(pair) in by_hand)


def dev_sets(data: Path, lists: Lists, net: WordNet) -> dict[str, list[tuple[str, str, int, str]]]:
    """Return labelled pairs by set. "sick" has entailments, and near-misses once for each of their groups."""
    sets = {name: read_pairs(data / PAIRS / f"{name}_dev.tsv") for name in ("qqp_near", "qqp_close", "checklist")}
    by_hand = [sorted(line.split("\t")) for line in read_lines(BY_HAND)]
    sets["sick"] = []
    for line in [line for part in ("train", "trial") for line in read_lines(data / f"{SICK}_{part}.txt")[1:]]:
        one, two, same = *line.split("\t")[1:3], line.strip().endswith("ENTAILMENT")
        found = [""] if same else groups(one, two, lists, net, by_hand)
        sets["sick"] += [(one, two, int(same), group) for group in found]
    return sets


def make(source: str, corpus: Path, wordnet: Path) -> list[str]:
    """Return the word list of a source."""
    words = new_words(texts := read_lines(corpus), read_word_lists())
    if source == "wordnet":
        return word_list(words, of_wordnet(words, WordNet(wordnet)))
    return word_list(words, of_affixes(words) if source == "affixes" else of_frames(words, texts))


def score(data: Path, wordnet: Path, words: Path, model: str, runs: Iterable[str]) -> list[str]:
    """Score the encoders, write the table into the page, and return it. words: the new word list."""
    sets = dev_sets(data, {"list": read_word_lists(), "new": read_word_lists(words)}, WordNet(wordnet))
    columns = {"changed words": [{name: figures_of(score_overlap(pairs)) for name, pairs in sets.items()}]}
    trained = [(name, Path(run, BEST)) for name, run in (one.split("=") for one in runs)]
    for name, folder in [("before", model), *trained]:
        encode = load_encode(str(folder))
        columns.setdefault(name, []).append({of: figures_of(score_pairs(encode, pairs)) for of, pairs in sets.items()})
    rows, found = [], columns["before"][0]
    for name, group in [(name, group) for name, of in SHOWN.items() for group in of.split() if group in found[name]]:
        pairs = "{same:,} / {near_misses:,}".format(**found[name][group])
        cells = [cell([seed[name][group] for seed in seeds]) for seeds in columns.values()]
        rows.append([f"{name}, {group}", pairs, *cells])
    write_between_marks(PAGE, shown := [table(["", "pairs", *columns], rows)], "opposites")
    return shown


def make_or_score(**given: Any) -> None:
    """Print the word list of --make, or score encoders."""
    if given["make"]:
        lines = make(given["make"], given["corpus"], given["wordnet"])
    else:
        lines = score(*(given[name] for name in ("data", "wordnet", "word_list", "model", "runs")))
    print(*lines, sep="\n")


def main() -> int:
    path: dict[str, Any] = {"type": Path, "required": False}
    return script.run(
        __doc__,
        make_or_score,
        make={"choices": ("wordnet", "affixes", "frames"), "required": False},
        corpus=path,
        data=script.DATA | {"required": False},
        wordnet=path | {"help": "folder of WordNet's files"},
        model={"default": "", "help": "name or folder of the encoder before training"},
        word_list=path | {"help": "the list that a training added"},
        runs={"nargs": "*", "default": (), "metavar": "NAME=RUN"},
    )


if __name__ == "__main__":
    sys.exit(main())
