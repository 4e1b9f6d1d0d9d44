"""The text of docs/tokenizers.md: the tests' tokenizer families, how each gets its ids, and the lines compared."""

from __future__ import annotations

import json
from pathlib import Path

from transformers import PreTrainedTokenizerBase

from support.tokenizer_families import BY_TEXT, FAMILIES, Family
from una_fast.tokens.pipelines import PIPELINES, Ends, NotByWordError
from una_fast.tokens.subwords import SubwordEncoder

COMPARED = Path(__file__).parents[2] / "bench" / "results" / "tokenizers.json"
PAGE = """# Tokenizers

The token ids of sentences and negatives equal those that the tokenizer makes of the text. They are made in one of two
ways:

- **word by word**: each distinct word is encoded once, and a sentence or a negative is put together from its words in
  about 1 us. una_fast does this only where the ids of a word do not depend on the words around it (reasons below).
- **text by text**: the tokenizer itself encodes every text when its batch is made. This works with every tokenizer,
  slow (Python) ones included, and takes 50 to 500 us a sentence; a warning names the reason and the measured cost.

You need not choose: una_fast reads the pipeline from your tokenizer, because a model's pipeline depends on the version
of transformers. Each time a tokenizer is bound to an index, the ids of some hundred sentences and texts of random words
are compared with the tokenizer's own.

`python tools/make_tokenizer_table.py` writes this page from the tokenizers of the tests, small ones with the pipelines
of the models named here. "Lines compared" counts sentences of Wikipedia on which every id was equal, for tokenizers
with these pipelines and some 32,000 sub-words; it is counted by
`python -m bench.parity.check_anchors FILE --note`.

{table}

## Why word by word is exact

For each kind of pipeline there is a reason why the ids of a word do not depend on its neighbours:

{reasons}

There are exceptions: words that contain an added token ("[MASK]"), and words that a normaliser changes depending on
their neighbours. They are found when the tokenizer is bound, and texts that contain one are encoded by the tokenizer.

The ids of a word after a space are read from the text "a", space, word: they are those after "a". So it makes no
difference whether a tokenizer adds or removes a space at the start of a text.

## What goes text by text

- Tokenizers of other kinds than those above: SuperBPE, whose sub-words contain spaces; a Split with another expression.
- Slow (Python) tokenizers, and fast tokenizers with a component that is written in Python.
- Tokenizers with an added token that contains a space, with `truncation_side="left"` (set it to "right"), or with
  special tokens or padding of token types other than 0 (XLNet).

## What is refused

- A tokenizer without a padding token (Llama 3): set `tokenizer.pad_token = tokenizer.eos_token`.
- A tokenizer with BPE dropout, which gives the same text other ids at every call: set the dropout to None.
- A tokenizer without an attention mask: add "attention_mask" to `tokenizer.model_input_names`.

The same kernels pad on the left where the tokenizer does. Then the first token of a text is not in the first column: in
a loop of your own, pool by the last token or by the mean over the attention mask.
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
