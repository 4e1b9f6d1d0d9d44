# made from emit.pyx by tools/stubs.py
from typing import Any

from una_fast._kernels.ids.frame import Frame
def pack(terms: Any) -> Any: ...
class TermTokens:
    frame: Frame
    fills_rows: bool
    def __init__(self, terms: Any, first_terms: Any, frame: Frame, irregular: Any = ...) -> None: ...
