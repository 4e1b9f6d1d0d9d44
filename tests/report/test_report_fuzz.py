"""Runs with arbitrary files: the report ends with a page or with one sentence, never with a traceback."""

import copy
import json
from pathlib import Path
from typing import Any
from unittest import mock

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import una_fast
from support.run_folders import STS_TASKS, metrics_line, write_evaluation, write_run
from train.report.__main__ import main

pytestmark = pytest.mark.slow

NUMBERS = st.integers() | st.floats() | st.sampled_from([10**400, -1, 0, 2**63, 1e308, -1e308, 5e-324])
SCALARS = st.none() | st.booleans() | NUMBERS | st.text(st.characters(exclude_categories=()), max_size=8)
VALUES = st.recursive(
    SCALARS, lambda one: st.lists(one, max_size=4) | st.dictionaries(st.text(max_size=4), one, max_size=4), max_leaves=8
)
FILES = ("run.json", "metrics.jsonl", "evaluation.json", "seeds.json")


def places(value: Any, path: tuple = ()) -> list[tuple]:
    """The paths to all values within a value, itself included."""
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [path, *(place for name, one in inner for place in places(one, (*path, name)))]


def changed(value: Any, path: tuple, new: Any) -> Any:
    """A copy of a value with `new` in one place."""
    if not path:
        return new
    value = copy.deepcopy(value)
    holder = value
    for name in path[:-1]:
        holder = holder[name]
    holder[path[-1]] = new
    return value


@pytest.fixture(scope="module")
def run_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("fuzz")
    index = folder / "index"
    una_fast.build_index(["the old bridge near the river", "a red house by the old garden"] * 5).save(index)
    for name in ("run", "other"):
        write_run(
            folder / name, 0.8, 4, 0.7, augment="una", index=str(index), beta=0.5, radius=3, versions={"torch": "2"}
        )
        write_evaluation(folder / name, 0.7, STS_TASKS[:3])
    return folder


def report(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Make the page, without the 5 MB of plotly: an exit code 0, or 2 and one line that begins with "error"."""
    capsys.readouterr()
    with mock.patch("train.report.page.get_plotlyjs", return_value=""):
        code = main([str(folder / "run"), str(folder / "other"), "--baseline", str(folder / "other"),
                     "--output", str(folder / "page.html")])  # fmt: skip
    said = capsys.readouterr().err
    assert code == 0 or (code == 2 and said.startswith("error: ") and said.count("\n") == 1), said


@settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=30)
@given(data=st.data())
def test_values_of_wrong_types(run_folder: Path, capsys: pytest.CaptureFixture[str], data: st.DataObject) -> None:
    name = data.draw(st.sampled_from(FILES), "file")
    path = run_folder / "run" / name
    before = path.read_bytes() if path.exists() else None
    try:
        if name == "metrics.jsonl":
            lines = [metrics_line(0), {"step": 0, "stsb_dev": 0.7}, metrics_line(5), {"step": 6, "stsb_dev": 0.8}]
            place = data.draw(st.sampled_from(places(lines)[1:]), "place")
            lines = changed(lines, place, data.draw(VALUES, "value"))
            path.write_text("\n".join(map(json.dumps, lines)))
        else:
            content = json.loads(before) if before else {}
            place = data.draw(st.sampled_from(places(content)), "place")
            path.write_text(json.dumps(changed(content, place, data.draw(VALUES, "value"))))
        report(run_folder, capsys)
    finally:
        path.unlink()
        if before is not None:
            path.write_bytes(before)


@settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=15)
@given(name=st.sampled_from(FILES), content=st.binary(max_size=40) | VALUES.map(lambda v: json.dumps(v).encode()))
def test_files_of_any_bytes(run_folder: Path, capsys: pytest.CaptureFixture[str], name: str, content: bytes) -> None:
    path = run_folder / "run" / name
    before = path.read_bytes() if path.exists() else None
    try:
        path.write_bytes(content)
        report(run_folder, capsys)
    finally:
        path.unlink()
        if before is not None:
            path.write_bytes(before)
