"""The PUNCTUATION, PARENS_BRACKETS and DOUBLE_DASHES of nltk.tokenize.destructive, under the expressions they equal."""

from una_fast._kernels.words.characters cimport regex_digit, regex_space
from una_fast._kernels.words.rewriter cimport (
    APOSTROPHE, CLOSING_BRACKET, CLOSING_QUOTE, COMMA_COLON, DOT, DOUBLE_QUOTE, HYPHEN, OPENING_BRACKET, QUERY, SPACE,
    STAR, SYMBOL_DASH, Rewriter, at, copy, flip, holds, kind, pad, pad_repeats, put, put_spaced,
)

cdef enum:
    CLOSERS = CLOSING_BRACKET | DOUBLE_QUOTE | APOSTROPHE  # [\]\)}>"\']
    ALL_CLOSERS = CLOSERS | CLOSING_QUOTE | SPACE          # [\]\)}>"'»”’ ]
    UNLIMITED = 2147483647


cdef int punctuation(Rewriter text, unsigned int present) except -1 nogil:
    """Apply the rules whose characters are present, in order; neighbouring rules that only add spaces are one pass."""
    if present & DOT:
        final_period(text, ALL_CLOSERS, True)
    if present & COMMA_COLON:
        commas(text)
        last_comma(text)
    if present & DOT:
        pad_repeats(text, c'.', 2, UNLIMITED)
    if present & SYMBOL_DASH:
        pad(text, SYMBOL_DASH)
    if present & DOT:
        final_period(text, CLOSERS, False)
    if present & QUERY:
        pad(text, QUERY)
    if present & APOSTROPHE:
        closing_single_quotes(text)
    if present & (STAR | OPENING_BRACKET | CLOSING_BRACKET):
        pad(text, STAR | OPENING_BRACKET | CLOSING_BRACKET)
    if present & HYPHEN:
        pad_repeats(text, c'-', 2, 2)
    return 0


cdef bint is_closing(Rewriter text, Py_ssize_t i) except? -1 nogil:
    """Whether the final-period rules can look through character `i`."""
    return kind(text, i) & ALL_CLOSERS or regex_space(at(text, i))


cdef int final_period(Rewriter text, unsigned int closers, bint spaced) except -1 nogil:
    # ([^\.])(\.)([closers]*+)\s*$ -> "\1 \2 \3 " if spaced, else "\1 \2\3 "
    # Nothing that may follow the period is a period, so it is the last one of the text.
    cdef Py_ssize_t period = text.length - 1, stop
    while period > 0 and regex_space(at(text, period)):
        period -= 1
    while period > 0 and kind(text, period) & closers:
        period -= 1
    if period < 1 or at(text, period) != c'.' or at(text, period - 1) == c'.':
        return 0
    copy(text, 0, period)
    put(text, c' ')
    put(text, c'.')
    if spaced:
        put(text, c' ')
    stop = period + 1
    while stop < text.length and kind(text, stop) & closers:
        put(text, at(text, stop))
        stop += 1
    put(text, c' ')
    return flip(text)


cdef int commas(Rewriter text) except -1 nogil:
    # ([:,])([^\d]) -> " \1 \2"
    cdef Py_ssize_t i = 0
    while i < text.length:
        if kind(text, i) & COMMA_COLON and i + 1 < text.length and not regex_digit(at(text, i + 1)):
            put_spaced(text, at(text, i))
            i += 1
        put(text, at(text, i))
        i += 1
    return flip(text)


cdef int last_comma(Rewriter text) except -1 nogil:
    # ([:,])$ -> " \1 ", where $ also stands before a newline that ends the text
    cdef Py_ssize_t i = text.length - 1
    if i > 0 and at(text, i) == c'\n':
        i -= 1
    if i < 0 or not kind(text, i) & COMMA_COLON:
        return 0
    copy(text, 0, i)
    put_spaced(text, at(text, i))
    copy(text, i + 1, text.length)
    return flip(text)


cdef int closing_single_quotes(Rewriter text) except -1 nogil:
    # ([^'])'_ -> "\1 '_", _ being a space
    cdef Py_ssize_t i = 0
    while i < text.length:
        put(text, at(text, i))
        if at(text, i) != c"'" and holds(text, i + 1, c"'") and holds(text, i + 2, c' '):
            put_spaced(text, c"'")
            i += 2
        i += 1
    return flip(text)
