"""The one error that a user's input raises: its message says what is wrong, where, and what to do."""


class InputError(ValueError):
    """Input that cannot be used. Command lines print the message alone and leave with code 2."""
