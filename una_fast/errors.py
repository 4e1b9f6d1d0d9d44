"""The error and the warning for a user's input: each message says what is wrong, where, and what to do."""


class InputError(ValueError):
    """Input that cannot be used. The commands print the message without a traceback and exit with code 2."""


class InputWarning(UserWarning):
    """Input that can be used, but probably is not what the user meant. The commands print the message on one line."""


def first_line(error: BaseException) -> str:
    """The first line of an exception's message, or the name of its type if it has none."""
    return next(iter(str(error).strip().splitlines()), type(error).__name__)


def counted(n: int, one: str) -> str:
    """A number with its noun: "1 line", "2,000 lines"."""
    return f"{n:,} {one}{'' if n == 1 else 's'}"
