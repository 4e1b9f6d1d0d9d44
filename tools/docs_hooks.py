"""Hooks of the docs build: the address of the repository, the ``--help`` of each command, and examples/."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files

PLACE = re.compile(r"<!-- options: (.+) -->")
EXAMPLES = Path(__file__).parents[1] / "examples"


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Link the site to the repository at UNA_FAST_REPOSITORY, as setup.py does for a package index."""
    if repository := os.environ.get("UNA_FAST_REPOSITORY", "").rstrip("/"):
        owner, name = repository.split("/")[-2:]
        config.repo_url, config.repo_name = repository, name
        config.site_url = f"https://{owner.lower()}.github.io/{name}/"
    return config


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the files of examples/, which is not in docs/, to the site."""
    for path in sorted(EXAMPLES.glob("*.*")):
        files.append(File.generated(config, f"examples/{path.name}", abs_src_path=str(path)))
    return files


def on_page_markdown(markdown: str, **_: Any) -> str:
    """Change links to ../examples/ to the site's copies, and replace ``<!-- options: MODULE -->`` by MODULE's help."""
    markdown = markdown.replace("](../examples/", "](examples/")
    return PLACE.sub(lambda place: f"```text\n{help_of(place[1])}\n```", markdown)


def help_of(module: str) -> str:
    """Return the output of ``MODULE --help``, 100 columns wide.

    Raises CalledProcessError if the command fails. This ends the build.
    """
    environment = {**os.environ, "COLUMNS": "100", "NO_COLOR": "1"}
    command = [sys.executable, "-m", *module.split(), "--help"]
    return subprocess.run(command, env=environment, check=True, capture_output=True, text=True).stdout.rstrip()
