"""The free memory."""

from __future__ import annotations

import os
import re
from contextlib import suppress
from pathlib import Path


def free_memory() -> int | None:
    """Bytes that programs can take without swapping, or None where the system does not say."""
    with suppress(OSError):
        found = re.search(r"^MemAvailable:\s+(\d+) kB$", Path("/proc/meminfo").read_text(), re.MULTILINE)
        if found:
            return int(found[1]) * 1024
    with suppress(OSError, ValueError, AttributeError):
        return os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    return None
