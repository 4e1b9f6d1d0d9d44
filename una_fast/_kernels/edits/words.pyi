# made from words.pyx by tools/stubs.py
from typing import Any

MARKS: Any
class Lexicon:
    ids: dict[Any, Any]
    def __init__(self, words: Any) -> None: ...
class Words:
    text: str
    def __init__(self, lexicon: Lexicon) -> None: ...
