"""Builds the index of a corpus: counts its words, then scores and ranks its terms (step 1 of the paper).

`parse_corpus` (corpus/words.py) splits the sentences into words. `score_terms` and `rank` (scores.py) compute the rank
of each distinct word, which becomes its term id. A build in a folder does the same in stages (stages.py).
"""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

from una_fast._kernels.csr import relabel
from una_fast.corpus.documents import MAX_SENTENCE_BYTES, Reading
from una_fast.corpus.word_tokenizers import SplitWords, WordTokenizer, resolve_tokenizer, unsplit_script
from una_fast.corpus.words import parse_corpus
from una_fast.errors import InputError, check_flag, suggests_keywords, warn_user
from una_fast.index.index import Index, index_meta, load_index
from una_fast.index.scores import inverse, rank, score_terms
from una_fast.parallel import n_cores

logger = logging.getLogger(__name__)


@suggests_keywords
def build_index(
    corpus: Any,
    word_tokenizer: str | SplitWords = "treebank",
    lowercase: bool = True,
    column: str = "text",
    n_jobs: int | None = None,
    progress: bool = False,
    *,
    quoting: bool | None = None,
    max_sentence_bytes: int | None = MAX_SENTENCE_BYTES,
    folder: str | Path | None = None,
    memory: str | int | None = None,
    executor: Any = None,
) -> Index:
    """Index a corpus: split it into words, count them, score and rank the terms (step 1 of the paper).

    The same corpus and settings give the same index, byte for byte, with any number of cores, any memory, and on one
    machine or many.

    Args:
        corpus: a path, glob or folder of files with one sentence per line or row, a pandas or polars DataFrame, an
            Arrow table, a Hugging Face dataset, or any iterable of str or of dicts. A list of these is one corpus, in
            order. Files are .parquet, .txt, .csv, .tsv, .jsonl or .json. All except .parquet may be compressed (.gz,
            .bz2, .xz or .zst). In a list, a str without one of these extensions is a sentence, so give a folder as a
            `Path`.
        word_tokenizer: "treebank" (NLTK's word_tokenize(text, preserve_line=True), word for word), "whitespace",
            "rjieba" (Chinese), "fugashi" (Japanese), "pythainlp" (Thai), a function from a text to the list of its
            words, or the function's import path, "module:function". The Chinese, Japanese and Thai ones need the extra
            `segmenters`. See docs/languages.md.
        lowercase: lower-case the text before it is split.
        column: the column of a table or dataset, or the key of a dict, that contains the text.
        n_jobs: the number of threads; if None, one for each core that this process may use.
        progress: show a progress bar.
        quoting: whether a cell in quotation marks may contain line ends and delimiters. None means True for .csv, and
            False for .tsv, where a quotation mark is an ordinary character.
        max_sentence_bytes: the longest accepted sentence, in bytes of UTF-8. Longer ones occur only in files that are
            damaged, hostile or without line ends. A whole row of a table may be 8 times longer. 0 or None accepts any
            length, but a .csv is then read in parts of 2 GiB.
        folder: build the index in this folder, and open it. Temporary files are stored next to the folder. Memory use
            does not grow with the corpus, and a stopped build continues when it is started again. By default, the index
            is built in memory, and `Index.save` saves it.
        memory: the memory limit of a build in a folder, such as "2GB", or a number of bytes. It applies to all
            processes of this machine together, or to each worker process of a cluster. None is half of the machine's
            memory.
        executor: runs the tasks of a build in a folder: an executor of concurrent.futures, or a
            `dask.distributed.Client` (``pip install '.[cluster]'``). None is threads of this process.

    Returns:
        The index: in memory, or memory-mapped from `folder`.

    Raises:
        InputError: an argument is wrong, or a part of the corpus cannot be read or contains no sentence.

    Warns:
        InputWarning: cells of a .csv contain line ends, the text has no spaces between words, or files in a folder or
            glob were left out.
    """
    n_cores(n_jobs)
    check_flag("lowercase", lowercase)
    tokenizer = WordTokenizer(resolve_tokenizer(word_tokenizer), lowercase)
    reading = Reading(column, quoting, max_sentence_bytes)
    if folder is None and (memory is not None or executor is not None):
        raise InputError("memory, executor: only for a build in a folder: give `folder` too")
    if folder is not None:
        from una_fast.index.stages import build_in_stages  # imported here, because a build in memory does not need it

        build_in_stages(corpus, tokenizer, reading, folder, memory, executor, n_jobs, progress)
        index = load_index(folder, tokenizer.tokenizer)
    else:
        try:
            index = _build_in_memory(corpus, tokenizer, reading, n_jobs, progress)
        except MemoryError as error:
            raise InputError(
                f"building the index needs more memory than there is ({error}): use a smaller corpus or a larger "
                "machine, or give a folder to build it in"
            ) from error
    if warning := unsplit_script(index.chunks, tokenizer):
        warn_user(warning)
    return index


def _build_in_memory(
    corpus: Any, tokenizer: WordTokenizer, reading: Reading, n_jobs: int | None, progress: bool
) -> Index:
    parsed, sources = parse_corpus(corpus, tokenizer, reading, n_jobs, progress)
    scores = score_terms(parsed.words, len(parsed.vocabulary), n_cores(n_jobs))
    order = rank(scores.max_tfidf)
    logger.info("terms scored and ranked")
    relabel(parsed.words.values, inverse(order), parsed.words.values)  # in place
    terms = parsed.vocabulary.take(order)
    arrays = {name: values[order] for name, values in scores._asdict().items()}
    tables = {"chunks": parsed.chunks, "terms": terms, "sentences": parsed.sentences, "words": parsed.words}
    for name, table in tables.items():
        arrays |= {f"{name}_{part}": array for part, array in vars(table).items()}
    return Index(arrays, index_meta(sources, tokenizer), tokenizer.tokenizer)
