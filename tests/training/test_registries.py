"""The values of options are the rows of the registries, whose functions are imported when they are first used."""

import subprocess
import sys

import pytest

from train.config.run import make_parser, options
from train.encoder.pooling import AUTO, OF_TRAINING
from train.objective.registry import LOSSES, NOISES
from una_fast.augment.registry import AUGMENTATIONS
from una_fast.augment.text_augmentation import TextAugmentation

LIGHT = "train.config.run", "train.objective.registry", "una_fast.augment.registry", "train.evaluation.tasks.registry"
HEAVY = {"torch", "numba", "transformers", "scipy"}


def test_the_values_of_options() -> None:
    assert options()["loss"].choices == (*LOSSES,)
    assert options()["noise"].choices == ("none", *NOISES)
    assert options()["pooling"].choices == (AUTO, *OF_TRAINING)
    assert options()["positives"].choices == ("same", *(name for name in AUGMENTATIONS if name != "una"))


def test_help_says_what_each_value_means() -> None:
    shown = " ".join(make_parser().format_help().split())
    for table in (LOSSES, NOISES, {name: row for name, row in AUGMENTATIONS.items() if row.positive}):
        assert all(f"{name}: {row.meaning}" in shown for name, row in table.items())


@pytest.mark.parametrize("row", [*LOSSES.values(), *NOISES.values()])
def test_a_row_leads_to_its_function(row) -> None:
    assert row.load().__name__ == row.path.rpartition(":")[2]


@pytest.mark.parametrize("row", AUGMENTATIONS.values())
def test_a_row_leads_to_its_class(row) -> None:
    made = row.load()
    assert issubclass(getattr(made, "func", made), TextAugmentation)


def test_help_waits_for_no_large_package() -> None:
    code = f"import sys, {', '.join(LIGHT)}; print(*sorted({HEAVY} & {{name.split('.')[0] for name in sys.modules}}))"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.split() == []
