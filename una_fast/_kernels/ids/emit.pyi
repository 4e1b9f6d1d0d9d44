# made from emit.pyx by tools/stubs.py
from typing import Any

from una_fast._kernels.ids.frame import Frame
def pack(terms: Any) -> Any: ...
class TermTokens:
    frame: Frame
    def __init__(self, terms: Any, n: int, frame: Frame) -> None: ...
