"""Makes a small corpus from text that comes with Python, for the demo and first examples."""

from __future__ import annotations

import re

_PROSE = re.compile(r"[A-Z][\w ,;:()’'-]{25,300}[.!?]")  # a sentence without code or markup
_END = re.compile(r"(?<=[a-z\d)][.!?]) (?=[A-Z])")  # the space between two sentences


def sample_corpus() -> list[str]:
    """Return about 1,500 distinct sentences of Python's language reference, which ``help()`` shows.

    The sentences contain no code, tables, headings or markup, and differ slightly between versions of Python.
    """
    from pydoc_data.topics import topics  # imported here: 0.5 MB of text

    paragraphs = (part for name in sorted(topics) for part in re.split(r"\n\s*\n", topics[name]))
    texts = (" ".join(part.replace("*", "").replace('"', "").split()) for part in paragraphs)
    return [*dict.fromkeys(sentence for text in texts for sentence in _END.split(text) if _PROSE.fullmatch(sentence))]
