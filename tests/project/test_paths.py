"""Trace which source files a call enters: the start of a training on one CPU rank, and a call of `token_ids`."""

import sys
from collections import Counter
from itertools import pairwise

import numpy as np
import pytest

import una_fast
from support.small_runs import ROOT, command, options
from support.tokenizer_families import bert_uncased, training_lines
from train import ddp
from train.evaluation import model  # noqa: F401  imported before tracing, because an import enters files too

MOST_FILES = {"train": 22, "una_fast": 20}
ONCE = """
    load_config load_tokenizer read_modules load_pretrained read_dev load_dev
    _file_sources load_index bind compare_with_tokenizer rows blank weights_digest make_trackers
""".split()


def calls_of(function):
    """Call a function and return the code objects of all Python functions that run, in order, without imports."""
    calls = []

    def note(frame, event, argument):
        if event == "call" and frame.f_code.co_name != "<module>":
            calls.append(frame.f_code)

    sys.setprofile(note)
    try:
        function()
    finally:
        sys.setprofile(None)
    return calls


def files_of(calls, package):
    """Return the files of a package that the calls enter, in order."""
    return [code.co_filename for code in calls if code.co_filename.startswith(f"{ROOT / package}/")]


def own_names(calls):
    """Count the calls of each function of the project by its name."""
    own = tuple(f"{ROOT / package}/" for package in MOST_FILES)
    return Counter(code.co_name for code in calls if code.co_filename.startswith(own))


def calls_of_a_start(values):
    def start():
        with pytest.raises(ZeroDivisionError):
            ddp.main(command(values)[3:])

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("train.launch.run.Trainer", lambda *_: 1 / 0)  # ends the start where the trainer would be made
        return calls_of(start)


@pytest.fixture(scope="module")
def values(tmp_path_factory, tiny_model):
    return options(tmp_path_factory.mktemp("start"), tiny_model)


@pytest.fixture(scope="module")
def first(values):
    """Return the calls of a start that also builds the index."""
    return calls_of_a_start(values)


def test_a_start_reads_each_input_and_binds_the_tokenizer_only_once(first):
    names, found = [*ONCE, "parse_corpus"], own_names(first)
    assert {name: found[name] for name in names} == dict.fromkeys(names, 1)
    read = [code for code in first if code.co_filename.endswith("configuration_auto.py")]
    assert [code.co_name for code in read].count("from_pretrained") == 1


def test_a_start_enters_few_files(first, values, tmp_path):
    """Building an index enters other files, so this start uses the index that `first` has built."""
    calls = calls_of_a_start({**values, "output": str(tmp_path / "again")})
    found = own_names(calls)
    assert not [name for name in ONCE if found[name] > 1]
    for package, most in MOST_FILES.items():
        files = {*files_of(calls, package)}
        assert len(files) <= most, "\n".join(sorted(files))


@pytest.mark.parametrize("surface", ["kept", "paper"])
def test_token_ids_enters_few_files_and_switches_rarely_between_them(surface):
    index = una_fast.build_index(training_lines()[:100])
    una = una_fast.Augmenter(index, tokenizer=bert_uncased(), surface=surface, n_jobs=1)
    una.token_ids(range(100))  # encodes the strings that the tokenizer has not seen yet
    files = files_of(calls_of(lambda: una.token_ids(np.arange(100))), "una_fast")
    assert files[0] == f"{ROOT}/una_fast/augment/base.py"
    assert len({*files}) <= 6 and sum(a != b for a, b in pairwise(["", *files])) <= 8, files
