# made from custom.pyx by tools/stubs.py
from typing import Any

from una_fast._kernels.draws.rows import RowKernel
from una_fast._kernels.ids.emit import TermTokens
class CustomRows(RowKernel):
    def __init__(self, words: Any, function: Any, keeps_length: bool, idf: Any, max_tfidf: Any, document_frequency: Any, n_terms: int, seed: int, tokens: TermTokens | None = ..., numbers: Any = ...) -> None: ...
