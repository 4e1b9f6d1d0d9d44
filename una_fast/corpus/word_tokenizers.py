"""Splitting a sentence into words: named tokenizers, segmenters of other libraries, functions of the caller."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from typing import Any

from una_fast._kernels.words.treebank import treebank_words
from una_fast.arrays import StringTable
from una_fast.errors import InputError
from una_fast.imports import import_object

Split = Callable[[str], Sequence[str]]
NAMED: dict[str, Split] = {"treebank": treebank_words, "whitespace": str.split}


def _fugashi() -> Split:
    import_module("unidic_lite")  # without it, fugashi fails with a page of text
    tagger = import_module("fugashi").Tagger("-Owakati")
    return lambda text: tagger.parse(text.replace("\0", " ")).split()  # it stops at \0


# name: its language, how it is made, what pip installs
SEGMENTERS: dict[str, tuple[str, Callable[[], Split], str]] = {
    "rjieba": ("Chinese", lambda: import_module("rjieba").cut, "rjieba"),
    "fugashi": ("Japanese", _fugashi, "fugashi unidic-lite"),
    "pythainlp": ("Thai", lambda: import_module("pythainlp.tokenize").word_tokenize, "pythainlp"),
}

SCRIPTS = {  # scripts without spaces between words
    "Chinese": "\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff",
    "Japanese": "\u3040-\u30ff\u31f0-\u31ff",
    "Thai": "\u0e00-\u0e7f",
    "Lao": "\u0e80-\u0eff",
    "Burmese": "\u1000-\u109f",
    "Khmer": "\u1780-\u17ff",
}
PUNCTUATION = "\u3000-\u303f\uff00-\uffef"  # of East Asia; word tokenizers for English do not split at it
# Few words of these scripts have more than 12 characters, nearly all clauses do.
LONG_RUN = re.compile(f"[{''.join(SCRIPTS.values())}{PUNCTUATION}]{{13,}}")
LEAST_SHARE = 0.1  # of the characters, in long runs, for a warning
SAMPLE = 100  # consecutive chunks in a sample, and places from which chunks or documents are sampled
SAMPLED = 1000  # characters of such a document

# Tokenizers split these differently: clitics, quotes, final periods, numbers, addresses, symbols, case, white space of
# several kinds, and scripts without spaces. Their words are the signature of a
# tokenizer, which the manifest of an index calls `word_probe`.
SIGNATURE_SENTENCES = (
    "The cat sat on the mat.",
    "They won't say \"it's\" (or 'tis), I cannot; gimme Dr. Smith's $3.88 -- 10:30, 1,000,000 e.g. at U.S. co...",
    "  Two  spaces,\ta tab,\na line\u00a0and a hard space  ",
    "https://example.org/a?b=1#c mail@example.org @user #tag snake_case camelCase state-of-the-art and/or C++ 50%",
    "Naïve café, Straße, İstanbul, ΟΔΟΣ, e\u0301 «citation» „Zitat“ — ellipsis… 👩‍👩‍👧 🙂",
    "Это простое предложение. Αυτή είναι μια πρόταση. هذه جملة بسيطة، أليس كذلك؟ यह एक वाक्य है।",
    "我来到北京清华大学,今天天气很好。",
    "私は東京都に住んでいます。すもももももももものうち。",
    "ฉันรักภาษาไทยและไปโรงเรียนทุกวัน",
    "나는 학교에 갑니다. ខ្ញុំស្រឡាញ់ភាសាខ្មែរ ຂ້ອຍຮັກພາສາລາວ ကျွန်တော်မြန်မာစာကိုချစ်တယ်",
)
Signature = list[list[str] | None]  # of each of SIGNATURE_SENTENCES; None where the function raised an error


@dataclass(frozen=True)
class WordTokenizer:
    """Splits a sentence into words. `name` is one of NAMED or SEGMENTERS, or "custom" for a caller's function."""

    name: str
    function: Split
    lowercase: bool

    def words(self, text: str) -> list[str]:
        """Return the words of a sentence. Raises InputError if a function does not return a list of words."""
        words = self.function(text.lower() if self.lowercase else text)
        if self.name in NAMED:
            return list(words)
        if self.name in SEGMENTERS:  # they return white space as words too
            return [word for word in words if not word.isspace()]
        return _checked_words(words, text)


def word_tokenizer(tokenizer: str | Split = "treebank", lowercase: bool = True) -> WordTokenizer:
    """Return the tokenizer of this name or function of a str; with `lowercase` it gets sentences in lower case.

    A str is never imported, because it may come from somebody else's index (see `resolve_tokenizer`).
    """
    if callable(tokenizer):
        return WordTokenizer("custom", tokenizer, lowercase)
    if tokenizer in NAMED or tokenizer in SEGMENTERS:
        return WordTokenizer(tokenizer, NAMED.get(tokenizer) or _segmenter(tokenizer), lowercase)
    if ":" in tokenizer:
        raise InputError(
            f"the index was built with the word tokenizer {tokenizer!r}, which it cannot bring along: if you trust "
            f"that code, give load_index word_tokenizer={tokenizer!r}, or a command --word-tokenizer"
        )
    raise InputError(
        f"there is no word tokenizer {tokenizer!r}: give {', '.join(map(repr, [*NAMED, *SEGMENTERS]))}, "
        'a function or its import path, as "module:function"'
    )


def resolve_tokenizer(tokenizer: str | Split) -> str | Split:
    """Import the function of a path "module:function"; return any other name, and a function, unchanged.

    Call it only with a user's argument, because it imports. Raises InputError if the path does not lead to a function.
    """
    return import_object(tokenizer) if isinstance(tokenizer, str) and ":" in tokenizer else tokenizer


def tokenizer_name(tokenizer: str | Split) -> str:
    """Return a name for messages and manifests; a function's is "module:name"."""
    if isinstance(tokenizer, str):
        return tokenizer
    kind = type(tokenizer)
    name = getattr(tokenizer, "__qualname__", kind.__qualname__)
    return f"{getattr(tokenizer, '__module__', None) or kind.__module__}:{name}"


def signature_of(tokenizer: str | Split) -> Signature | None:
    """Return a tokenizer's words of SIGNATURE_SENTENCES; None for NAMED ones, which do not change."""
    if isinstance(tokenizer, str) and tokenizer in NAMED:
        return None
    function = word_tokenizer(tokenizer, lowercase=False).function
    # empty words too: text.split(" ") makes them of two spaces, which the corpus may not have
    return _words_or_none(lambda text: _checked_words(function(text), text, or_empty=True), SIGNATURE_SENTENCES)


def check_signature(where: str, expected: Signature, tokenizer: str | Split) -> None:
    """Raise InputError if a tokenizer's `signature_of` are not `expected`. where: what expects them."""
    for text, old, new in zip(SIGNATURE_SENTENCES, expected, signature_of(tokenizer) or [], strict=True):
        if old != new:
            raise InputError(
                f"{where}: its words were made by another word tokenizer than {tokenizer_name(tokenizer)}, which "
                f"makes {new} of {text!r}, and {old} are expected: give the one it was built with, or build it again"
            )


def some_words(documents: StringTable, split: WordTokenizer) -> bytes:
    """Return the words of the beginnings of about SAMPLE documents, which show a changed function; none for NAMED."""
    if split.name in NAMED:
        return b""
    rows = range(0, len(documents), len(documents) // SAMPLE + 1)
    return repr(_words_or_none(split.words, [documents[row][:SAMPLED] for row in rows])).encode()


def unsplit_script(chunks: StringTable, tokenizer: str) -> str:
    """Return the warning for a corpus of a script that this `tokenizer` does not split into words, or ""."""
    if tokenizer not in NAMED:
        return ""
    starts = range(0, len(chunks), max(SAMPLE, len(chunks) // SAMPLE))
    sample = " ".join(chunk for start in starts for chunk in chunks[start : start + SAMPLE])
    runs, n_characters = "".join(LONG_RUN.findall(sample)), len(sample) - sample.count(" ")
    if len(runs) <= LEAST_SHARE * n_characters:
        return ""
    counts = {language: len(re.findall(f"[{letters}]", runs)) for language, letters in SCRIPTS.items()}
    if counts["Japanese"] > 0.05 * counts["Chinese"]:  # Japanese is written in Chinese characters too
        counts["Japanese"] += counts.pop("Chinese")
    language = max(counts, key=lambda language: counts[language])
    named = [
        f"word_tokenizer={name!r} (pip install {pip})" for name, (of, _, pip) in SEGMENTERS.items() if of == language
    ]
    return (
        f"{len(runs) / n_characters:.0%} of the corpus is {language}, which has no spaces between words: "
        f"{tokenizer!r} makes whole clauses into words; give {' or '.join([*named[:1], 'a function that splits it'])} "
        "as word_tokenizer"
    )


def _words_or_none(split: Split, texts: Iterable[str]) -> Signature:
    words: Signature = []
    for text in texts:
        try:
            words.append([*split(text)])
        except InputError:
            raise
        except Exception:  # a caller's function may raise anything for a script it does not know
            words.append(None)
    return words


@cache  # a dictionary takes up to a second to load
def _segmenter(name: str) -> Split:
    try:
        return SEGMENTERS[name][1]()
    except ImportError as error:
        raise InputError(
            f"word_tokenizer={name!r}: the package {error.name} is not installed: pip install {SEGMENTERS[name][2]}"
        ) from error


def _checked_words(words: Any, text: str, or_empty: bool = False) -> list[str]:
    if isinstance(words, (list, tuple)) and all(isinstance(word, str) and (word or or_empty) for word in words):
        return list(words)
    raise InputError(f"the word tokenizer made {words!r} of {text!r}: it must return a list of str, none empty")
