r"""Print the two run-length tables of una_fast/_kernels/words/characters.pyx from the installed `regex` package.

NLTK matches with `regex`, whose Unicode tables are newer than Python's and whose \w is wider than str.isalnum.
Run this when tests/corpus/test_treebank.py reports that a newer `regex` disagrees, and paste the output.
"""

from __future__ import annotations

import textwrap
from itertools import groupby

import regex


def run_lengths(pattern: str) -> list[int]:
    """Lengths of the runs of code points that match `pattern` or do not, starting with those that do not."""
    matches = regex.compile(pattern).match
    flags = (matches(chr(code)) is not None for code in range(0x110000))
    runs = [(flag, sum(1 for _ in group)) for flag, group in groupby(flags)]
    return [length for _, length in runs[:-1]]  # the last run, of no matches, ends at the last code point


if __name__ == "__main__":
    for name, pattern in [("WORD_RUNS", r"\w"), ("DIGIT_RUNS", r"\d")]:
        runs = textwrap.fill(" ".join(map(str, run_lengths(pattern))), width=110)
        print(f'{name} = """\n{runs}\n"""')
