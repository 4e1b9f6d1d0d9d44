"""What every command owes its user at once: --help and a refusal, without waiting for torch."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
RUN = """
import runpy, sys
sys.argv = sys.argv[1:]
try:
    runpy.run_module(sys.argv[0], run_name="__main__")
except SystemExit as left:
    code = left.code
heavy = {"numba", "scipy", "sklearn", "torch", "transformers"} & sys.modules.keys()
sys.exit(f"imports {heavy}" if heavy else code)
"""
REFUSED = {
    "train.ddp": (["--corpus", "c", "--model", "m", "--output", "o", "--bach-size", "8"], "did you mean --batch-size?"),
    "train.evaluate": (["--model", "m", "--tasks", "STS17"], "did you mean STS16?"),
    "train.generate": (["paraphrase", "--beans", "4"], "did you mean --beams?"),
    "train.report": (["nowhere"], "nowhere: no such folder"),
    "train.download": (["--to", "x", "--only", "all"], "invalid choice: 'all'"),
}


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", RUN, *arguments]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)


@pytest.mark.parametrize("module", REFUSED)
def test_help_and_refusals_do_not_wait_for_torch(module: str) -> None:
    helped = run(module, "--help")
    assert helped.returncode == 0 and "usage: python -m train." in helped.stdout, helped.stderr
    arguments, message = REFUSED[module]
    refused = run(module, *arguments)
    assert refused.returncode == 2 and message in refused.stderr


def test_public_names_are_there_when_asked_for() -> None:
    import una_fast

    assert set(una_fast.__all__) == set(una_fast._HOMES) and set(una_fast.__all__) <= set(dir(una_fast))
    assert all(getattr(una_fast, name).__name__ == name for name in una_fast.__all__)
    with pytest.raises(AttributeError, match="module 'una_fast' has no attribute 'nothing'"):
        una_fast.nothing  # noqa: B018
