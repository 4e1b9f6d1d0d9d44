"""The compiled kernels, and the metadata that contain the address of the repository. The rest is in pyproject.toml.

UNA_FAST_REPOSITORY is this address, such as "https://HOST/OWNER/NAME". A release sets it; mkdocs reads it too.
UNA_FAST_CHECKS=1 at build time turns bounds checks on; UNA_FAST_CFLAGS adds compiler flags ("-march=native").
If the settings differ from those of the last build, every kernel is rebuilt. UNA_FAST_KERNELS=0 leaves the kernels out:
pip would compile all of them again in a temporary folder, so `make` installs the package without them and then builds
them in place.
"""

import multiprocessing
import os
import re
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
OWN_CFLAGS = os.environ.get("UNA_FAST_CFLAGS", "").split()
# no fused multiply-add and no reordered sum, so that logarithms and probabilities have the same bits on every processor
# -g0: with Python's default flags, debug symbols are four fifths of the kernels' 21.5 MB
CFLAGS = [] if os.name == "nt" else ["-O3", "-ffp-contract=off", "-g0", *OWN_CFLAGS]
if any("fast" in flag or "unsafe-math" in flag for flag in OWN_CFLAGS):
    raise SystemExit("UNA_FAST_CFLAGS: -ffast-math and the like would change what is computed; leave them away")


def record_settings(file: Path) -> Path:
    """Write the settings to `file` if they have changed, and return `file`. A newer file makes all kernels rebuild."""
    settings = f"{DIRECTIVES}\n{CFLAGS}\n"
    if not file.exists() or file.read_text() != settings:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(settings)
    return file


# Cython's memoryview code, 1 MB of C, is compiled only once: the build takes 60 s of processor time instead of 140.
MEMORYVIEWS = "una_fast._kernels.memoryviews"

settings_file = record_settings(Path("build/settings.txt"))
extensions = [
    Extension(
        ".".join(path.with_suffix("").parts), [str(path)], depends=[str(settings_file)], extra_compile_args=CFLAGS
    )
    for path in sorted(Path("una_fast/_kernels").rglob("*.pyx"))
]
extensions.append(Extension(MEMORYVIEWS, [], extra_compile_args=CFLAGS))  # its source is written by Cython
# A spawned process would run this file again.
N_PROCESSES = os.cpu_count() if multiprocessing.get_start_method() == "fork" else 0
c_folder = "build/c_checked" if CHECKED else "build/c"
modules = cythonize(
    extensions if os.environ.get("UNA_FAST_KERNELS") != "0" else [],
    build_dir=c_folder,
    compiler_directives=DIRECTIVES,
    nthreads=N_PROCESSES,
    shared_utility_qualified_name=MEMORYVIEWS,
)


def absolute_links(text: str, repository: str, version: str) -> str:
    """Make the relative links and pictures of a Markdown text absolute: a package index has the text, not the files."""

    def absolute(link: re.Match[str]) -> str:
        return f"{link[1]}{repository}/{'raw' if link[1].startswith(('!', 's')) else 'blob'}/v{version}/"

    return re.sub(r"""(!\[[^]]*\]\(|\]\(|\b(?:src|srcset|href)=")(?![a-z]+:|#)""", absolute, text)


REPOSITORY = os.environ.get("UNA_FAST_REPOSITORY", "").rstrip("/")
readme, urls = Path("README.md").read_text(encoding="utf-8"), {"Paper": "https://arxiv.org/abs/2401.02594"}
if REPOSITORY:
    (version,) = re.findall('^VERSION = "(.+)"', Path("una_fast/version.py").read_text(encoding="utf-8"), re.MULTILINE)
    readme = absolute_links(readme, REPOSITORY, version)
    pages = {"Documentation": "docs/index.md", "Changelog": "CHANGELOG.md"}
    urls |= {name: f"{REPOSITORY}/blob/v{version}/{page}" for name, page in pages.items()}
    urls |= {"Repository": REPOSITORY, "Issues": f"{REPOSITORY}/issues"}
setup(
    ext_modules=modules,
    long_description=readme,
    long_description_content_type="text/markdown",
    project_urls=urls,
    options={"build_ext": {"parallel": os.cpu_count()}},
)
