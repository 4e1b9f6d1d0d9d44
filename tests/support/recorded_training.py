"""Trainings that record each sentence's negatives in each epoch; also a command, so that tests can start ranks."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import torch
from datasets import Dataset
from sentence_transformers import SentenceTransformer, SentenceTransformerTrainer, SentenceTransformerTrainingArguments
from torch import nn
from transformers import TrainerCallback

import una_fast
from una_fast.integrations import Negatives
from una_fast.integrations import sentence_transformers as for_sentence_transformers

Seen = list[dict[str, str]]  # for each epoch: ids of a sentence -> ids of its negative
BATCH, ROWS = 4, 18  # with two blank lines: four batches an epoch, or two on each of two ranks
COMMON: dict[str, Any] = {
    "per_device_train_batch_size": BATCH, "num_train_epochs": 2, "use_cpu": True, "report_to": "none",
    "save_strategy": "no", "logging_strategy": "no", "disable_tqdm": True,
}  # fmt: skip
KINDS = ("text", "rows")


class Recorder(TrainerCallback):
    """Begins a new record at every epoch."""

    def __init__(self) -> None:
        self.seen: Seen = []

    def on_epoch_begin(self, *args: Any, **kwargs: Any) -> None:
        self.seen.append({})

    def note(self, anchors: dict[str, torch.Tensor], negatives: dict[str, torch.Tensor]) -> None:
        """Record the ids of a batch without padding."""
        for anchor, negative in zip(_ids(anchors), _ids(negatives), strict=True):
            self.seen[-1][anchor] = negative


class RecordingLoss(nn.Module):
    """A loss that records its input."""

    def __init__(self, model: Any, recorder: Recorder) -> None:
        super().__init__()
        self.model, self.recorder = model, recorder

    def forward(self, features: list[dict[str, torch.Tensor]], labels: Any = None) -> torch.Tensor:
        assert len(features) == 3
        self.recorder.note(features[0], features[2])
        return self.model(dict(features[0]))["sentence_embedding"].sum()


def _ids(features: dict[str, torch.Tensor]) -> list[str]:
    pairs = zip(features["input_ids"], features["attention_mask"].bool(), strict=True)
    return [" ".join(map(str, ids[mask].tolist())) for ids, mask in pairs]


def record(kind: str, folder: Path, model: Path, resume: str | None = None, **arguments: Any) -> Seen:
    """Train and return the record. kind: one of KINDS; folder: it holds index/; resume: a checkpoint."""
    recorder = Recorder()
    settings = {**COMMON, "output_dir": str(folder / "output"), **arguments}
    _trainer(kind, folder / "index", model, recorder, settings).train(resume_from_checkpoint=resume)
    return recorder.seen


def _trainer(
    kind: str, index: Path, model: Path, recorder: Recorder, settings: dict[str, Any]
) -> SentenceTransformerTrainer:
    encoder = SentenceTransformer(str(model), device="cpu")
    una = una_fast.Augmenter(una_fast.load_index(index), tokenizer=encoder.tokenizer, n_jobs=1)
    if kind == "text":
        collator, source = None, Negatives(una)
        dataset = Dataset.from_dict({"text": list(una.index)})
        dataset = source.select(dataset).with_transform(source)
    else:
        collator = source = for_sentence_transformers.RowCollator(una)
        dataset = for_sentence_transformers.row_dataset(una)
    return SentenceTransformerTrainer(
        encoder,
        SentenceTransformerTrainingArguments(**settings),
        train_dataset=dataset,
        data_collator=collator,
        loss=RecordingLoss(encoder, recorder),
        callbacks=[source.callback(), recorder],
    )


class Given(nn.Module):
    """A model that returns its input as embeddings."""

    def forward(self, features: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
        return {"sentence_embedding": features["embedding"]}


def embeddings() -> torch.Tensor:
    """Float (3, 6, 8): anchors, positives and negatives of six sentences."""
    return torch.randn(3, 6, 8, generator=torch.Generator().manual_seed(0))


def pairs_loss(views: torch.Tensor) -> tuple[float, list[Any]]:
    """`PairsLoss` of views (3, B, D), the rows of all ranks gathered, and its gradient."""
    leaf = views.clone().requires_grad_()
    loss = for_sentence_transformers.PairsLoss(Given(), alpha=1, gather_across_devices=True)
    value = loss([{"embedding": view} for view in leaf])
    value.backward()
    assert leaf.grad is not None
    return value.item(), leaf.grad.tolist()


def main() -> None:
    """Record all kinds on one rank of two, and its gradient of a loss over both. Arguments: FOLDER MODEL RANK."""
    folder, model, rank = Path(sys.argv[1]), Path(sys.argv[2]), int(sys.argv[3])
    found: dict[str, Any] = {kind: record(kind, folder, model, ddp_backend="gloo") for kind in KINDS}
    found["loss"], found["gradient"] = pairs_loss(embeddings()[:, 3 * rank : 3 * (rank + 1)])
    (folder / f"rank{rank}.json").write_text(json.dumps(found), encoding="utf-8")


if __name__ == "__main__":
    main()
