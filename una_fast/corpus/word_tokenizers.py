"""Splits sentences into words with a named tokenizer, another library's segmenter or a user's function."""

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

SplitWords = Callable[[str], Sequence[str]]  # a sentence -> all its words
NAMED: dict[str, SplitWords] = {"treebank": treebank_words, "whitespace": str.split}


def _fugashi() -> SplitWords:
    import_module("unidic_lite")  # fugashi's own error for a missing dictionary is a page long
    tagger = import_module("fugashi").Tagger("-Owakati")
    return lambda text: tagger.parse(text.replace("\0", " ")).split()  # fugashi stops at \0


# name -> language, a function that returns the segmenter, the packages to install with pip
SEGMENTERS: dict[str, tuple[str, Callable[[], SplitWords], str]] = {
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
PUNCTUATION = "\u3000-\u303f\uff00-\uffef"  # East Asian; English word tokenizers do not split at it
# In these scripts few words are longer than 12 characters, but nearly all clauses are.
LONG_RUN = re.compile(f"[{''.join(SCRIPTS.values())}{PUNCTUATION}]{{13,}}")
LEAST_SHARE = 0.1  # `unsplit_script` warns if long runs contain a larger share of the characters than this
SAMPLE = 100  # sentences of `words_of_sample`; positions in `unsplit_script`, and consecutive chunks at each
SAMPLED_CHARACTERS = 1000  # `words_of_sample` reads this many characters of a sentence, from its start

# Sentences that tokenizers split differently: clitics, quotes, final periods, numbers, addresses, symbols, case, white
# space, and scripts without spaces. A tokenizer's words for them are its signature (`word_probe` in a manifest).
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
Signature = list[list[str] | None]  # the words of each of SIGNATURE_SENTENCES; None where the function raised


@dataclass(frozen=True)
class WordTokenizer:
    """A named word tokenizer, another library's segmenter, or a user's function."""

    tokenizer: str | SplitWords  # no import path, so that a stranger's index cannot run code
    lowercase: bool = True  # whether a sentence is lower-cased before it is split

    def __post_init__(self) -> None:
        _ = self._function  # raises InputError for an unknown name

    @property
    def is_named(self) -> bool:
        """Whether the tokenizer is "treebank" or "whitespace", which never change."""
        return isinstance(self.tokenizer, str) and self.tokenizer in NAMED

    @property
    def name(self) -> str:
        """The name in messages and manifests: "module:name" for a function."""
        if isinstance(self.tokenizer, str):
            return self.tokenizer
        kind = type(self.tokenizer)
        module = getattr(self.tokenizer, "__module__", None) or kind.__module__
        return f"{module}:{getattr(self.tokenizer, '__qualname__', kind.__qualname__)}"

    @property
    def _function(self) -> SplitWords:
        return _function_of(self.tokenizer) if isinstance(self.tokenizer, str) else self.tokenizer

    def words(self, text: str) -> list[str]:
        """Return the words of a sentence."""
        words = self._function(text.lower() if self.lowercase else text)
        if self.is_named:
            return list(words)
        if isinstance(self.tokenizer, str):  # segmenters return white space as words too
            return [word for word in words if not word.isspace()]
        return _checked_words(words, text)

    def signature(self) -> Signature | None:
        """Return the words of each of SIGNATURE_SENTENCES, to identify the tokenizer, or None if `is_named`."""
        if self.is_named:
            return None
        # Empty words are allowed here: text.split(" ") returns them for two spaces, which the corpus may not contain.
        return _words_or_none(
            lambda text: _checked_words(self._function(text), text, or_empty=True), SIGNATURE_SENTENCES
        )

    def check_signature(self, index_name: str, expected: Signature) -> None:
        """Raise InputError if the signature of this tokenizer differs from `expected`, the signature in an index."""
        for text, old, new in zip(SIGNATURE_SENTENCES, expected, self.signature() or [], strict=True):
            if old != new:
                raise InputError(
                    f"{index_name}: its words were made by a word tokenizer other than {self.name}, which splits "
                    f"{text!r} into {new}, not {old}: give the word tokenizer that built the index, or build it again"
                )

    def words_of_sample(self, documents: StringTable) -> bytes:
        """Return the words of up to SAMPLE sentences as bytes for a checksum that detects a changed tokenizer.

        If `is_named`, return b"".
        """
        if self.is_named:
            return b""
        rows = range(0, len(documents), len(documents) // SAMPLE + 1)
        return repr(_words_or_none(self.words, [documents[row][:SAMPLED_CHARACTERS] for row in rows])).encode()


def resolve_tokenizer(tokenizer: str | SplitWords) -> str | SplitWords:
    """Import the word tokenizer at an import path "module:function". A name or a function is returned unchanged.

    An import runs code, so call this only with an argument that the user gave.
    """
    return import_object(tokenizer) if isinstance(tokenizer, str) and ":" in tokenizer else tokenizer


@cache  # a dictionary takes up to a second to load
def _function_of(name: str) -> SplitWords:
    if name in NAMED:
        return NAMED[name]
    if name in SEGMENTERS:
        _, make, pip = SEGMENTERS[name]
        try:
            return make()
        except ImportError as error:
            raise InputError(
                f"word_tokenizer={name!r}: the package {error.name} is not installed: pip install {pip}"
            ) from error
    if ":" in name:
        raise InputError(
            f"the index was built with the word tokenizer {name!r}, and an index contains no code: if you trust this "
            f"code, give load_index word_tokenizer={name!r}, or a command --word-tokenizer"
        )
    raise InputError(
        f"unknown word tokenizer {name!r}: give {', '.join(map(repr, [*NAMED, *SEGMENTERS]))}, a function or its "
        'import path, as "module:function"'
    )


def _words_or_none(split: SplitWords, texts: Iterable[str]) -> Signature:
    words: Signature = []
    for text in texts:
        try:
            words.append([*split(text)])
        except InputError:
            raise
        except Exception:  # a user's function may raise anything for a script that it does not support
            words.append(None)
    return words


def _checked_words(words: Any, text: str, or_empty: bool = False) -> list[str]:
    if isinstance(words, (list, tuple)) and all(isinstance(word, str) and (word or or_empty) for word in words):
        return list(words)
    raise InputError(f"the word tokenizer made {words!r} of {text!r}: it must return a list of str, none empty")


def unsplit_script(chunks: StringTable, tokenizer: WordTokenizer) -> str:
    """Return a warning if `tokenizer` cannot split the script of the corpus into words, or "" if it can."""
    if not tokenizer.is_named:
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
    named = (f"{name!r} (pip install {pip}) or " for name, (of, _, pip) in SEGMENTERS.items() if of == language)
    return (
        f"{len(runs) / n_characters:.0%} of the corpus is {language}, which has no spaces between words: "
        f"{tokenizer.name!r} makes whole clauses into words; give as word_tokenizer {next(named, '')}a function that "
        "splits this language"
    )
