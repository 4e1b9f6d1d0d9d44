# made from treebank.pyx by tools/stubs.py
from typing import Any

KINDS: Any
def treebank_words(line: str) -> Any: ...
class Rewriter:
    def __init__(self) -> None: ...
