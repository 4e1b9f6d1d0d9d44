"""Hook of the docs build: it writes the ``--help`` of each command into the commands page."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from typing import Any

PLACE = re.compile(r"<!-- options: (.+) -->")


def on_page_markdown(markdown: str, **_: Any) -> str:
    """Replace each ``<!-- options: MODULE -->`` by what ``python -m MODULE --help`` prints."""
    return PLACE.sub(lambda place: f"```text\n{help_of(place[1])}\n```", markdown)


def help_of(module: str) -> str:
    """The help text of a command, 100 columns wide. Raises CalledProcessError, which ends the build, if it fails."""
    environment = {**os.environ, "COLUMNS": "100", "NO_COLOR": "1"}
    command = [sys.executable, "-m", *module.split(), "--help"]
    return subprocess.run(command, env=environment, check=True, capture_output=True, text=True).stdout.rstrip()
