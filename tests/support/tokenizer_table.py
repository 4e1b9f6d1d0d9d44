"""docs/tokenizers.md, from the families of the tests, what una_fast says of each, and the lines compared."""

from __future__ import annotations

import json
from pathlib import Path

from transformers import PreTrainedTokenizerBase

from support.tokenizer_families import BY_TEXT, FAMILIES, Family
from una_fast.tokens.pipelines import PIPELINES, Ends
from una_fast.tokens.regularity import NotByWordError
from una_fast.tokens.subwords import SubwordEncoder

COMPARED = Path(__file__).parents[2] / "bench" / "results" / "tokenizers.json"
PAGE = """# Tokenizers

Token ids of sentences and negatives equal those that the tokenizer makes of the text. There are two ways to them:

- **word by word**: each distinct word is encoded once, and a sentence or a negative is put together from its words in
  about 1 us. This takes a reason why a word's ids do not depend on the words around it (below).
- **text by text**: the tokenizer itself encodes every text, when its batch is made. It is right for every tokenizer,
  slow (Python) ones included, and takes 50 to 500 us a sentence; a warning names the reason and the measured cost.

This page is written by `python tools/make_tokenizer_table.py` from the tokenizers of the tests, which are trained to
the pipelines of the models named here. The pipeline of a model depends on the version of transformers, and una_fast
reads it from the tokenizer that it is given: at every bind, some hundred sentences and texts of random words are
compared with the tokenizer. "Lines compared" counts sentences of Wikipedia on which every id was equal, with such
tokenizers trained to some 32,000 sub-words: `python -m bench.parity.check_anchors FILE --json
bench/results/tokenizers.json` counts them again.

{table}

## Why word by word is exact

A word that holds an added token ("[MASK]"), or that a normaliser changes by what stands beside it, is found when the
tokenizer is bound, and the texts that hold it are encoded whole.

{reasons}

The ids of a word "after a space" are those that follow "a" in "a " and the word, so that a space which a tokenizer puts
before a text, or takes away there, makes no difference.

## What goes text by text

- Tokenizers that are not of a kind above: SuperBPE, whose sub-words hold spaces; any other expression in a Split.
- Slow (Python) tokenizers, and fast ones with a part that is written in Python.
- Added tokens that hold a space; `truncation_side="left"` (set it to "right"); special tokens or padding with token
  types other than 0 (XLNet).

## What is refused

- No padding token (Llama 3 has none): `tokenizer.pad_token = tokenizer.eos_token`.
- BPE dropout, which gives the same text other ids at every call: set it to None.
- No attention mask: add "attention_mask" to `tokenizer.model_input_names`.

Padding on the left is written by the same kernels. With it, the embedding of a text is its last token or a mean over
the attention mask, not the first column.
"""


def page() -> str:
    compared = json.loads(COMPARED.read_text(encoding="utf-8"))
    rows = [_row(family, compared.get(name, 0)) for name, family in {**FAMILIES, **BY_TEXT}.items()]
    head = ["tokenizers of", "pipeline", "ids", "padding here", "lines compared"]
    table = "\n".join("| " + " | ".join(cells) + " |" for cells in [head, ["---"] * len(head), *rows])
    return PAGE.format(table=table, reasons="\n".join(map(_reason, PIPELINES)))


def _row(family: Family, compared: int) -> list[str]:
    tokenizer = family()
    try:
        kind, way = SubwordEncoder(tokenizer).pipeline.kind.name, "word by word"
        lines = f"{compared:,}"
    except NotByWordError as error:
        kind, way, lines = error.reason, "text by text", "all, by the tokenizer"
    normalizer = _names(tokenizer)
    return [family.models, f"{normalizer}{kind}".replace("|", "\\|"), way, tokenizer.padding_side, lines]


def _names(tokenizer: PreTrainedTokenizerBase) -> str:
    """The steps of the normaliser, as "NFC, Strip: "."""
    normalizer = json.loads(tokenizer.backend_tokenizer.to_str())["normalizer"]
    if normalizer is None:
        return ""
    steps = normalizer["normalizers"] if normalizer["type"] == "Sequence" else [normalizer]
    return ", ".join(step["type"] for step in steps) + ": "


def _reason(kind) -> str:
    ends = "" if kind.ends == Ends.ANY else f"; for words that begin and end with {kind.ends.value}"
    return f"- **{kind.name}**: {kind.reason}{ends}."
