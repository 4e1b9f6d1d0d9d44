"""The rules STARTING_QUOTES and ENDING_QUOTES of nltk.tokenize.destructive.

A comment at the top of a function gives the regular expression and the replacement that the function equals.
"""

from una_fast._kernels.words.characters cimport regex_space, regex_word
from una_fast._kernels.words.rewriter cimport (
    APOSTROPHE, BACKTICK, CLOSING_QUOTE, DOUBLE_QUOTE, OPENING_BRACKET, OPENING_QUOTE, SPACE, Rewriter, after, at, copy,
    flip, holds, kind, pad, pad_repeats, put,
)

cdef enum:
    UNLIMITED = 2147483647

cdef (const char*)[8] CLITICS = ["re", "ve", "ll", "m", "t", "s", "d", "n"]
cdef (const char*)[15] ENDINGS = ["'s", "'S", "'m", "'M", "'d", "'D", "'",
                                  "'ll", "'LL", "'re", "'RE", "'ve", "'VE", "n't", "N'T"]


cdef int starting_quotes(Rewriter text, unsigned int present) except -1 nogil:
    """Apply, in NLTK's order, the rules of STARTING_QUOTES whose characters are among `present`.

    present: the kinds of the characters of the original text, as bits.
    """
    if present & OPENING_QUOTE:
        pad(text, OPENING_QUOTE)
    if present & BACKTICK:
        pad_repeats(text, c'`', 1, UNLIMITED)
    if present & DOUBLE_QUOTE:
        first_double_quote(text)
    if present & (BACKTICK | DOUBLE_QUOTE):
        pad_repeats(text, c'`', 2, 2)
    if present & (APOSTROPHE | DOUBLE_QUOTE):
        opening_double_quotes(text)
    if present & APOSTROPHE:
        opening_single_quotes(text)
    return 0


cdef int first_double_quote(Rewriter text) except -1 nogil:
    # ^\" -> "``"
    if not holds(text, 0, c'"'):
        return 0
    put(text, c'`')
    put(text, c'`')
    copy(text, 1, text.length)
    return flip(text)


cdef int opening_double_quotes(Rewriter text) except -1 nogil:
    # ([ \(\[{<])(\"|\'{2}) -> "\1 `` "
    cdef Py_ssize_t i = 0, stop
    while i < text.length:
        stop = i + 1
        if kind(text, i) & (OPENING_BRACKET | SPACE):
            if holds(text, i + 1, c'"'):
                stop = i + 2
            elif holds(text, i + 1, c"'") and holds(text, i + 2, c"'"):
                stop = i + 3
        put(text, at(text, i))
        if stop > i + 1:
            put_quotes(text, c'`')
        i = stop
    return flip(text)


cdef int put_quotes(Rewriter text, unsigned int c) except -1 nogil:
    put(text, c' ')
    put(text, c)
    put(text, c)
    return put(text, c' ')


cdef int opening_single_quotes(Rewriter text) except -1 nogil:
    # (?i)(?<!\w)(\')(?!(?:re|ve|ll|m|t|s|d|n)\b)(?=\w) -> "\1 "
    cdef Py_ssize_t i
    for i in range(text.length):
        put(text, at(text, i))
        if at(text, i) == c"'" and i + 1 < text.length and regex_word(at(text, i + 1)):
            if not (i > 0 and regex_word(at(text, i - 1))) and not is_clitic(text, i + 1):
                put(text, c' ')
    return flip(text)


cdef bint is_clitic(Rewriter text, Py_ssize_t i) except? -1 nogil:
    # (?i)(?:re|ve|ll|m|t|s|d|n)\b
    cdef Py_ssize_t stop
    cdef const char* letters
    for letters in CLITICS:
        stop = after(text, i, letters)
        if stop and not (stop < text.length and regex_word(at(text, stop))):
            return True
    return False


cdef int ending_quotes(Rewriter text, unsigned int present) except -1 nogil:
    """Apply, in NLTK's order, the rules of ENDING_QUOTES whose characters are among `present`.

    present: the kinds of the characters of the original text, as bits.
    """
    if present & CLOSING_QUOTE:
        pad(text, CLOSING_QUOTE)
    if present & APOSTROPHE:
        pad_repeats(text, c"'", 2, 2)
    if present & DOUBLE_QUOTE:
        closing_double_quotes(text)
    collapse_spaces(text)
    if present & APOSTROPHE:
        split_endings(text, 0, 7)
        split_endings(text, 7, 15)
    return 0


cdef int closing_double_quotes(Rewriter text) except -1 nogil:
    # \" -> " '' "
    cdef Py_ssize_t i
    for i in range(text.length):
        if at(text, i) == c'"':
            put_quotes(text, c"'")
        else:
            put(text, at(text, i))
    return flip(text)


cdef int collapse_spaces(Rewriter text) except -1 nogil:
    # \s+ -> " "
    cdef Py_ssize_t i
    cdef bint inside = False
    for i in range(text.length):
        if not regex_space(at(text, i)):
            put(text, at(text, i))
            inside = False
        elif not inside:
            put(text, c' ')
            inside = True
    return flip(text)


cdef int split_endings(Rewriter text, int first, int stop) except -1 nogil:
    # ([^' ])('[sS]|'[mM]|'[dD]|')_ and ([^' ])('ll|'LL|'re|'RE|'ve|'VE|n't|N'T)_ -> "\1 \2_", where _ is a space
    cdef Py_ssize_t i = 0, n
    while i < text.length:
        put(text, at(text, i))
        n = 0 if kind(text, i) & (APOSTROPHE | SPACE) else ending_length(text, i + 1, first, stop)
        if n:
            put(text, c' ')
            copy(text, i + 1, i + 2 + n)
            i += n + 1
        i += 1
    return flip(text)


cdef Py_ssize_t ending_length(Rewriter text, Py_ssize_t i, int first, int stop) except -1 nogil:
    """The length of the member of ENDINGS[first:stop] that starts at `i` and precedes a space; 0 if there is none."""
    cdef Py_ssize_t n
    cdef int k
    for k in range(first, stop):
        n = 0
        while ENDINGS[k][n] and holds(text, i + n, ENDINGS[k][n]):
            n += 1
        if not ENDINGS[k][n] and holds(text, i + n, c' '):
            return n
    return 0
