"""The rules PUNCTUATION, PARENS_BRACKETS and DOUBLE_DASHES of nltk.tokenize.destructive.

A comment at the top of a function gives the regular expression and the replacement that the function equals.
"""

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
    """Apply, in NLTK's order, the rules whose characters are among `present`, the kinds in the original text as bits.

    Rules that follow each other and only put spaces around characters are applied in one pass over the text.
    """
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
    """Whether character `i` may stand between a final period and the end of the text: a closer, or white space."""
    return kind(text, i) & ALL_CLOSERS or regex_space(at(text, i))


cdef int final_period(Rewriter text, unsigned int closers, bint spaced) except -1 nogil:
    # ([^\.])(\.)([closers]*+)\s*$ -> "\1 \2 \3 " if spaced, else "\1 \2\3 "
    # No character that may follow the period is a period, so only the last period of the text can match.
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
    # ([:,])$ -> " \1 ", where $ also matches before a newline that ends the text
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
    # ([^'])'_ -> "\1 '_", where _ is a space
    cdef Py_ssize_t i = 0
    while i < text.length:
        put(text, at(text, i))
        if at(text, i) != c"'" and holds(text, i + 1, c"'") and holds(text, i + 2, c' '):
            put_spaced(text, c"'")
            i += 2
        i += 1
    return flip(text)
