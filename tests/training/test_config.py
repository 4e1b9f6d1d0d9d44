"""The options: one dataclass, a parser made from it, a file, and a sentence for everything that cannot be."""

import dataclasses
import re

import pytest

from train.config.run import AT_LEAST, BETWEEN, Run, make_parser, options, parse
from una_fast.errors import InputError

NEEDED = ["--corpus", "text.txt", "--model", "encoder", "--output", "run"]
DESIGN = {  # names and defaults of design.md, section 2
    "alpha": 5, "beta": 0.5, "radius": 4000, "variant": "paper", "batch_size": 64, "max_length": 32,
    "temperature": 0.05, "dropout": 0.1, "loss": "pairs", "epochs": 1, "max_steps": None, "eval_every": 100,
    "seed": 42, "precision": "fp32", "device": "auto", "nproc": 1, "resume": False,
}  # fmt: skip


def test_defaults_are_those_of_the_design():
    run = parse(NEEDED)
    assert {name: getattr(run, name) for name in DESIGN} == DESIGN


def test_seeds_are_numbers_with_commas_between_or_a_list_in_a_file(tmp_path):
    file = tmp_path / "run.yaml"
    assert parse([*NEEDED, "--seeds", "42,0,1"]).seeds == (42, 0, 1)
    for written in ("seeds: [42, 0, 1]", "seeds: 42,0,1"):
        file.write_text(written)
        assert parse([*NEEDED, "--config", str(file)]).seeds == (42, 0, 1)


def test_every_field_is_an_option_with_help():
    help_text = " ".join(make_parser().format_help().split())
    for field in dataclasses.fields(Run):
        option = options()[field.name]
        assert option.flag in help_text and option.help.split()[0] in help_text


def test_limits_name_existing_options():
    assert {*AT_LEAST, *BETWEEN} <= options().keys()


def test_a_file_gives_options_and_the_command_line_wins(tmp_path):
    file = tmp_path / "run.yaml"
    file.write_text(
        "corpus: [a.txt, b.txt]\nmodel: encoder\noutput: run\nbatch-size: 32\nlearning_rate: 1e-4\nprofile: true\n"
    )
    run = parse(["--config", str(file), "--batch-size", "16"])
    assert (run.corpus, run.batch_size, run.learning_rate, run.profile) == (("a.txt", "b.txt"), 16, 1e-4, True)
    assert not parse(["--config", str(file), "--no-profile"]).profile


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("batch_sise: 8", "unknown key batch_sise: did you mean batch_size?"),
        ("resume: true", "unknown key resume"),
        ("beta: much", "beta is 'much', and must be a number"),
        ("alpha: 2.5", "alpha is 2.5, and must be a whole number"),
        ("loss: triple", "loss is 'triple': choose from pairs, triplet, simcse, decoupled"),
        ("profile: 1", "profile is 1, and must be true or false"),
        ("seeds: [1, x]", "seeds: '1,x' is no list of whole numbers"),
        ("- beta", "holds a list: write one 'option: value' a line"),
        ("a: [", "not YAML"),
    ],
)
def test_a_file_that_cannot_be_used(tmp_path, content, message):
    file = tmp_path / "run.yaml"
    file.write_text(content)
    with pytest.raises(InputError, match=re.escape(message)) as error:
        parse([*NEEDED, "--config", str(file)])
    assert str(file) in str(error.value)


def test_a_file_that_is_not_there(tmp_path):
    with pytest.raises(InputError, match=r"--config .*none\.yaml: No such file"):
        parse([*NEEDED, "--config", str(tmp_path / "none.yaml")])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--batch-sise", "8"], "unknown option --batch-sise: did you mean --batch-size?"),
        (["--zzz"], "unknown option --zzz: see --help"),
        (["text.txt"], "text.txt"),
        (["--loss", "triple"], "argument --loss: invalid choice: 'triple'"),
        (["--alpha", "five"], "argument --alpha: invalid int value: 'five'"),
        (["--beta", "1.5"], "--beta is 1.5: it must be a number from 0 up to 1"),
        (["--beta", "nan"], "--beta is nan: it must be a number from 0 up to 1"),
        (["--radius", "0"], "--radius is 0: it must be at least 1"),
        (["--max-length", "2"], "--max-length is 2: it must be at least 3"),
        (["--temperature", "0"], "--temperature is 0.0: it must be a number above 0"),
        (["--temperature", "inf"], "--temperature is inf: it must be a number above 0"),
        (["--dropout", "1"], "--dropout is 1.0: it must be a number from 0 and below 1"),
        (["--learning-rate", "-1"], "--learning-rate is -1.0: it must be a number above 0"),
        (["--nproc", "4", "--batch-size", "3"], "--batch-size 3 is smaller than --nproc 4"),
        (["--seeds", "42,0,42"], "--seeds: 42 is named twice"),
        (["--seeds", "42,-1"], "--seeds: -1 is below 0"),
        (["--seeds", "42,x"], "--seeds: '42,x' is no list of whole numbers: write them as 42,0,1"),
        (["--seeds", ""], "'' is no list of whole numbers"),
        (["--seeds", "42,0", "--seed", "1"], "--seed and --seeds together"),
        (["--loss", "simcse", "--augment", "una"], "--loss simcse has no place for negatives"),
        (["--compile", "fast"], "argument --compile: invalid choice: 'fast'"),
    ],
)
def test_values_that_cannot_be(arguments, message):
    with pytest.raises(InputError, match=re.escape(message)):
        parse([*NEEDED, *arguments])


@pytest.mark.parametrize("name", ["corpus", "model", "output"])
def test_what_is_needed(name):
    at = NEEDED.index(f"--{name}")
    with pytest.raises(InputError, match=f"--{name} is missing"):
        parse(NEEDED[:at] + NEEDED[at + 2 :])
