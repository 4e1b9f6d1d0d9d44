"""A start of training, from the command line until the trainer is made, traced on one rank of the CPU."""

import sys
from collections import Counter
from pathlib import Path

import pytest

from support.small_runs import command, options
from train import ddp
from train.evaluation import model  # noqa: F401  a start imports it late, and an import enters files too

ROOT = Path(__file__).parents[2]
MOST_FILES = {"train": 19, "una_fast": 26}
ONCE = """
    load_config load_tokenizer read_modules load_pretrained load_dev
    _file_sources load_index bind compare_with_tokenizer _rows_of weights_digest make_trackers
""".split()


class StartedError(Exception):
    """The trainer would be made now."""


def calls_of_a_start(values):
    """How often a start calls each function: Counter of (path of its file, its name)."""
    calls = Counter()

    def count(frame, event, argument):
        code = frame.f_code
        if event == "call" and code.co_name != "<module>":
            calls[code.co_filename, code.co_name] += 1

    def stop(*arguments):
        raise StartedError

    with pytest.MonkeyPatch.context() as patch, pytest.raises(StartedError):
        patch.setattr("train.launch.run.Trainer", stop)
        sys.setprofile(count)
        try:
            ddp.main(command(values)[3:])
        finally:
            sys.setprofile(None)
    return calls


@pytest.fixture(scope="module")
def values(tmp_path_factory, tiny_model):
    return options(tmp_path_factory.mktemp("start"), tiny_model)


@pytest.fixture(scope="module")
def first(values):
    """The start that builds the index."""
    return calls_of_a_start(values)


@pytest.mark.parametrize("name", [*ONCE, "parse_corpus"])
def test_everything_is_opened_read_and_bound_once(first, name):
    assert sum(n for (file, function), n in first.items() if function == name and file.startswith(str(ROOT))) == 1


def test_the_configuration_of_the_model_is_read_once(first):
    read = {(Path(file).name, name): n for (file, name), n in first.items()}
    assert read["configuration_auto.py", "from_pretrained"] == 1


def test_a_start_enters_few_files(first, values, tmp_path):
    """Building an index is a way of its own: here `first` has built it."""
    calls = calls_of_a_start({**values, "output": str(tmp_path / "again")})
    assert not [name for name in ONCE if sum(n for (_, function), n in calls.items() if function == name) > 1]
    for package, most in MOST_FILES.items():
        files = sorted({file for file, _ in calls if Path(file).is_relative_to(ROOT / package)})
        assert len(files) <= most, "\n".join(files)
