# made from custom.pyx by tools/stubs.py
from typing import Any

from una_fast._kernels.draws.rows import RowKernel
class CustomRows(RowKernel):
    def __init__(self, words: Any, function: Any, keeps_length: bool, idf: Any, max_tfidf: Any, document_frequency: Any, n_terms: int, seed: int, streams: Any = ...) -> None: ...
