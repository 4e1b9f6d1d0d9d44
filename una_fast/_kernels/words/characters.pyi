# made from characters.pyx by tools/stubs.py
from typing import Any

WORD_RUNS: Any
DIGIT_RUNS: Any
def character_classes(c: str) -> Any: ...
