"""Building an index on a Dask cluster: ``pip install 'una_fast[cluster]'``.

`una_fast.build_index(..., executor=client)` takes a `dask.distributed.Client` as it is; this module opens one.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from una_fast.errors import InputError
from una_fast.extras import naming_extras

TIMEOUT = 10  # s, for the first answer of a scheduler


@contextmanager
def connected(address: str) -> Iterator[Any]:
    """A client of the scheduler at `address` ("tcp://host:8786", "host:8786"), or of one in the file of this name.

    Raises:
        InputError: no scheduler answers there, or it is of another version of Dask that does not understand this one.
    """
    with naming_extras("cluster"):
        from distributed import Client
    place = {"scheduler_file": address} if address.endswith(".json") else {"address": address}
    try:
        if "scheduler_file" in place and not Path(address).exists():  # Dask would wait for it forever
            raise FileNotFoundError("no such file")
        client = Client(**place, timeout=TIMEOUT)
    except (OSError, ValueError, TypeError) as error:
        said = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise InputError(
            f"no Dask scheduler answers at {address} ({said}): start one with `dask scheduler`, and give the address "
            "that it prints"
        ) from error
    with client:
        yield client
