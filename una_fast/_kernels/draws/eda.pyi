# made from eda.pyx by tools/stubs.py
from typing import Any

from una_fast._kernels.draws.rows import RowKernel
from una_fast._kernels.ids.emit import TermTokens
OPERATIONS: Any
class EditedRows(RowKernel):
    def __init__(self, words: Any, operation: str, strength: float, synonyms: Any, seed: int, tokens: TermTokens | None = ..., numbers: Any = ...) -> None: ...
