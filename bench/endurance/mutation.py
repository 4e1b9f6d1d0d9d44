"""Measure how many small mistakes in the code the tests notice. The mistakes are a random sample of mutmut's mutants.

    python -m bench.endurance.mutation [--part steps losses ...] [--seed 0] [--share 1.0] [--minutes 30] [--survivors]

A mutant is the code with one change in one function: another constant, operator or argument. mutmut runs the tests that
reach the change. It works on a copy of the checkout. The results of each part are added to bench/results/mutation.json.
equivalent_mutants.json, next to this file, lists surviving mutants that no test could notice, with the reason.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from una_fast.text_table import aligned

ROOT = Path(__file__).parents[2]
RESULTS = ROOT / "bench" / "results" / "mutation.json"
EXPLAINED = Path(__file__).with_name("equivalent_mutants.json")
MUTMUT = (sys.executable, "-m", "mutmut")
NOTICED = ("killed", "timeout", "segfault")
COLUMNS = ["part", "run", "of", "killed", "equivalent", "left", "killed or equivalent"]


class Part(NamedTuple):
    """A part of the code, and its tests.

    modules: globs of the files that are mutated.
    tests: test files that mutmut runs.
    sample: how many mutants are drawn at --share 1.
    tests_elsewhere: test files that start commands in another folder, where mutmut cannot record what they reach.
    """

    modules: tuple[str, ...]
    tests: tuple[str, ...]
    sample: int
    tests_elsewhere: tuple[str, ...] = ()


def _training(*names: str) -> tuple[str, ...]:
    return tuple(f"tests/training/test_{name}.py" for name in names)


PARTS = {
    "steps": Part(("train/loop/data.py",), _training("steps", "compiled"), 40),
    "losses": Part(
        ("una_fast/losses.py", "train/losses.py"), _training("losses", "registries"), 40, _training("steps")
    ),
    "correlation": Part(
        ("train/evaluation/similarity.py",), ("tests/evaluation/test_sts.py", "tests/evaluation/test_near_miss.py"), 15
    ),
    "una_fast": Part(  # all its files: mutmut's * also matches folders
        ("una_fast/*.py",),
        ("tests/index", "tests/augment"),
        25,
        ("tests/corpus", "tests/tokens", "tests/integrations", "tests/project/test_commands.py", "tests/cli"),
    ),
    "augment": Part(("una_fast/augment/*.py",), ("tests/augment",), 40, ("tests/training/test_registries.py",)),
    "corpus": Part(("una_fast/corpus/*.py",), ("tests/corpus",), 35),
    "index and storage": Part(("una_fast/index/*.py", "una_fast/storage/*.py"), ("tests/index", "tests/augment"), 40),
    "tokens": Part(
        ("una_fast/tokens/*.py",),
        tuple(f"tests/tokens/test_{name}.py" for name in ("tokens", "pipelines", "subwords")),
        30,
        ("tests/augment/test_text_augmentations.py", "tests/augment/test_surface.py"),
    ),
}


def copy_checkout(folder: Path) -> None:
    """Copy the tracked files and the compiled kernels to `folder`."""
    listed = subprocess.run(["git", "ls-files", "-co", "--exclude-standard"], cwd=ROOT, capture_output=True, check=True)
    kernels = [path.relative_to(ROOT) for path in (ROOT / "una_fast").rglob("*.so")]
    for path in [*map(Path, listed.stdout.decode().splitlines()), *kernels]:
        if (ROOT / path).is_file():
            (folder / path).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / path, folder / path)


def configure(folder: Path, part: Part) -> None:
    """Write mutmut's settings into the copy's pyproject.toml."""
    settings = {
        "source_paths": ["una_fast", "train", "una_fast_cli"],
        "only_mutate": list(part.modules),
        "also_copy": ["bench", "docs", "README.md", "constraints.txt", "setup.py"],
        "pytest_add_cli_args_test_selection": list(part.tests),
        "pytest_add_cli_args": ["-p", "no:cacheprovider", "-p", "no:benchmark"],
    }
    lines = [f"{name} = {json.dumps(value)}" for name, value in settings.items()]
    lines += ["use_git_change_detection = false", "track_dependencies = false"]
    text = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    (folder / "pyproject.toml").write_text(text + "\n[tool.mutmut]\n" + "\n".join(lines) + "\n", encoding="utf-8")


def run_mutmut(folder: Path, *arguments: str, seconds: float | None = None) -> str:
    """Run mutmut and return its output. After `seconds` it is killed, but its earlier results are kept."""
    process = subprocess.Popen(
        [*MUTMUT, *arguments], cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        start_new_session=True,
    )  # fmt: skip
    try:
        return process.communicate(timeout=seconds)[0]
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        return process.communicate()[0]


def mutants_of(folder: Path) -> list[str]:
    """Make all mutants of the copy in `folder`, and return their names."""
    # mutmut makes all mutants, and finds each function's tests, before it looks for the given name
    said = run_mutmut(folder, "run", "--max-children", "1", "no-such-mutant")
    if "nothing matches" not in said:
        raise SystemExit(f"mutmut made no mutants:\n{said[-3000:]}")
    metas = [json.loads(path.read_text(encoding="utf-8")) for path in sorted(folder.glob("mutants/**/*.meta"))]
    return sorted(name for meta in metas for name in meta["exit_code_by_key"])


def change_of(folder: Path, mutant: str) -> dict[str, str]:
    """Return the name of a mutant and the lines that it changes, before and after: {"mutant", "from", "to"}."""
    lines = run_mutmut(folder, "show", mutant).splitlines()
    gone, new = ([line[1:].strip() for line in lines if re.match(rf"\{sign}[^{sign}]", line)] for sign in "-+")
    return {"mutant": mutant, "from": " ".join(gone), "to": " ".join(new)}


def fails_a_test(folder: Path, part: Part, mutant: str) -> bool:
    """Run all tests of the part, and return whether one of them fails with this mutant.

    This is for mutants that survived mutmut's run. mutmut runs only tests that reach the mutant in their own process,
    but ranks and commands reach it in other processes.
    """
    code = run_tests(folder, part, mutant).returncode
    return code == 1 or code < 0  # a test failed, or a kernel crashed


def check_tests_pass(folder: Path, part: Part) -> None:
    """Raise SystemExit if a test of the part fails without a mutant; failures with a mutant would then mean nothing."""
    done = run_tests(folder, part, "")
    if done.returncode:
        raise SystemExit(f"a test fails without a mutant:\n{done.stdout[-3000:]}")


def run_tests(folder: Path, part: Part, mutant: str) -> subprocess.CompletedProcess[str]:
    """Run the tests of a part up to the first failure. mutant: the name of a mutant, or "" for the unchanged code."""
    tests = [*part.tests, *part.tests_elsewhere]
    command = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", "-p", "no:benchmark", *tests]
    place = folder / "mutants"
    environment = {**os.environ, "MUTANT_UNDER_TEST": mutant, "PYTHONPATH": str(place)}
    return subprocess.run(command, cwd=place, env=environment, capture_output=True, text=True, check=False)


@contextmanager
def mutated_copy(part: Part) -> Iterator[tuple[Path, list[str]]]:
    """Make a temporary copy of the checkout with all mutants of a part. Yields the folder and the mutants' names."""
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        copy_checkout(folder)
        configure(folder, part)
        yield folder, mutants_of(folder)


def mutate(name: str, seed: int, share: float, seconds: float) -> dict[str, Any]:
    """Draw mutants of the part `name`, test them for at most `seconds`, and return counts and survivors.

    share: multiplies the size of the sample.
    """
    part = PARTS[name]
    with mutated_copy(part) as (folder, mutants):
        size = min(len(mutants), round(part.sample * share))
        chosen = random.Random(f"{seed} {name}").sample(mutants, size)
        run_mutmut(folder, "run", "--max-children", "1", *chosen, seconds=seconds)
        lines = run_mutmut(folder, "results", "--all", "true").splitlines()
        status = dict(line.strip().rsplit(": ", 1) for line in lines if ": " in line)
        found = {mutant: status[mutant] for mutant in sorted(chosen) if status[mutant] != "not checked"}
        check_tests_pass(folder, part)
        for mutant in found:
            if found[mutant] not in NOTICED and fails_a_test(folder, part, mutant):
                found[mutant] = "killed"
        alive = [mutant for mutant in found if found[mutant] not in NOTICED]
        return {
            "seed": seed,
            "mutants": len(mutants),
            "drawn": size,
            "statuses": Counter(found.values()),
            "survivors": [{**change_of(folder, mutant), "status": found[mutant]} for mutant in alive],
        }


def check_again(name: str, earlier: dict[str, Any]) -> dict[str, Any]:
    """Run the current tests on the survivors in `earlier`, results from `mutate`, and return the new results.

    Survivors that equivalent_mutants.json explains, or whose code has changed since, are not tested again.
    """
    part, statuses, alive = PARTS[name], Counter(earlier["statuses"]), []
    with mutated_copy(part) as (folder, _):
        check_tests_pass(folder, part)
        for one in explain(earlier["survivors"]):
            same = change_of(folder, one["mutant"]).items() <= one.items()
            if not one["why"] and same and fails_a_test(folder, part, one["mutant"]):
                statuses.subtract([one["status"]])
                statuses.update(["killed"])
            else:
                alive.append(one)
    return {**earlier, "statuses": +statuses, "survivors": alive}


def explain(survivors: list[dict[str, str]]) -> list[dict[str, str]]:
    """Return the survivors, each with "why": the reason why no test could notice it, or ""."""
    known = {(one["from"], one["to"]): one["why"] for one in json.loads(EXPLAINED.read_text(encoding="utf-8"))}
    return [{**one, "why": known.get((one["from"], one["to"]), "")} for one in survivors]


def summary(parts: dict[str, Any]) -> list[list[str]]:
    """Return the rows of the table that the command prints last."""
    rows = [_row(name, one) for name, one in parts.items()]
    total = [sum(int(row[i]) for row in rows) for i in range(1, 6)]
    rows.append(["all", *map(str, total), _percent(total[2] + total[3], total[0])])
    return [COLUMNS, *rows]


def _row(name: str, part: dict[str, Any]) -> list[str]:
    drawn, equivalent = sum(part["statuses"].values()), sum(bool(one["why"]) for one in part["survivors"])
    killed = drawn - len(part["survivors"])
    left = drawn - killed - equivalent
    numbers = (drawn, part["mutants"], killed, equivalent, left)
    return [name, *map(str, numbers), _percent(killed + equivalent, drawn)]


def _percent(share: int, whole: int) -> str:
    return f"{100 * share / whole:.1f}%" if whole else ""


def read_results() -> dict[str, Any]:
    """Read bench/results/mutation.json. Its key "measured" maps each part to what `mutate` returned."""
    return json.loads(RESULTS.read_text(encoding="utf-8")) if RESULTS.is_file() else {"measured": {}}


def save(name: str, part: dict[str, Any]) -> None:
    """Store the results of a part in bench/results/mutation.json."""
    saved = read_results()
    saved["measured"][name] = part
    for one in saved["measured"].values():
        one["survivors"] = explain(one["survivors"])
    RESULTS.write_text(json.dumps(saved, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--part", nargs="+", choices=PARTS, default=list(PARTS), metavar="PART", help=", ".join(PARTS))
    parser.add_argument("--seed", type=int, default=0, help="seed of the sample [0]")
    parser.add_argument("--share", type=float, default=1.0, help="multiplies the number of mutants of each part [1.0]")
    parser.add_argument("--minutes", type=float, default=30, help="time limit for the mutants of a part [30]")
    parser.add_argument("--survivors", action="store_true", help="test only the survivors of earlier calls again")
    options = parser.parse_args(arguments)
    for name in options.part:
        if options.survivors:
            part = check_again(name, read_results()["measured"][name])
        else:
            part = mutate(name, options.seed, options.share, 60 * options.minutes)
        save(name, part)
        print(name, dict(part["statuses"]), flush=True)
        for one in part["survivors"]:
            print(f"  {one['mutant']} ({one['status']})\n    - {one['from']}\n    + {one['to']}", flush=True)
    print(*aligned(summary(read_results()["measured"]), left=(0,)), sep="\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
