"""What a user's input raises or warns of: the message says what is wrong, where, and what to do."""

from collections.abc import Iterator
from contextlib import contextmanager


class InputError(ValueError):
    """Input that cannot be used. Command lines print the message alone and leave with code 2."""


class InputWarning(UserWarning):
    """Input that can be used, but probably not as it was meant. Command lines print the message on one line."""


def counted(n: int, one: str, many: str = "") -> str:
    """A number with its noun: "1 line", "2,000 lines". many: the plural where it is not `one` and an s."""
    return f"{n:,} {one if n == 1 else many or one + 's'}"


@contextmanager
def memory_errors_as_sentences(work: str) -> Iterator[None]:
    """Raise InputError where memory runs out during `work`, as "building the index"."""
    try:
        yield
    except MemoryError as error:
        detail = f" ({error})" if str(error) else ""
        raise InputError(
            f"{work} needs more memory than there is{detail}: give a smaller corpus, or use a larger machine"
        ) from error
