"""The options for words reach the index of a run, and an index with other words is refused."""

from pathlib import Path

import pytest

import una_fast
from train.config.run import Run
from train.launch.corpus import open_index
from una_fast.errors import InputError

CORPUS = ["The cat can't sit", "on the Mat", "a dog"]


def saved(folder: Path, **words: object) -> str:
    una_fast.build_index(CORPUS, **words).save(folder)
    return str(folder)


@pytest.mark.parametrize("words", [{}, {"word_tokenizer": "whitespace"}, {"lowercase": False}])
def test_an_index_of_the_same_words_is_opened(words: dict, tmp_path: Path) -> None:
    run = Run(index=saved(tmp_path / "index", **words), **words)
    assert open_index(run).n_terms == una_fast.build_index(CORPUS, **words).n_terms


def test_an_import_path_opens_the_index_made_by_it(tmp_path: Path) -> None:
    words = {"word_tokenizer": "shlex:split"}
    corpus = [line.replace("'", "") for line in CORPUS]
    una_fast.build_index(corpus, **words).save(tmp_path / "index")
    assert open_index(Run(index=str(tmp_path / "index"), **words)).n_documents == 3
    with pytest.raises(InputError, match="made by another word tokenizer"):
        open_index(Run(index=str(tmp_path / "index"), word_tokenizer="builtins:list"))
    with pytest.raises(InputError, match="its words were made by 'shlex:split' with --lowercase, and the run asks for"):
        open_index(Run(index=str(tmp_path / "index")))


@pytest.mark.parametrize("asked", [{"word_tokenizer": "whitespace"}, {"lowercase": False}])
def test_an_index_of_other_words_is_refused(asked: dict, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"made by 'treebank' with --lowercase, .* name a new folder with --index"):
        open_index(Run(index=saved(tmp_path / "index"), **asked))
