"""The compiled kernels; all other metadata is in pyproject.toml.

UNA_FAST_CHECKS=1 at build time turns bounds checks on; UNA_FAST_CFLAGS adds compiler flags ("-march=native").
"""

import os
from pathlib import Path

from Cython.Build import cythonize
from setuptools import Extension, setup

CHECKED = os.environ.get("UNA_FAST_CHECKS", "0") == "1"
DIRECTIVES = {
    "language_level": 3,
    "boundscheck": CHECKED,
    "wraparound": False,
    "initializedcheck": CHECKED,
    "cdivision": True,
    "embedsignature": True,
}
CFLAGS = [] if os.name == "nt" else ["-O3", *os.environ.get("UNA_FAST_CFLAGS", "").split()]

extensions = [
    Extension(f"una_fast._kernels.{path.stem}", [str(path)], extra_compile_args=CFLAGS)
    for path in sorted(Path("una_fast/_kernels").glob("*.pyx"))
]
setup(ext_modules=cythonize(extensions, compiler_directives=DIRECTIVES))
