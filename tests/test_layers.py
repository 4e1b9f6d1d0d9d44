"""The order of the modules, and habits that no module may have, read from the source itself."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
ORDER = """
    errors arrays parallel blocks tables sources chunks words scores storage index windows
    settings pipelines subwords binding tokens reading explain augmenter
""".split()
LIBRARY = sorted((ROOT / "una_fast").rglob("*.py"))
TRAINING = sorted((ROOT / "train").rglob("*.py"))
OWN_GENERATORS = {"SeedSequence", "Generator", "default_rng", "Philox", "PCG64", "BitGenerator", "RandomState"}


def name_of(path: Path) -> str:
    return path.relative_to(ROOT).as_posix().removesuffix(".py")


def imported(path: Path) -> Iterator[str]:
    """The modules that `path` imports anywhere in it, as dotted names."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}:{node.lineno}: a relative import"
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def dotted(node: ast.AST) -> str:
    """ "a.b.c" of an attribute chain, "" of anything else."""
    if isinstance(node, ast.Attribute):
        base = dotted(node.value)
        return f"{base}.{node.attr}" if base else ""
    return node.id if isinstance(node, ast.Name) else ""


def test_every_module_of_the_library_has_a_place_in_the_order() -> None:
    modules = {path.stem for path in (ROOT / "una_fast").glob("*.py")} - {"__init__"}
    assert modules <= set(ORDER), f"add to ORDER: {modules - set(ORDER)}"


@pytest.mark.parametrize("path", LIBRARY, ids=name_of)
def test_imports_point_only_towards_the_start_of_the_data_path(path: Path) -> None:
    own = [name for name in imported(path) if name.split(".")[0] in ("una_fast", "train")]
    assert not [name for name in own if name.startswith("train")]
    if path.parent.name == "_kernels":
        assert all(name.startswith("una_fast._kernels") for name in own), own
    elif path.stem != "__init__":
        later = [m for m in ORDER[ORDER.index(path.stem) :] for name in own if name.split(".")[1] == m]
        assert not later, f"{path.name} comes before {later}"


@pytest.mark.parametrize("path", LIBRARY, ids=name_of)
def test_the_library_prints_nothing(path: Path) -> None:
    calls = [n for n in ast.walk(ast.parse(path.read_text(encoding="utf-8"))) if isinstance(n, ast.Call)]
    assert not [f"line {call.lineno}" for call in calls if dotted(call.func) == "print"]


@pytest.mark.parametrize("path", LIBRARY + TRAINING, ids=name_of)
def test_no_module_draws_from_a_global_generator(path: Path) -> None:
    assert "random" not in {name.split(".")[0] for name in imported(path)}
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        parts = dotted(node).split(".") if isinstance(node, ast.Attribute) else []
        if len(parts) == 3 and parts[0] in ("np", "numpy") and parts[1] == "random":
            assert parts[2] in OWN_GENERATORS, f"{path.name}:{node.lineno}: {'.'.join(parts)}"
