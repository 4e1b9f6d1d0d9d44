"""The order of imports between modules, read from the source."""

import ast
import graphlib
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
# in the order of the data: a room (package or module) imports only from itself and from rooms before it
LIBRARY_ROOMS = """
    version errors imports text_table command arrays _kernels
    parallel storage corpus options index tokens augment pair_scores probing losses integrations
""".split()
TRAINING_ROOMS = """
    signals objective encoder config distributed record evaluation loop neighbours demo
    report launch generation ddp evaluate download generate compare
""".split()
COMMAND_ROOMS = "index negatives probe __main__".split()
ROOMS = {"una_fast": LIBRARY_ROOMS, "train": TRAINING_ROOMS, "una_fast_cli": COMMAND_ROOMS}  # lowest first
LIBRARY = sorted((ROOT / "una_fast").rglob("*.py"))
TRAINING = sorted((ROOT / "train").rglob("*.py"))
COMMANDS = sorted((ROOT / "una_fast_cli").rglob("*.py"))


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


def module_of(name: str, modules: set[str]) -> str:
    """The longest prefix of a dotted name that is a module of the project, or ""."""
    parts = name.split(".")
    prefixes = (".".join(parts[:n]) for n in range(len(parts), 0, -1))
    return next((prefix for prefix in prefixes if prefix in modules), "")


def own_imports() -> dict[str, set[str]]:
    """The modules of the project that each of its modules imports."""
    paths = LIBRARY + TRAINING + COMMANDS
    modules = {name_of(path).replace("/", ".").removesuffix(".__init__"): path for path in paths}
    found = {name: {module_of(other, {*modules}) for other in imported(path)} for name, path in modules.items()}
    return {name: others - {"", name} for name, others in found.items()}


def room(module: str) -> tuple[int, int]:
    """The place of a module's room in the order of the data: (its package, its place in the package)."""
    package, name, *_ = module.split(".")
    return [*ROOMS].index(package), ROOMS[package].index(name)


def test_every_room_has_a_place_in_the_order() -> None:
    rooms = {path.relative_to(ROOT).parts[:2] for path in LIBRARY + TRAINING + COMMANDS}
    missing = {(p, r) for p, r in rooms if r.removesuffix(".py") not in (*ROOMS[p], "__init__")}
    assert not missing, f"give them a place in this file: {missing}"


def test_imports_point_only_towards_the_start_of_the_data_path() -> None:
    later = {
        (module, other)
        for module, others in own_imports().items()
        for other in others
        if "." in module and "." in other and room(other) > room(module)
    }
    assert not later, later


def test_no_circle_of_imports() -> None:
    list(graphlib.TopologicalSorter(own_imports()).static_order())  # raises CycleError, which names the cycle


def test_no_module_draws_from_a_global_generator() -> None:
    """That of numpy is refused by ruff."""
    for path in LIBRARY + TRAINING + COMMANDS:
        assert "random" not in {name.split(".")[0] for name in imported(path)}, name_of(path)
