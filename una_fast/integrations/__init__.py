"""UNA's negatives in other trainers: as text in a Hugging Face dataset, or as token ids from row numbers of the index.

Install the packages with ``pip install '.[integrations]'``.
"""

from una_fast.integrations.datasets import Negatives, add_negatives

__all__ = ["Negatives", "add_negatives"]
