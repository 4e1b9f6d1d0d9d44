# made from negatives.pyx by tools/stubs.py
from typing import Any

from una_fast._kernels.draws.probability import SamplingConfig
from una_fast._kernels.draws.rows import RowKernel
class UnaRows(RowKernel):
    config: SamplingConfig
    def __init__(self, words: Any, config: SamplingConfig, packed: Any = ..., streams: Any = ..., unseen_groups: Any = ...) -> None: ...
