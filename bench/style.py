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

import argparse
import gzip
import itertools
import json
import math
import re
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression

import una_fast
from bench.evidence.word_classes import SameClass
from bench.report import write_between_marks

SENTENCES, OTHERS = 10_000, 40_000
RESULT, PAGE = Path("bench/results/style.json"), Path("docs/style.md")
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
        words = [self._words(text) for text in texts]
        self._single = Counter(word for text in words for word in text[1:])
        self._pairs = Counter(pair for text in words for pair in itertools.pairwise(text))
        self._before = Counter(word for text in words for word in text[:-1])
        self._kinds = Counter(first for first, _ in self._pairs)
        self._n = self._single.total()

    def perplexity(self, texts: Sequence[str]) -> float:
        """Return exp of the mean negative log-probability of a word."""
        pairs = [pair for text in texts for pair in itertools.pairwise(self._words(text))]
        return math.exp(-sum(math.log(self._probability(*pair)) for pair in pairs) / len(pairs))

    def _probability(self, first: str, word: str) -> float:
        n_words = len(self._single)
        single = (self._single[word] + 1.0) / (self._n + n_words + 1)  # counts all unseen words as one more word
        kinds, before = self._kinds[first], self._before[first]
        return (self._pairs[first, word] + kinds * single) / (before + kinds) if before else single

    @staticmethod
    def _words(text: str) -> list[str]:
        return ["<s>", *as_read(text).split(), "</s>"]


def measure(anchors: Sequence[str], negatives: Sequence[str], model: LanguageModel) -> dict[str, float]:
    """Return a row of the first table by column: the accuracies, and the ratio of the perplexities.

    model: the language model that computes the perplexities.
    """
    row = {f"{name}, as written": accuracy(make(), anchors, negatives) for name, make in FEATURES.items()}
    read = [[as_read(text) for text in texts] for texts in (anchors, negatives)]
    row |= {f"{name}, as read": accuracy(make(), *read) for name, make in FEATURES.items()}
    return row | {"perplexity": model.perplexity(negatives) / model.perplexity(anchors)}


def treebank(folder: Path) -> list[str]:
    """Return the distinct sentences of the dev and test files of a treebank."""
    files = sorted(path for part in ("dev", "test") for path in folder.glob(f"*-{part}.conllu"))
    texts = [file.read_text(encoding="utf-8") for file in files]
    return list(
        dict.fromkeys(sentence for text in texts for sentence in re.findall(r"^# text = (.+)", text, re.MULTILINE))
    )


def language_rows(name: str, lines: Sequence[str], **options: Any) -> dict[str, dict[str, float]]:
    """Return the table rows of a language, one per surface of the negatives. options: for `build_index`."""
    index, rows = una_fast.build_index(lines, **options), {}
    for surface in ("paper", "kept"):
        negatives = una_fast.Augmenter(index, surface=surface, keep_punctuation=True).texts(range(len(lines)))
        features = {key: FEATURES[key]() for key in ("characters", "1- to 3-grams")}
        row = {key: accuracy(feature, lines, negatives) for key, feature in features.items()}
        for kind, is_of in KINDS.items():
            for whose, texts in (("sentences", lines), ("negatives", negatives)):
                row[f"{kind}, {whose}"] = 100 * sum(map(is_of, "".join(texts))) / sum(map(len, texts))
        rows[f"{name}, {len(lines):,} sentences, {surface}"] = row
        print(name, surface, {key: round(value, 3) for key, value in row.items()}, flush=True)
    return rows


def measure_languages(folders: dict[str, Path], english: Sequence[str]) -> dict[str, Any]:
    """Measure other languages. folders: treebanks by language; english: the sentences of the first table."""
    rows: dict[str, dict[str, float]] = {}
    for name, folder in folders.items():
        lines = treebank(folder)
        for row_name, options in LANGUAGES[name].items():
            rows |= language_rows(row_name, lines, **options)
        rows |= language_rows("English", english[: len(lines)])
    return {"folders": [folder.name for folder in folders.values()], "rows": rows}


def table(rows: dict[str, dict[str, float]], first: str = "surface, beta") -> str:
    """Return a Markdown table with one line per setting."""
    names = list(next(iter(rows.values())))
    lines = [f"| {first} | " + " | ".join(names) + " |", "|:--|" + "--:|" * len(names)]
    lines += [
        f"| {setting} | " + " | ".join(f"{row[name]:.3f}" for name in names) + " |" for setting, row in rows.items()
    ]
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("corpus", type=Path, help=".gz file with one sentence per line")
    parser.add_argument("--sentences", type=int, default=SENTENCES, help="sentences to measure [10,000]")
    parser.add_argument("--only", default="", help="only measure and print settings whose name contains this text")
    parser.add_argument("--german", type=Path, help="a treebank: measure only the other languages")
    parser.add_argument("--chinese", type=Path, help="a treebank")
    arguments = parser.parse_args()
    with gzip.open(arguments.corpus, "rt", encoding="utf-8") as file:
        lines = [line.rstrip("\n") for line in itertools.islice(file, SENTENCES + OTHERS)]
    saved = json.loads(RESULT.read_text(encoding="utf-8")) if RESULT.is_file() else {}
    if arguments.german and arguments.chinese:
        folders = {"German": arguments.german, "Chinese": arguments.chinese}
        write({**saved, "languages": measure_languages(folders, lines)})
        return
    anchors, model = lines[: arguments.sentences], LanguageModel(lines[SENTENCES:])
    index, rows = una_fast.build_index(lines[:SENTENCES]), {}
    for name, setting in SETTINGS.items():
        if arguments.only in name:
            make = SameClass if name.startswith(CLASSES) else una_fast.Augmenter
            negatives = make(index, **setting).texts(range(len(anchors)))
            rows[name] = measure(anchors, negatives, model)
            print(name, {key: round(value, 3) for key, value in rows[name].items()}, flush=True)
    if not arguments.only:
        corpus = {"corpus": arguments.corpus.name, "sentences": len(anchors), "others": OTHERS}
        write({**saved, **corpus, "rows": rows})


def write(result: dict[str, Any]) -> None:
    """Write bench/results/style.json and the two tables of docs/style.md."""
    RESULT.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")
    for name, made in tables(result).items():
        write_between_marks(PAGE, [made], name)


def tables(result: dict[str, Any]) -> dict[str, str]:
    """Return the tables of docs/style.md, by the name of their markers."""
    return {"settings": table(result["rows"]), "languages": table(result["languages"]["rows"], "language, surface")}


if __name__ == "__main__":
    main()
