"""Makes UNA's negatives for other trainers. Install with ``pip install '.[integrations]'``.

Negatives: a transform for `dataset.with_transform` that adds negatives as text columns.
sentence_transformers: RowCollator makes batches of token ids; ViewsLoss and PairsLoss compute losses of una_fast.
transformers: RowCollator makes batches of token ids for transformers' Trainer and for a DataLoader.
"""

from una_fast.integrations.datasets import Negatives

__all__ = ["Negatives"]
