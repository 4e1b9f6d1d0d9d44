"""What a user's input raises or warns of: the message says what is wrong, where, and what to do."""


class InputError(ValueError):
    """Input that cannot be used. Command lines print the message alone and leave with code 2."""


class InputWarning(UserWarning):
    """Input that can be used, but probably not as it was meant. Command lines print the message on one line."""
