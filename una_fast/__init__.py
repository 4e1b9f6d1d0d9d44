"""UNA: hard negatives for contrastive training of sentence encoders, made at the speed of memory.

Shu and Lampos, Unsupervised hard Negative Augmentation for contrastive learning.
"""

from una_fast.augmenter import Augmenter
from una_fast.errors import InputError
from una_fast.index import Index, build_index, load_index
from una_fast.tokens import TokenIds

__version__ = "0.1.0"
__all__ = ["Augmenter", "Index", "InputError", "TokenIds", "build_index", "load_index"]
