"""The free memory, and a warning before a large part of it is taken."""

from __future__ import annotations

import os
import re
import warnings
from contextlib import suppress
from pathlib import Path

from una_fast.errors import InputError, InputWarning

LARGE_SHARE = 0.5  # of the free memory


def free_memory() -> int | None:
    """Bytes that programs can take without swapping, or None where the system does not say."""
    with suppress(OSError):
        found = re.search(r"^MemAvailable:\s+(\d+) kB$", Path("/proc/meminfo").read_text(), re.MULTILINE)
        if found:
            return int(found[1]) * 1024
    with suppress(OSError, ValueError, AttributeError):
        return os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    return None


def check_size(what: str, n_bytes: int) -> None:
    """Warn or raise before `what`, of `n_bytes` bytes, is made, if it is large compared with the free memory.

    Raises:
        InputError: it needs more than is free.

    Warns:
        InputWarning: it needs more than half of what is free.
    """
    free = free_memory()
    if free is None or n_bytes <= free * LARGE_SHARE:
        return
    size = f"{what} takes {n_bytes:,} bytes, and {free:,} bytes of memory are free"
    if n_bytes > free:
        raise InputError(f"{size}: compute it for a part of the corpus, or use a larger machine")
    warnings.warn(size, InputWarning, stacklevel=3)
