"""Training, evaluation and generation with PyTorch. The import sets GOMP_SPINCOUNT for PyTorch's threads."""

import os

if "OMP_WAIT_POLICY" not in os.environ:
    # How often a waiting OpenMP thread spins before it sleeps, read when torch is loaded. With the default of 300,000,
    # a step takes 15 s instead of 2.7 s while other processes keep the cores busy.
    os.environ.setdefault("GOMP_SPINCOUNT", "10000")
