"""UNA's negatives inside other trainers: ``pip install '.[integrations]'``.

Negatives              a transform for `dataset.with_transform`: columns of text
sentence_transformers  row_dataset, RowCollator: token ids by row; ViewsLoss, PairsLoss: the losses of una_fast
transformers           RowCollator for the Trainer and for a plain DataLoader
"""

from una_fast.integrations.datasets import Negatives

__all__ = ["Negatives"]
