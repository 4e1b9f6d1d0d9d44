"""Can a classifier tell negatives from real sentences by their style?

    python -m bench.style data/corpora/wiki_large.txt.gz

For each setting of `Augmenter`, a logistic regression separates 10,000 sentences from their negatives. It is trained on
one half of the sentences and scored on the other half; chance is 0.5. A word bigram model (Witten-Bell), trained on
40,000 other sentences, computes the perplexity of the negatives divided by the perplexity of the sentences. Texts are
compared as written, and as an uncased BERT sees them: lower-cased, with spaces around punctuation. Writes
bench/results/style.json and the tables of docs/style.md; takes about 5 minutes on one core.

    python -m bench.style data/corpora/wiki_large.txt.gz --german UD_German-GSD --chinese UD_Chinese-GSDSimp

This second command measures only German and Chinese. Each is compared with the same number of English sentences from
the first file. The English table does not change. The folders are checkouts of Universal Dependencies' treebanks. Only
their dev and test files are used.
"""

from __future__ import annotations

import itertools
import math
import re
import sys
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression

import una_fast
from bench import report, script
from bench.evidence.word_classes import SameClass
from una_fast.storage.files import read_object, write_json

SENTENCES, OTHERS = 10_000, 40_000
RESULT, PAGE = script.RESULTS / "style.json", script.DOCS / "style.md"
LANGUAGES: dict[str, dict[str, dict[str, Any]]] = {  # by language: name of a row -> options of build_index
    "German": {"German": {}, "German, lowercase=False": {"lowercase": False}},
    "Chinese": {"Chinese": {"word_tokenizer": "rjieba"}},
}
KINDS = {"spaces": str.isspace, "capitals": str.isupper}
SETTINGS: dict[str, dict[str, Any]] = {
    f"{surface}{', punctuation kept' * kept}, beta {beta}": {"surface": surface, "keep_punctuation": kept, "beta": beta}
    for surface in ("paper", "kept")
    for kept in (False, True)
    for beta in (0.5, 0.1)
}
CLASSES = "same word class, punctuation kept, beta "
SETTINGS |= {f"{CLASSES}{beta}": {"keep_punctuation": True, "beta": beta} for beta in (0.5, 0.1)}
FEATURES: dict[str, Callable[[], Any]] = {
    "characters": lambda: TfidfVectorizer(analyzer="char", lowercase=False, use_idf=False),
    "1- to 3-grams": lambda: TfidfVectorizer(
        analyzer="char", ngram_range=(1, 3), lowercase=False, sublinear_tf=True, min_df=5
    ),
    "word bigrams": lambda: TfidfVectorizer(
        token_pattern=r"\w+|[^\w\s]", ngram_range=(2, 2), lowercase=False, sublinear_tf=True, min_df=2
    ),
}
Rows = dict[str, dict[str, float]]  # by name and column


def as_read(text: str) -> str:
    """Return the text as an uncased BERT splits it into words, joined by spaces."""
    return " ".join(re.findall(r"\w+|[^\w\s]", text.lower()))


def accuracy(features: Any, anchors: Sequence[str], negatives: Sequence[str]) -> float:
    """Train a classifier on the first half of the texts, and return its accuracy on the second half.

    features: a scikit-learn vectorizer.
    """
    half = len(anchors) // 2
    known = features.fit_transform([*anchors[:half], *negatives[:half]])
    asked = features.transform([*anchors[half:], *negatives[half:]])
    classifier = LogisticRegression(C=10.0, solver="liblinear").fit(known, np.repeat([0, 1], half))
    return float(classifier.score(asked, np.repeat([0, 1], len(anchors) - half)))


class LanguageModel:
    """A bigram model of lower-case words, interpolated with unigrams and a uniform distribution (Witten and Bell)."""

    def __init__(self, texts: Sequence[str]):
        pairs = [pair for text in texts for pair in self._pairs_of(text)]
        self._pairs = Counter(pairs)
        self._single = Counter(word for _, word in pairs)
        self._before = Counter(first for first, _ in pairs)
        self._kinds = Counter(first for first, _ in self._pairs)

    def perplexity(self, texts: Sequence[str]) -> float:
        """Return exp of the mean negative log-probability of a word."""
        pairs = [pair for text in texts for pair in self._pairs_of(text)]
        return math.exp(-sum(math.log(self._probability(*pair)) for pair in pairs) / len(pairs))

    def _probability(self, first: str, word: str) -> float:
        n = self._single.total() + len(self._single) + 1  # counts all unseen words as one more word
        single = (self._single[word] + 1.0) / n
        kinds, before = self._kinds[first], self._before[first]
        return (self._pairs[first, word] + kinds * single) / (before + kinds) if before else single

    @staticmethod
    def _pairs_of(text: str) -> list[tuple[str, str]]:
        return [*itertools.pairwise(["<s>", *as_read(text).split(), "</s>"])]


def measure(anchors: Sequence[str], negatives: Sequence[str], model: LanguageModel) -> dict[str, float]:
    """Return a row of the first table by column: the accuracies, and the ratio of the perplexities.

    model: the language model that computes the perplexities.
    """
    row = {f"{name}, as written": accuracy(make(), anchors, negatives) for name, make in FEATURES.items()}
    read = [[as_read(text) for text in texts] for texts in (anchors, negatives)]
    row |= {f"{name}, as read": accuracy(make(), *read) for name, make in FEATURES.items()}
    return row | {"perplexity": model.perplexity(negatives) / model.perplexity(anchors)}


def measure_settings(lines: Sequence[str]) -> Rows:
    """Measure every setting on the first SENTENCES of the lines. The language model is trained on the others."""
    anchors, model, rows = lines[:SENTENCES], LanguageModel(lines[SENTENCES:]), {}
    index = una_fast.build_index(anchors)
    for name, setting in SETTINGS.items():
        make = SameClass if name.startswith(CLASSES) else una_fast.Augmenter
        rows[name] = measure(anchors, make(index, **setting).texts(range(len(anchors))), model)
        print(name, rows[name], flush=True)
    return rows


def treebank(folder: Path) -> list[str]:
    """Return the distinct sentences of the dev and test files of a treebank."""
    files = sorted(path for part in ("dev", "test") for path in folder.glob(f"*-{part}.conllu"))
    texts = "\n".join(file.read_text(encoding="utf-8") for file in files)
    return [*dict.fromkeys(re.findall(r"^# text = (.+)", texts, re.MULTILINE))]


def language_rows(name: str, lines: Sequence[str], **options: Any) -> Rows:
    """Return the table rows of a language, one per surface of the negatives. options: for `build_index`."""
    index, rows = una_fast.build_index(lines, **options), {}
    for surface in ("paper", "kept"):
        negatives = una_fast.Augmenter(index, surface=surface, keep_punctuation=True).texts(range(len(lines)))
        row = {key: accuracy(FEATURES[key](), lines, negatives) for key in ("characters", "1- to 3-grams")}
        for kind, is_of in KINDS.items():
            for whose, texts in (("sentences", lines), ("negatives", negatives)):
                row[f"{kind}, {whose}"] = 100 * sum(map(is_of, "".join(texts))) / sum(map(len, texts))
        rows[f"{name}, {len(lines):,} sentences, {surface}"] = row
        print(name, surface, row, flush=True)
    return rows


def measure_languages(folders: dict[str, Path], english: Sequence[str]) -> Rows:
    """Measure other languages. folders: treebanks by language; english: the sentences of the first table."""
    rows: Rows = {}
    for name, folder in folders.items():
        lines = treebank(folder)
        for row_name, options in LANGUAGES[name].items():
            rows |= language_rows(row_name, lines, **options)
        rows |= language_rows("English", english[: len(lines)])
    return rows


def tables(result: dict[str, Any]) -> dict[str, str]:
    """Return the tables of docs/style.md, by the name of their markers."""
    made = {}
    shown = {
        "settings": ("surface, beta", result["rows"]),
        "languages": ("language, surface", result["languages"]["rows"]),
    }
    for name, (first, rows) in shown.items():
        columns = list(next(iter(rows.values())))
        cells = [[setting, *(f"{row[column]:.3f}" for column in columns)] for setting, row in rows.items()]
        made[name] = report.table([first, *columns], cells)
    return made


def write_page(corpus: Path, german: Path | None, chinese: Path | None) -> None:
    """Measure the settings or, with two treebanks, the languages; write the results and both tables of the page."""
    lines, result = script.read_lines(corpus, SENTENCES + OTHERS), read_object(RESULT)
    if german and chinese:
        rows = measure_languages({"German": german, "Chinese": chinese}, lines)
        result |= {"languages": {"folders": [german.name, chinese.name], "rows": rows}}
    else:
        result |= {"corpus": corpus.name, "sentences": SENTENCES, "others": OTHERS, "rows": measure_settings(lines)}
    write_json(RESULT, result)
    for name, made in tables(result).items():
        report.write_between_marks(PAGE, [made], name)


if __name__ == "__main__":
    folder = script.FOLDER | {"required": False, "help": "a treebank: measure only the other languages"}
    sys.exit(script.run(__doc__, write_page, corpus=script.CORPUS, german=folder, chinese=folder))
