"""Write a ``.pyi`` stub next to each compiled kernel: run ``python tools/stubs.py`` after changing a signature.

A stub has the public functions and classes of a module, with their arguments. A memory view becomes an array of the
same dtype, and a C integer becomes int. Whatever has no type in the ``.pyx``, such as most results, becomes Any.
"""

from __future__ import annotations

import re
from pathlib import Path

KERNELS = Path(__file__).parents[1] / "una_fast" / "_kernels"
DTYPES = {
    "double": "float64", "float": "float32", "int": "int32", "char": "int8", "unsigned char": "uint8",
    "uint8_t": "uint8", "uint16_t": "uint16", "int32_t": "int32", "uint32_t": "uint32", "int64_t": "int64",
    "uint64_t": "uint64", "Py_ssize_t": "intp",
}  # fmt: skip
SCALARS = {"double": "float", "float": "float", "bint": "bool", "bool": "bool", "object": "Any"}
GENERIC = {"dict": "dict[Any, Any]", "list": "list[Any]", "set": "set[Any]", "tuple": "tuple[Any, ...]"}
CLASS = re.compile(r"^cdef class (\w+)(?:\((\w+)\))?:\n((?:(?: .*)?\n)*)", re.MULTILINE)
METHOD = re.compile(r"^( *)def (\w+)\((.*?)\)(?: -> ([\w.]+))?:\n", re.MULTILINE | re.DOTALL)
COMMA = re.compile(r",(?![^\[]*\])")  # outside brackets
CONSTANTS = re.compile(r"^([A-Z][A-Z_, ]+) = ", re.MULTILINE)
HIDDEN = re.compile(r"_[a-z]|__(?:dealloc|reduce|setstate)")
FIELD = re.compile(r"^ +cdef (?:readonly|public) (.+?) (\w+)$", re.MULTILINE)


def stub_of(source: Path) -> str:
    """Return the stub of a .pyx file, or "" if the file has nothing public."""
    text = source.read_text(encoding="utf-8")
    header = source.with_suffix(".pxd")
    declared = {match[1]: match[3] for match in CLASS.finditer(header.read_text("utf-8") if header.exists() else "")}
    parts = [f"{name}: Any" for names in CONSTANTS.findall(text) for name in names.split(", ")]
    parts += [_function(match, text) for match in METHOD.finditer(text) if not match[1] and match[2][0] != "_"]
    for name, base, body in CLASS.findall(text):
        if name.startswith("_"):
            continue
        fields = [f"{field}: {_type(kind, text)}" for kind, field in FIELD.findall(declared.get(name, "") + body)]
        methods = []
        for match in METHOD.finditer(body):
            if not HIDDEN.match(match[2]):
                methods += ["@property"] * body[: match.start()].endswith("@property\n") + [_function(match, text)]
        lines = "".join(f"    {line}\n" for line in [*fields, *methods]) or "    ...\n"
        parts.append(f"class {name}({base}):\n{lines}" if base else f"class {name}:\n{lines}")
    body = "\n".join(part.rstrip("\n") for part in parts)
    return f"{_imports(source, body)}\n{body}\n" if parts else ""


def _function(match: re.Match[str], text: str) -> str:
    name = "__init__" if match[2] == "__cinit__" else match[2]
    arguments = ", ".join(_argument(given.strip(), text) for given in COMMA.split(match[3]) if given.strip())
    if " | NDArray" in arguments:  # a fused function, which is also a mapping from dtypes to functions
        return f"{name}: Any  # ({arguments})"
    return f"def {name}({arguments}) -> {'None' if name == '__init__' else match[4] or 'Any'}: ..."


def _argument(given: str, text: str) -> str:
    """Convert a C argument, such as ``const int32_t[::1] ids=None``, to ``ids: NDArray[np.int32] | None = ...``."""
    declared, _, default = (part.strip() for part in given.partition("="))
    if declared in ("self", "*"):
        return declared
    if ":" in declared.split("]")[-1]:  # a Python annotation
        name, _, kind = (part.strip() for part in declared.partition(":"))
        return f"{name.split()[-1]}: {kind}"
    kind, _, name = declared.rpartition(" ")
    hint = _type(kind, text) + (" | None" if default == "None" and kind else "")
    return f"{name}: {hint}" + (" = ..." if default else "")


def _type(kind: str, text: str) -> str:
    """Return the Python type of a C type. A fused type becomes the union of its members."""
    base, view, shape = kind.removeprefix("const ").partition("[")
    fused = re.search(rf"^ctypedef fused {base}:.*\n((?: +.+\n)+)", text, re.MULTILINE) if base else None
    if fused:
        return " | ".join(dict.fromkeys(_type(member + view + shape, text) for member in fused[1].split()))
    base = base.strip()
    if view:
        return f"NDArray[np.{DTYPES[base]}]"
    return (SCALARS | GENERIC).get(base, "int" if base in DTYPES else base or "Any")


def _imports(source: Path, body: str) -> str:
    """Return the import lines that a stub needs: of Any, of numpy, and of classes of other kernels."""
    lines = [f"# made from {source.name} by tools/stubs.py"]
    lines += ["from typing import Any\n"] if "Any" in body else [""]
    lines += ["import numpy as np\nfrom numpy.typing import NDArray\n"] if "NDArray" in body else []
    used = re.findall(r"^from (una_fast\S+) cimport (.+)$", source.read_text(encoding="utf-8"), re.MULTILINE)
    for module, names in used:
        kept = [name for name in names.split(", ") if name[0].isupper() and re.search(rf"\b{name}\b", body)]
        lines += [f"from {module} import {', '.join(kept)}"] if kept else []
    return "\n".join(lines)


def stubs() -> dict[Path, str]:
    """Return the text of each stub, by the path of its file."""
    made = {source.with_suffix(".pyi"): stub_of(source) for source in sorted(KERNELS.rglob("*.pyx"))}
    return {path: text for path, text in made.items() if text}


if __name__ == "__main__":
    for path, text in stubs().items():
        path.write_text(text, encoding="utf-8")
