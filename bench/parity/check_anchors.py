"""Compare una_fast's token ids of every sentence of a corpus with those of the tokenizer itself.

    python -m bench.parity.check_anchors data/corpora/wiki_large.txt.gz [--tokenizer bert_uncased roberta ...]
        [--lines 1000000] [--lines-a-call 100000] [--note]

The tokenizer is called on lists of sentences, at most --lines-a-call at a time, because its results for a million
sentences take 8 GB. A tokenizer is a folder, a name on the hub, or a family
of tests/support/tokenizer_families.py. A family is trained on the first lines of the corpus to about 32,000 sub-words;
only "bert_uncased" is the packaged tokenizer. --note saves the number of lines compared in results/tokenizers.json, for
a column of docs/tokenizers.md.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from transformers import AutoTokenizer

import una_fast
from bench import script
from una_fast.parallel import n_cores
from una_fast.storage.files import read_json, write_json
from una_fast.tokens.subwords import SubwordEncoder, encode_sentences

script.import_tests()
from support import tokenizer_families  # noqa: E402

RESULT = script.RESULTS / "tokenizers.json"
TRAINING_LINES, SUBWORDS = 20_000, 32_000


def load_tokenizer(name: str, index: Any) -> Any:
    if name not in tokenizer_families.FAMILIES:
        return AutoTokenizer.from_pretrained(name)
    tokenizer_families.training_lines = lambda: list(sentences(index, 0, min(TRAINING_LINES, index.n_documents)))
    tokenizer_families.VOCABULARY = SUBWORDS
    return tokenizer_families.FAMILIES[name]()


def sentences(index: Any, start: int, stop: int) -> Iterator[str]:
    return map(index.sentence, range(start, stop))


def compare(index: Any, name: str, lines_a_call: int) -> int:
    """Return the number of sentences whose ids by una_fast and by a tokenizer differ, and print it."""
    tokenizer = load_tokenizer(name, index)
    ids, _ = encode_sentences(index, SubwordEncoder(tokenizer), n_cores(None))
    different = 0
    for start in range(0, index.n_documents, lines_a_call):
        texts = list(sentences(index, start, min(start + lines_a_call, index.n_documents)))
        rows = enumerate(tokenizer(texts, add_special_tokens=False, verbose=False)["input_ids"], start)
        different += sum(found != ids[row].tolist() for row, found in rows)
    print(f"{name}: {different} of {index.n_documents:,} sentences differ", flush=True)
    return different


def record(name: str, lines: int) -> None:
    """Save that `lines` lines were compared and none differed, unless a larger number is already saved."""
    found = read_json(RESULT)
    found[name] = max(lines, found.get(name, 0))
    write_json(RESULT, dict(sorted(found.items())))


def compare_all(corpus: Path, tokenizer: list[str], lines: int, lines_a_call: int, note: bool) -> int:
    """Compare each tokenizer. Returns 1 if the ids of any sentence differ."""
    index = una_fast.build_index(script.read_lines(corpus, lines) if lines else corpus)
    print(f"{index}, {len(index.chunks):,} distinct chunks, {n_cores(None)} cores", flush=True)
    n_different = 0
    for name in tokenizer:
        different = compare(index, name, lines_a_call)
        if note and not different:
            record(name, index.n_documents)
        n_different += different
    return int(n_different > 0)


if __name__ == "__main__":
    families = [*tokenizer_families.FAMILIES]
    sys.exit(
        script.run(
            __doc__,
            compare_all,
            corpus=script.CORPUS,
            tokenizer={"nargs": "+", "default": families, "help": "tokenizers to compare [all families]"},
            lines={"type": int, "default": 0, "help": "use only this many lines, the first ones [all]"},
            lines_a_call={"type": int, "default": 100_000, "help": "sentences per tokenizer call [100,000]"},
            note={"action": "store_true", "help": "save the number of lines compared"},
        )
    )
