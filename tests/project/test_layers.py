"""The order of imports between modules, read from the source."""

import ast
import graphlib
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
# in the order of the data path: a layer (package or module) imports only from itself and from layers before it
LIBRARY_LAYERS = """
    version errors imports text_table command arrays _kernels
    parallel storage corpus options index tokens augment pair_scores probing losses verify integrations
""".split()
TRAINING_LAYERS = """
    messages signals losses encoder config distributed record evaluation loop neighbours demo
    corpus report launch generation ddp verifier evaluate download generate compare
""".split()
COMMAND_LAYERS = "index negatives probe_report probe __main__".split()
LAYERS = {"una_fast": LIBRARY_LAYERS, "train": TRAINING_LAYERS, "una_fast_cli": COMMAND_LAYERS}  # lowest first
PATHS = [path for package in LAYERS for path in sorted((ROOT / package).rglob("*.py"))]


def name_of(path: Path) -> str:
    return path.relative_to(ROOT).as_posix().removesuffix(".py")


def imported(path: Path) -> Iterator[str]:
    """Yield the dotted names of all modules that the file `path` imports."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}:{node.lineno}: a relative import"
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def module_of(name: str, modules: set[str]) -> str:
    """Return the longest prefix of a dotted name that is a module of the project, or ""."""
    parts = name.split(".")
    prefixes = (".".join(parts[:n]) for n in range(len(parts), 0, -1))
    return next((prefix for prefix in prefixes if prefix in modules), "")


def own_imports() -> dict[str, set[str]]:
    """Return, for each module of the project, the modules of the project that it imports."""
    modules = {name_of(path).replace("/", ".").removesuffix(".__init__"): path for path in PATHS}
    found = {name: {module_of(other, {*modules}) for other in imported(path)} for name, path in modules.items()}
    return {name: others - {"", name} for name, others in found.items()}


def layer(module: str) -> tuple[int, int]:
    """Return the position of a module in the order of layers: (of its package, within its package)."""
    package, name, *_ = module.split(".")
    return [*LAYERS].index(package), LAYERS[package].index(name)


def test_every_package_and_module_is_a_layer():
    found = {path.relative_to(ROOT).parts[:2] for path in PATHS}
    missing = [(package, name) for package, name in found if Path(name).stem not in (*LAYERS[package], "__init__")]
    assert not missing, f"add them to LAYERS: {missing}"


def test_imports_point_only_towards_the_start_of_the_data_path():
    for module, others in own_imports().items():
        later = [other for other in others if "." in module and "." in other and layer(other) > layer(module)]
        assert not later, (module, later)


def test_imports_have_no_cycle():
    list(graphlib.TopologicalSorter(own_imports()).static_order())  # raises CycleError, which names the cycle


def test_no_module_draws_from_a_global_generator():
    """This covers Python's `random`; ruff refuses numpy's global generator."""
    for path in PATHS:
        assert "random" not in {name.split(".")[0] for name in imported(path)}, name_of(path)
