# made from sampling_config.pyx by tools/stubs.py
from typing import Any

import numpy as np
from numpy.typing import NDArray

ANY: Any
class SamplingConfig:
    idf: NDArray[np.float64]
    scores: NDArray[np.float64]
    fixed: NDArray[np.uint64]
    unseen_idf: float
    beta: float
    radius: float
    seed: int
    by_score: bool
    released: bool
    random_select: bool
    random_replace: bool
    fixes: bool
    by_script: bool
    known_scripts: Any
    def __init__(self, idf: NDArray[np.float64], scores: NDArray[np.float64], starts: NDArray[np.int32], stops: NDArray[np.int32], *, unseen_idf: float, beta: float, radius: float, seed: int, by_score: bool, released: bool, random_select: bool, random_replace: bool, fixed: NDArray[np.uint64] | None = ..., scripts: NDArray[np.uint8] | None = ...) -> None: ...
    def script(self, term: int) -> Any: ...
    def window(self, term: int, score: float = ..., script: int = ...) -> Any: ...
    def candidates(self, window: Any, excluded: int, script: int = ...) -> Any: ...
    def draw(self, row: int, epoch: int, position: int, number: int, sample_index: int = ...) -> Any: ...
