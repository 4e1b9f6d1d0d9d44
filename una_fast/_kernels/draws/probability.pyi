# made from probability.pyx by tools/stubs.py
from typing import Any

import numpy as np
from numpy.typing import NDArray

ANY: Any
def replacement_probabilities(config: SamplingConfig, words: Any, fixed_unseen: NDArray[np.uint8] | None = ...) -> Any: ...
def id_bits(n_terms: int) -> Any: ...
def fill_weighted(config: SamplingConfig, ids: NDArray[np.int32], indptr: NDArray[np.int64], first: NDArray[np.int32], p: NDArray[np.float64], out: NDArray[np.uint32]) -> Any: ...
class SamplingConfig:
    fixed: NDArray[np.uint64]
    unseen_idf: float
    beta: float
    radius: int
    seed: int
    released: bool
    random_select: bool
    random_replace: bool
    fixes: bool
    by_script: bool
    known_scripts: Any
    def __init__(self, idf: NDArray[np.float64], scores: NDArray[np.float64], *, unseen_idf: float, beta: float, radius: int, seed: int, released: bool, random_select: bool, random_replace: bool, fixed: NDArray[np.uint64] | None = ..., scripts: NDArray[np.uint8] | None = ...) -> None: ...
    def script(self, term: int) -> Any: ...
    def window(self, term: int, score: float = ..., script: int = ...) -> Any: ...
    def candidates(self, window: Any, excluded: int, script: int = ...) -> Any: ...
