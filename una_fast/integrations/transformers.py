"""For the Trainer of transformers, and for a DataLoader without a trainer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from una_fast.imports import naming_extras

with naming_extras("integrations"):
    import torch

    from una_fast.integrations.views import RowReader


class RowCollator(RowReader):
    """Row numbers of the index -> the token ids of all views, as one batch.

    Give it a dataset of row numbers (`una_fast.integrations.sentence_transformers.row_dataset`, or any sequence of
    integers) and, for the Trainer, ``remove_unused_columns=False``.

    Args:
        augmenter: with a tokenizer, of an index that was saved.
        max_length: tokens a sentence, special ones included; all views are padded to it.
        positive: "same", None, or an offset in rows to the positive (the corpus's length for aligned paraphrases).
        n: negatives a sentence.
        prompts: text to put before the sentences, one for all or by view ("anchor", "positive", "negative").

    Raises:
        InputError: no tokenizer, an index that is not saved, or a setting out of its range.

    """

    def __call__(self, rows: Sequence[int | Mapping[str, int]]) -> dict[str, torch.Tensor]:
        """{"input_ids", "attention_mask"[, "token_type_ids"]}: torch.int64 (B, V, L).

        The V views stand in the order of `views`: anchor, positive, negatives.
        """
        views = self._read(rows)
        return {name: torch.stack([ids[name] for ids in views.values()], dim=1) for name in views["anchor"]}
