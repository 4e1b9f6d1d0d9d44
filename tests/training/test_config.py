"""The options of training: the dataclass, its parser, the option file, and a message for every impossible value."""

import dataclasses
import importlib
import itertools
import json
import os
import re
import warnings

import pytest

import train
from train.config import OPTIONS, PRESETS, compared_settings
from train.ddp import COMMON
from train.ddp import command as train_command
from train.losses import LOSSES
from train.record.checkpoint import check_resumed
from una_fast.augment.registry import AUGMENTATIONS
from una_fast.command import Command, arguments_of, foreign_names, option, options_of, run_command, settings_of
from una_fast.errors import InputError, InputWarning

NEEDED = ["--corpus", "text.txt", "--model", "encoder", "--output", "run"]
SWAP = ["--positives", "eda-swap"]
CONTRACT = {  # names and defaults that users rely on
    "alpha": 1, "beta": 0.3, "radius": None, "variant": "paper", "batch_size": 64, "max_length": 32,
    "temperature": 0.05, "dropout": 0.1, "loss": "triplet", "epochs": 1, "max_steps": None, "eval_every": 100,
    "seed": 42, "precision": "auto", "device": "auto", "nproc": 1, "resume": False,
}  # fmt: skip


parse = train_command.read


def in_file(tmp_path, content):
    """Write an option file with this content, and return the arguments that read it."""
    (tmp_path / "run.yaml").write_text(content)
    return [*NEEDED, "--config", str(tmp_path / "run.yaml")]


def test_defaults_are_those_of_the_contract():
    run = parse(NEEDED)
    assert {name: getattr(run, name) for name in CONTRACT} == CONTRACT


def test_the_papers_settings_are_one_option_away(tmp_path):
    run = parse([*in_file(tmp_path, "beta: 0.4"), "--paper", "--alpha", "2"])
    assert (run.loss, run.alpha, run.beta, run.surface) == ("pairs", 2, 0.4, "paper")
    text = " ".join(train_command.format_help().split())
    assert "--loss pairs --alpha 5 --beta 0.5 --surface paper" in text


def test_the_recipe_against_near_misses_is_one_option():
    run = parse([*NEEDED, "--near-misses", "--margin-most", "0.9"])
    assert (run.augment, run.loss, run.margin_least, run.margin_most) == ("near-misses", "margin", 0.3, 0.9)
    words = OPTIONS["near_misses"].help.partition(": ")[2].split()
    given = train_command.given([*NEEDED, *words])
    assert {name: given[name] for name in PRESETS["near_misses"]} == PRESETS["near_misses"]
    with pytest.raises(InputError, match="--paper and --near-misses together"):
        parse([*NEEDED, "--near-misses", "--paper"])


def test_several_numbers_are_separated_by_commas_or_spaces_or_are_a_list(tmp_path):
    for words in (["42,0,1"], ["42", "0", "1"]):
        assert parse([*NEEDED, "--seeds", *words]).seeds == (42, 0, 1)
    for written in ("seeds: [42, 0, 1]", "seeds: 42,0,1"):
        assert parse(in_file(tmp_path, written)).seeds == (42, 0, 1)
    assert [parse([*NEEDED, "--radius", given]).radius for given in ("1%", "300")] == ["1%", 300]


def test_help_shows_every_option_under_its_heading_with_default_and_limits():
    lines = train_command.format_help().splitlines()
    shown = " ".join(" ".join(lines).split())
    for declared in OPTIONS.values():
        assert re.search(f"{declared.flag}[ ,]", shown) and " ".join(declared.help.split()[:4]) in shown
    in_order = [declared.heading for declared in OPTIONS.values()]
    assert sum(a != b for a, b in itertools.pairwise(in_order)) == len({*in_order}) - 1
    headings = [line[:-1] for line in lines if re.fullmatch(r"[A-Z][a-z ]+:", line)]
    others = dict.fromkeys(declared.heading for name, declared in OPTIONS.items() if name not in COMMON)
    assert headings == ["The options that most calls need", *others]
    flags = [line.split()[0].rstrip(",") for line in lines if line.startswith("  --")]
    assert len(COMMON) == 12 and flags[:12] == [OPTIONS[name].flag for name in COMMON]
    assert "[default 64, at least 2]" in shown and "[default 0.1, at least 0 and below 1]" in shown
    assert all(f"{name}: {row.meaning}" in shown for name, row in (LOSSES | AUGMENTATIONS).items())


def test_an_option_is_made_from_its_field():
    @dataclasses.dataclass(frozen=True)
    class Small:
        """Small things."""

        first: int = option("the first", 1)
        share: int | float | None = option("a share, of something", None, "Named", above=0, most=1, role="running")
        third: str = option("the third", "x")

    assert [of.heading for of in options_of(Small).values()] == ["Small things", "Named", "Named"]
    _, share, _ = options_of(Small).values()
    given = [Command("small", "", Small).read(["--share", text]).share for text in ("1", "0.5")]
    assert given == [1, 0.5] and isinstance(given[0], int)
    assert (share.flag, share.help, share.role, share.default) == ("--share", "a share, of something", "running", None)
    for value, bound in ((0, "above 0"), (1.5, "at most 1"), (float("nan"), "above 0"), (2**64, "at most 1")):
        with pytest.raises(InputError, match=f"--share is {value}: it must be {bound}$"):
            share.read(value)


def test_a_command_passes_its_function_an_instance_of_the_dataclass():
    @dataclasses.dataclass(frozen=True)
    class Base:
        first: int = option("the first", 1, "One", least=0)
        second: str = option("the second", "b", "Two")
        third: str = option("the third", "c")

    @dataclasses.dataclass(frozen=True)
    class Derived(Base):
        second: str = option("another second", "d", "Own")

    received = []
    assert Command("derived", "", Derived, received.append)(["--first=3"]) == 0
    assert received == [Derived(first=3, second="d", third="c")]
    assert [(of.name, of.heading) for of in options_of(Derived).values()] == [
        ("second", "Own"), ("first", "One"), ("third", "Two"),
    ]  # fmt: skip
    fewer = {"first": dataclasses.replace(options_of(Derived)["first"], default=2)}
    assert Command("fewer", "", Derived, options=fewer).read([]) == Derived(first=2)
    assert settings_of(received[0], Base) == {"first": 3, "second": "d", "third": "c"}


def test_arguments_of_a_run_are_its_command_line():
    given = "--corpus a.txt b.txt --model=m --output=o --seeds 1 2 --no-lowercase --dev=d".split()
    words = arguments_of(OPTIONS.values(), vars(parse(given)))
    assert sorted(words) == sorted(given) and parse(words) == parse(given)


def test_resume_and_report_compare_the_settings_that_change_the_result(tmp_path):
    settings = parse(NEEDED).identity()
    assert {"--beta", "--seed", "--variant", "--column", "--batch-size"} <= settings.keys()
    free = {"corpus", "model", "output", "index", "nproc", "device", "dev", "save_every", "resume", "demo", "compile"}
    assert not {OPTIONS[name].flag for name in free} & settings.keys()
    before = {name: value for name, value in settings.items() if name != "--variant"}  # a new option's default
    before = json.loads(json.dumps(before))  # as in run.json, where tuples are lists
    check_resumed(tmp_path, before, settings)
    changed = parse([*NEEDED, "--variant", "released", "--radius", "5"]).identity()
    with pytest.raises(InputError, match="--resume: --(radius|variant) was (None|paper)"):
        check_resumed(tmp_path, before, changed)
    values = vars(parse(NEEDED))
    left_out = values.keys() - compared_settings({**values, "an_option_of_long_ago": 1}).keys()
    assert {"seed", "seeds", "output", "nproc", "device"} <= left_out and not {"corpus", "model", "beta"} & left_out


@pytest.mark.parametrize(("elsewhere", "here"), [
    ("--lr", "--learning-rate"), ("--per_device_train_batch_size", "--batch-size"),
    ("--max_seq_length=32", "--max-length"),
    ("--warmup_ratio", "--warmup-steps"), ("--gradient-accumulation-steps", "another loss"),
    ("--logging_steps", "metrics.jsonl"), ("--batch-sise", "--batch-size"), ("--zzz", "--help"),
])  # fmt: skip
def test_option_names_of_other_trainers_are_answered_with_ours(tmp_path, elsewhere, here):
    for words in ([*NEEDED, elsewhere], in_file(tmp_path, f"{elsewhere.lstrip('-').split('=')[0]}: 1")):
        with pytest.raises(InputError, match=f"unknown option --.*: .*{here}"):
            parse(words)


def test_suggested_options_exist():
    known = train_command._option_string_actions
    for advice in foreign_names().values():
        assert advice.split()[0].rstrip(",") in known or not advice.startswith("--")
    assert not {f"--{name}" for name in foreign_names()} & {*known}


def test_a_tilde_is_expanded_in_paths_only(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", "/home/me")
    words = [*in_file(tmp_path, "model: ~/model")[-2:], "--output=~/run", "--corpus", "~/a.txt", "b~.txt"]
    assert train_command.given([*words, "--column", "~/x"]) == {
        "model": "/home/me/model", "output": "/home/me/run", "corpus": ("/home/me/a.txt", "b~.txt"), "column": "~/x",
    }  # fmt: skip


def test_options_come_from_a_file_and_the_command_line_wins(tmp_path):
    content = "corpus: [a.txt, b.txt]\nbatch-size: 32\nlearning_rate: 1e-4\nkeep_punctuation: true\nmax_steps: null\n"
    words = ["--model=m", "--output=o", *in_file(tmp_path, content)[-2:], "--batch-size", "16"]
    run = parse(words)
    assert (run.corpus, run.batch_size, run.learning_rate, run.keep_punctuation) == (("a.txt", "b.txt"), 16, 1e-4, True)
    assert run.max_steps is None and not parse([*words, "--no-keep-punctuation"]).keep_punctuation
    for word in ("on", "off", "graphs"):  # the first two are booleans in YAML
        assert parse(in_file(tmp_path, f"compile: {word}")).compile == word


@pytest.mark.parametrize(("content", "named"), [
    ("resume: true", "--resume"), ("alpha: 2.5", "--alpha is 2.5"), ("keep_punctuation: 1", "--keep-punctuation is 1"),
    ("model: true", "--model is True"), ("loss: {pairs: 1}", "--loss is {'pairs': 1}"), ("- beta", "list"),
    ("a: [", "flow"),
    ("synonyms: 2001-06-31", "day"),
])  # fmt: skip
def test_unusable_option_files_are_refused(tmp_path, content, named):
    with pytest.raises(InputError, match=f"^--config {tmp_path}/run.yaml: .*{named}"):
        parse(in_file(tmp_path, content))


@pytest.mark.parametrize(("arguments", "named"), [
    (["text.txt"], "text.txt"), (["--config", "none.yaml"], "--config none.yaml"),
    (["--loss", "triple"], "--loss is 'triple'"),
    (["--alpha", "five"], "--alpha is 'five'"), (["--beta", "1.5"], "--beta is 1.5"),
    (["--seed", "9" * 400], "--seed is 9"),
    (["--dropout", "1"], "--dropout is 1"), (["--device", "mps"], "--device is 'mps'.*--device cpu"),
    (["--nproc", "4", "--batch-size", "3"], "--batch-size 3 .* --nproc 4"), (["--seeds", "42,0,42"], "--seeds"),
    (["--seeds", "42,x"], "--seeds is 'x'"), (["--seeds", "42,0", "--seed", "1"], "--seed and --seeds"),
    (["--radius", "0"], "--radius is 0"), (["--radius", "0%"], "radius='0%'"),
    ([*SWAP, "--paraphrases", "p.txt"], "--paraphrases.* --positives eda-swap"),
    ([*SWAP, "--synonyms", "s.tsv"], "--synonyms.* --positives eda-syn"),
    (["--positives", "backwards"], "--positives is 'backwards'"), *[([NEEDED[at], ""], NEEDED[at]) for at in (2, 4)],
])  # fmt: skip
def test_impossible_values_are_refused(arguments, named):
    with pytest.raises(InputError, match=f"^{named}|unrecognized arguments: {named}"):
        parse([*NEEDED, *arguments])


def test_training_limits_the_spinning_of_threads_unless_the_user_chose_a_policy(monkeypatch):
    for before in ({}, {"GOMP_SPINCOUNT": "5"}, {"OMP_WAIT_POLICY": "active"}):
        monkeypatch.setattr(os, "environ", dict(before))
        importlib.reload(train)
        assert os.environ == (before or {"GOMP_SPINCOUNT": "10000"})


def test_a_command_warns_in_one_line(monkeypatch):
    monkeypatch.setattr(warnings, "formatwarning", warnings.formatwarning)
    assert run_command(lambda: None) == 0
    assert warnings.formatwarning("rows are not lines", InputWarning, "a.py", 1) == "warning: rows are not lines\n"
    assert "a.py:1: UserWarning" in warnings.formatwarning("of a library", UserWarning, "a.py", 1)
