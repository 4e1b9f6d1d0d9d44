"""The options: one dataclass, a parser made from it, a file, and a message for every impossible value."""

import dataclasses
import itertools
import re

import pytest

from train.config.command import Parser
from train.config.names import ANSWERS, OLD
from train.config.options import Group, option, options_of, words_of
from train.config.run import Run, compared, defaults, make_parser, make_run, options
from train.config.run import parse as option_values
from train.record.checkpoint import check_resumed, flags_of
from una_fast.errors import InputError, InputWarning

NEEDED = ["--corpus", "text.txt", "--model", "encoder", "--output", "run"]
DESIGN = {  # names and defaults of design.md, section 2
    "alpha": 1, "beta": 0.3, "radius": None, "variant": "paper", "batch_size": 64, "max_length": 32,
    "temperature": 0.05, "dropout": 0.1, "loss": "triplet", "epochs": 1, "max_steps": None, "eval_every": 100,
    "seed": 42, "precision": "auto", "device": "auto", "nproc": 1, "resume": False,
}  # fmt: skip


def parse(arguments):
    return make_run(option_values(arguments))


def test_a_radius_is_ranks_or_a_share_of_the_words():
    assert [parse([*NEEDED, "--radius", given]).radius for given in ("1%", "300")] == ["1%", 300]
    assert parse(NEEDED).radius is None


def test_defaults_are_those_of_the_design():
    run = parse(NEEDED)
    assert {name: getattr(run, name) for name in DESIGN} == DESIGN


def test_the_papers_settings_are_one_option_away(tmp_path):
    run = parse([*NEEDED, "--paper", "--alpha", "2"])
    assert (run.loss, run.alpha, run.beta, run.surface) == ("pairs", 2, 0.5, "paper")
    file = tmp_path / "run.yaml"
    file.write_text("beta: 0.4")
    run = parse([*NEEDED, "--paper", "--config", str(file)])
    assert (run.alpha, run.beta) == (5, 0.4)
    text = " ".join(make_parser().format_help().split())
    assert "--loss pairs --alpha 5 --beta 0.5 --surface paper" in text


def test_seeds_are_numbers_with_commas_between_or_a_list_in_a_file(tmp_path):
    file = tmp_path / "run.yaml"
    assert parse([*NEEDED, "--seeds", "42,0,1"]).seeds == (42, 0, 1)
    for written in ("seeds: [42, 0, 1]", "seeds: 42,0,1"):
        file.write_text(written)
        assert parse([*NEEDED, "--config", str(file)]).seeds == (42, 0, 1)


def test_every_field_is_an_option_with_help():
    help_text = " ".join(make_parser().format_help().split())
    for field in dataclasses.fields(Run):
        declared = options()[field.name]
        assert f"{declared.flag} " in help_text or f"{declared.flag}," in help_text
        assert " ".join(declared.help.split()[:4]) in help_text


def test_help_shows_groups_defaults_and_limits():
    lines = make_parser().format_help().splitlines()
    groups = dict.fromkeys(option.group.title for option in options().values())
    headings = [line[:-1] for line in lines if re.fullmatch(r"[A-Z][a-z ]+:", line)]
    assert headings == ["Many options at once", *groups] and len(groups) == 13
    help_text = " ".join(" ".join(lines).split())
    assert "[default 64, at least 2]" in help_text and "[default 0.1, at least 0 and below 1]" in help_text


def test_the_options_of_a_heading_stand_together():
    in_order = [option.group for option in options().values()]
    assert sum(a != b for a, b in itertools.pairwise(in_order)) == len({*in_order}) - 1


def test_options_without_a_heading_stand_under_the_docstring():
    own = Group("Own", "Below it.")

    @dataclasses.dataclass(frozen=True)
    class Small:
        """Small things.

        More about them.
        """

        first: int = option(1)
        """the first"""
        second: int = own.option(2)
        """the second"""

    groups = [declared.group for declared in options_of(Small).values()]
    assert groups == [
        Group("Small things", "More about them."),
        own,
    ]
    assert [*options_of(Small, own)] == ["second"]
    said = Parser("small", "About.", options_of(Small)).format_help()
    assert "Small things:\n  More about them.\n" in said and "Own:\n  Below it.\n" in said


def test_an_option_is_what_stands_beside_its_field():
    @dataclasses.dataclass(frozen=True)
    class Small:
        share: int | float | None = option(None, above=0, most=1, role="running")
        """a share,
        of something"""

    (share,) = options_of(Small).values()
    given = [Parser("small", "", options_of(Small)).given(["--share", text])["share"] for text in ("1", "0.5")]
    assert given == [1, 0.5] and isinstance(given[0], int)
    assert (share.flag, share.help, share.role, share.default) == ("--share", "a share, of something", "running", None)
    assert share.read(None) is None
    for value, bound in ((0, "above 0"), (1.5, "at most 1"), (float("nan"), "above 0"), (2**64, "at most 1")):
        with pytest.raises(InputError, match=f"--share is {value}: it must be {bound}$"):
            share.read(value)


def test_words_of_a_run_are_its_command_line():
    given = "--corpus a.txt b.txt --model=m --output=o --seeds=1,2 --no-lowercase --wise-ft 0.5 --dev=d".split()
    words = words_of(options().values(), vars(parse(given)))
    assert sorted(words) == sorted(given) and parse(words) == parse(given)


def test_a_run_goes_on_only_with_the_settings_that_make_its_result():
    run = parse(NEEDED)
    assert {"beta", "seed", "window", "column", "batch_size"} <= run.identity().keys()
    free = {"corpus", "model", "output", "index", "nproc", "device", "dev", "save_every", "resume", "demo", "compile"}
    assert not free & run.identity().keys()


def test_a_checkpoint_from_before_an_option_has_its_default(tmp_path):
    before = {name: value for name, value in parse(NEEDED).identity().items() if name != "window"}
    check_resumed(tmp_path, flags_of(before), flags_of(parse(NEEDED).identity()))
    changed = parse([*NEEDED, "--window", "score", "--radius", "0.5"]).identity()
    with pytest.raises(InputError, match="--resume: --(radius|window) was (None|rank)"):
        check_resumed(tmp_path, flags_of(before), flags_of(changed))


def test_runs_are_compared_by_what_they_compute():
    settings = {**vars(parse(NEEDED)), "an_option_of_long_ago": 1}
    left_out = settings.keys() - compared(settings).keys()
    assert {"seed", "seeds", "output", "index", "nproc", "device", "resume"} <= left_out
    assert not {"corpus", "model", "beta", "precision", "an_option_of_long_ago"} & left_out


@pytest.mark.parametrize(
    ("elsewhere", "here"),
    [
        ("--lr", "did you mean --learning-rate?"),
        ("--per_device_train_batch_size", "did you mean --batch-size, which counts the sentences of all ranks"),
        ("--num_train_epochs", "did you mean --epochs?"),
        ("--max_seq_length=32", "did you mean --max-length?"),
        ("--temp", "did you mean --temperature?"),
        ("--output_dir", "did you mean --output?"),
        ("--model_name_or_path", "did you mean --model?"),
        ("--train_file", "did you mean --corpus?"),
        ("--eval_steps", "did you mean --eval-every?"),
        ("--fp16", "did you mean --precision fp16?"),
        ("--warmup_ratio", "did you mean --warmup-steps 0.1, a share of all steps?"),
        ("--lr_scheduler_type", "did you mean --schedule?"),
        ("--gradient-accumulation-steps", "another loss, because a sentence's negatives are the other sentences"),
        ("--use_mps_device", "give --device cpu"),
        ("--logging_steps", "it needs nothing: metrics.jsonl holds every step"),
        ("--batch-sise", "did you mean --batch-size?"),
        ("--zzz", "see --help"),
    ],
)
def test_names_of_other_software_are_answered_with_ours(tmp_path, elsewhere, here):
    with pytest.raises(InputError, match=f"^unknown option --.*{re.escape(here)}"):
        parse([*NEEDED, elsewhere])
    file = tmp_path / "run.yaml"
    file.write_text(f"{elsewhere.lstrip('-').split('=')[0]}: 1")
    with pytest.raises(InputError, match="unknown key .*: "):
        parse([*NEEDED, "--config", str(file)])


def test_what_is_suggested_is_there():
    known = make_parser().flags
    for answer in ANSWERS.values():
        assert answer.split()[0].rstrip(",") in known or not answer.startswith("--")
    assert {new.split()[0] for new in OLD.values()} <= {*known}
    assert not {f"--{name}" for name in ANSWERS} & {*known} and not {*OLD} & {*known}


def test_a_device_without_training_is_answered_with_what_works():
    with pytest.raises(InputError, match="--device is 'mps': training runs on NVIDIA's cards and on the CPU: give --"):
        parse([*NEEDED, "--device", "mps"])


def test_accumulated_gradients_are_no_option_and_help_says_why():
    assert "Accumulating gradients is no option" in options()["grad_cache"].help


@pytest.mark.parametrize(
    ("words", "name", "value"),
    [
        (["--tie-weight", "2"], "similarity_distillation", 2.0),
        (["--tie-weight=2"], "similarity_distillation", 2.0),
        (["--blend", "0.5", "--dev", "d"], "wise_ft", (0.5,)),
        (["--guard-sigma", "1"], "gate_sigma", 1.0),
        (["--loss", "guarded"], "loss", "gated"),
        (["--surface", "lower"], "surface", "kept"),
        (["--compile", "auto"], "compile", "off"),
    ],
)
def test_an_old_name_warns_and_means_the_new_one(tmp_path, words, name, value):
    with pytest.warns(InputWarning, match=r"is an old name: write --"):
        assert getattr(parse([*NEEDED, *words]), name) == value
    if "=" not in words[0]:
        (tmp_path / "run.yaml").write_text(f"{words[0].lstrip('-')}: {words[1]}\ndev: d\n")
        with pytest.warns(InputWarning, match=r"is an old name: write --"):
            assert getattr(parse([*NEEDED, "--config", str(tmp_path / "run.yaml")]), name) == value


def test_a_shell_may_leave_the_folder_of_the_user_to_the_program(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", "/home/me")
    (tmp_path / "run.yaml").write_text("model: ~/model\n")
    words = [f"--config={tmp_path}/run.yaml", "--output=~/run", "--corpus", "~/a.txt", "b~.txt", "--column", "~/x"]
    assert option_values(words) == {
        "model": "/home/me/model", "output": "/home/me/run", "corpus": ("/home/me/a.txt", "b~.txt"), "column": "~/x",
    }  # fmt: skip


def test_defaults_are_by_name():
    assert defaults().keys() == options().keys() and defaults()["beta"] == 0.3


def test_a_file_gives_options_and_the_command_line_wins(tmp_path):
    file = tmp_path / "run.yaml"
    file.write_text(
        "corpus: [a.txt, b.txt]\nmodel: encoder\noutput: run\nbatch-size: 32\nlearning_rate: 1e-4\n"
        "keep_punctuation: true\n"
    )
    run = parse(["--config", str(file), "--batch-size", "16"])
    assert (run.corpus, run.batch_size, run.learning_rate, run.keep_punctuation) == (("a.txt", "b.txt"), 16, 1e-4, True)
    assert not parse(["--config", str(file), "--no-keep-punctuation"]).keep_punctuation


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("batch_sise: 8", "unknown key batch_sise: did you mean batch_size?"),
        ("resume: true", "unknown key resume"),
        ("beta: much", "--beta is 'much', and must be a number"),
        ("alpha: 2.5", "--alpha is 2.5, and must be a whole number"),
        ("loss: triple", "--loss is 'triple': choose from pairs, "),
        ("temperature: -1", "--temperature is -1.0: it must be above 0"),
        ("keep_punctuation: 1", "--keep-punctuation is 1, and must be true or false"),
        ("model: true", "--model is True, and must be text"),
        ("alpha: true", "--alpha is True, and must be a whole number"),
        ("beta: [1, 2]", "--beta is [1, 2], and must be a number"),
        ("loss: {pairs: 1}", "--loss is {'pairs': 1}, and must be text"),
        ("seeds: [1, x]", "--seeds is 'x', and must be a whole number: write them as 42,0,1"),
        ("- beta", "holds a list: write one 'option: value' a line"),
        ("a: [", "not YAML"),
        ("synonyms: 2001-06-31", "not YAML: day is out of range"),
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
        (["text.txt"], "text.txt"),
        (["--loss", "triple"], "--loss is 'triple': choose from pairs, "),
        (["--alpha", "five"], "--alpha is 'five', and must be a whole number"),
        (["--beta", "1.5"], "--beta is 1.5: it must be at most 1"),
        (["--beta", "nan"], "--beta is nan: it must be "),
        (["--seed", "9" * 400], "9999: it must be below 1.84467e+19"),
        (["--radius", "0"], "--radius is 0: it must be above 0"),
        (["--max-length", "2"], "--max-length is 2: it must be at least 3"),
        (["--temperature", "0"], "--temperature is 0.0: it must be above 0"),
        (["--temperature", "inf"], "--temperature is inf: it must be below 1.84467e+19"),
        (["--dropout", "1"], "--dropout is 1.0: it must be below 1"),
        (["--learning-rate", "1e30"], "--learning-rate is 1e+30: it must be at most 1"),
        (["--learning-rate", "-1"], "--learning-rate is -1.0: it must be above 0"),
        (["--nproc", "4", "--batch-size", "3"], "--batch-size 3 is smaller than --nproc 4"),
        (["--seeds", "42,0,42"], "--seeds: 42 is named twice"),
        (["--seeds", "42,-1"], "--seeds is -1: it must be at least 0"),
        (["--seeds", "42,x"], "--seeds is 'x', and must be a whole number: write them as 42,0,1"),
        (["--seeds", ""], "--seeds is '', and must be a whole number"),
        (["--seeds", "42,0", "--seed", "1"], "--seed and --seeds together"),
        (["--radius", "0.5"], "--radius=0.5: a number of ranks must be an integer of at least 1"),
        (["--window", "score"], "--radius=None: a distance in score must be finite and above 0, such as 0.5"),
        (["--radius", "1 in 10"], "--radius='1 in 10': a share must be a percentage above 0 and up to 100"),
        (["--radius", "0%"], "--radius='0%': a share must be a percentage"),
        (["--radius", "1%", "--window", "score"], "--radius='1%': a distance in score"),
        (["--compile", "fast"], "--compile is 'fast': choose from off, on, graphs"),
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
