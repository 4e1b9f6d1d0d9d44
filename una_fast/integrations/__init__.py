"""UNA's negatives inside other trainers: ``pip install '.[integrations]'``.

Negatives              a transform for `dataset.with_transform`, which adds negatives as text columns
sentence_transformers  row_dataset, RowCollator: token ids of rows; ViewsLoss, PairsLoss: the losses of una_fast
transformers           RowCollator for transformers' Trainer and for a DataLoader
"""

from una_fast.integrations.datasets import Negatives

__all__ = ["Negatives"]
