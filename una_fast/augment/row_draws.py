"""RowDraws, the name that `counter_rng.CounterRNG` had up to 0.2."""

import warnings

from una_fast.augment.counter_rng import CounterRNG as RowDraws  # noqa: F401

warnings.warn("row_draws.RowDraws is called counter_rng.CounterRNG", FutureWarning, stacklevel=2)
