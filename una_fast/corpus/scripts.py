"""Scripts without spaces between words: found in a sample of a corpus, to warn the user."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from una_fast.corpus.source import Block
from una_fast.corpus.word_tokenizers import NAMED, SEGMENTERS

SAMPLE_BYTES = 1 << 11  # of each block of about 1 MiB: about 20 us a block
LEAST_SHARE = 0.1  # of the sampled characters, above which the user is warned
SCRIPTS = {
    "Chinese": "\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff",
    "Japanese": "\u3040-\u30ff\u31f0-\u31ff",
    "Thai": "\u0e00-\u0e7f",
    "Lao": "\u0e80-\u0eff",
    "Burmese": "\u1000-\u109f",
    "Khmer": "\u1780-\u17ff",
}
PUNCTUATION = "\u3000-\u303f\uff00-\uffef"  # of East Asia; word tokenizers for English do not split at it
# Few words of these scripts have more than 12 characters, nearly all clauses have.
LONG_RUN = re.compile(f"[{''.join(SCRIPTS.values())}{PUNCTUATION}]{{13,}}")


@dataclass
class ScriptSample:
    """A sample of a corpus.

    Attributes:
        n_characters: The number of its characters that are no spaces.
        runs: Its runs of letters of SCRIPTS that are longer than words are.
    """

    n_characters: int = 0
    runs: list[str] = field(default_factory=list)

    def add(self, block: Block) -> None:
        """Look at the start of a block."""
        start = int(block.starts[0]) if len(block.starts) else len(block.data)
        text = block.data[start : start + SAMPLE_BYTES].tobytes().decode("utf-8", errors="ignore")
        self.n_characters += len(text) - text.count(" ")
        self.runs += LONG_RUN.findall(text)

    def remark(self, tokenizer: str) -> str:
        """The warning for a corpus in a script that the `tokenizer` of this name does not split into words, or ""."""
        runs = "".join(self.runs)
        if tokenizer not in NAMED or len(runs) <= LEAST_SHARE * self.n_characters:
            return ""
        counts = {language: len(re.findall(f"[{letters}]", runs)) for language, letters in SCRIPTS.items()}
        if counts["Japanese"] > 0.05 * counts["Chinese"]:  # Japanese is written in Chinese characters too
            counts["Japanese"] += counts.pop("Chinese")
        language = max(counts, key=lambda language: counts[language])
        named = [f"word_tokenizer={name!r}" for name, (known, _) in SEGMENTERS.items() if known == language]
        segmenter = f"{named[0]} (pip install 'una_fast[segmenters]') or " if named else ""
        return (
            f"{len(runs) / self.n_characters:.0%} of the corpus is {language}, which has no spaces between words: "
            f"{tokenizer!r} makes whole clauses into words; give {segmenter}a function that splits it as word_tokenizer"
        )
