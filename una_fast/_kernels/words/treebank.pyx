"""NLTK's word tokenizer (Treebank rules), rule by rule, on code points and without the GIL.

`apply_treebank` rewrites a text with the substitutions of nltk.tokenize.destructive, in their order; str.split then
cuts the rewritten text into words. A comment at the top of a function gives the regular expression and the replacement
that the function equals.
"""

import numpy as np

from cpython.unicode cimport PyUnicode_4BYTE_KIND, PyUnicode_FromKindAndData

from una_fast._kernels.words.characters cimport python_space, python_word, regex_digit, regex_space, regex_word

cdef enum:
    CLOSERS = CLOSING_BRACKET | DOUBLE_QUOTE | APOSTROPHE  # [\]\)}>"\']
    ALL_CLOSERS = CLOSERS | CLOSING_QUOTE | SPACE          # [\]\)}>"'»”’ ]
    UNLIMITED = 2147483647

cdef (const char*)[8] CLITICS = ["re", "ve", "ll", "m", "t", "s", "d", "n"]
cdef (const char*)[15] ENDINGS = ["'s", "'S", "'m", "'M", "'d", "'D", "'",
                                  "'ll", "'LL", "'re", "'RE", "'ve", "'VE", "n't", "N'T"]
cdef (const char*)[8] HEADS = ["can", "d", "gim", "gon", "got", "lem", "more", "wan"]
cdef (const char*)[8] TAILS = ["not", "'ye", "me", "na", "ta", "me", "'n", "na"]


def _kinds():
    kinds = np.zeros(LAST_KIND + 1, dtype=np.uint16)
    members = {
        APOSTROPHE: "'", DOUBLE_QUOTE: '"', BACKTICK: "`", OPENING_QUOTE: "«“‘„", CLOSING_QUOTE: "»”’", DOT: ".",
        COMMA_COLON: ":,", SYMBOL_DASH: ";@#$%&\u2012\u2013\u2014\u2015", QUERY: "?!", STAR: "*",
        OPENING_BRACKET: "([{<", CLOSING_BRACKET: ")]}>", HYPHEN: "-", SPACE: " ", CONTRACTED: "cdglmwCDGLMW",
    }
    for bit, characters in members.items():
        kinds[[ord(c) for c in characters]] = bit
    return kinds


KINDS = _kinds()


cdef class Rewriter:
    def __cinit__(self):
        self.rows = np.empty((2, 0), dtype=np.uint32)
        self.kinds = KINDS

    cdef int reserve(self, Py_ssize_t capacity) except -1:
        """Make room for texts of `capacity` code points. The text that was there is lost."""
        self.rows = np.empty((2, capacity), dtype=np.uint32)
        self.length = self.written = 0
        return 0


cdef int pad(Rewriter text, unsigned int kinds) except -1 nogil:
    # [...] -> " \g<0> ", where ... are the characters of `kinds`
    cdef Py_ssize_t i
    for i in range(text.length):
        if kind(text, i) & kinds:
            put_spaced(text, at(text, i))
        else:
            put(text, at(text, i))
    return flip(text)


cdef int pad_repeats(Rewriter text, unsigned int c, Py_ssize_t least, Py_ssize_t most) except -1 nogil:
    # c{least,most} -> " \g<0> "
    cdef Py_ssize_t i = 0, stop
    while i < text.length:
        stop = i
        while stop - i < most and holds(text, stop, c):
            stop += 1
        if stop - i >= least:
            put(text, c' ')
            copy(text, i, stop)
            put(text, c' ')
            i = stop
        else:
            put(text, at(text, i))
            i += 1
    return flip(text)


cdef inline unsigned int fold(unsigned int c) noexcept nogil:
    """The lower-case ASCII letter that `c` matches under (?i), both in `re` and in `regex`; else `c` itself."""
    if c'A' <= c <= c'Z':
        return c + 32
    if c == 0x130 or c == 0x131:  # İ and ı
        return c'i'
    return c's' if c == 0x17f else c  # ſ


cdef Py_ssize_t after(Rewriter text, Py_ssize_t i, const char* letters) except -1 nogil:
    """The place after `letters` if the text has them at `i`, in upper or lower case; else 0. letters: in lower case."""
    while letters[0]:
        if i >= text.length or fold(at(text, i)) != <unsigned char>letters[0]:
            return 0
        i += 1
        letters += 1
    return i


def treebank_words(str line):
    """The words of `line`, list[str]. `line` may hold any characters."""
    cdef Rewriter text = Rewriter()
    cdef Py_UCS4 c
    text.reserve(GROWTH * len(line) + EXTRA)
    for c in line:
        put(text, c)
    flip(text)
    apply_treebank(text)
    return PyUnicode_FromKindAndData(PyUnicode_4BYTE_KIND, &text.rows[text.current, 0], text.length).split()


cdef int apply_treebank(Rewriter text) except -1 nogil:
    """Rewrite `text` by all rules but those whose characters the text lacks.

    The rows of `text` have room for GROWTH times its length + EXTRA.
    """
    cdef unsigned int present = 0
    cdef Py_ssize_t i
    for i in range(text.length):
        present |= kind(text, i)
    starting_quotes(text, present)
    punctuation(text, present)
    surround(text)
    ending_quotes(text, present)
    if present & CONTRACTED:
        contractions(text)
    if present & APOSTROPHE:
        contraction_of_it(text, b"is")
        contraction_of_it(text, b"was")
    return 0


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


cdef int surround(Rewriter text) except -1 nogil:
    put(text, c' ')
    copy(text, 0, text.length)
    put(text, c' ')
    return flip(text)


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


cdef int contractions(Rewriter text) except -1 nogil:
    # (?i)\b(head)(tail)\b -> " \1 \2 " for the eight pairs; the last ends with (?=\s) in place of \b
    # One pass applies all eight rules: a match has word boundaries on both sides, so no two matches overlap, and the
    # spaces that a rule adds move no word boundary.
    cdef Py_ssize_t i = 0, middle = 0, stop = 0
    while i < text.length:
        if kind(text, i) & CONTRACTED and not word_at(text, i - 1) and contracted(text, i, &middle, &stop):
            put_halves(text, i, middle, stop)
            i = stop
        else:
            put(text, at(text, i))
            i += 1
    return flip(text)


cdef bint contracted(Rewriter text, Py_ssize_t i, Py_ssize_t* middle, Py_ssize_t* stop) except? -1 nogil:
    """Whether a contraction starts at `i`, the start of a word.

    Sets `middle` to the place where the tail of the contraction starts, and `stop` to the place after its end.
    """
    cdef int k
    for k in range(8):
        middle[0] = after(text, i, HEADS[k])
        stop[0] = after(text, middle[0], TAILS[k]) if middle[0] else 0
        if stop[0] and not word_at(text, stop[0]):
            return k < 7 or (stop[0] < text.length and python_space(at(text, stop[0])))
    return False


cdef int contraction_of_it(Rewriter text, const char* tail) except -1 nogil:
    # (?i) ('t)(tail)\b -> " \1 \2 "
    cdef Py_ssize_t i = 0, middle, stop
    while i < text.length:
        middle = after(text, i, b" 't")
        stop = after(text, middle, tail) if middle else 0
        if stop and not word_at(text, stop):
            put_halves(text, i + 1, middle, stop)
            i = stop
        else:
            put(text, at(text, i))
            i += 1
    return flip(text)


cdef bint word_at(Rewriter text, Py_ssize_t i) except? -1 nogil:
    """Whether the text has a character `i` that matches the \\w of Python's `re`."""
    return 0 <= i < text.length and python_word(at(text, i))


cdef int put_halves(Rewriter text, Py_ssize_t start, Py_ssize_t middle, Py_ssize_t stop) except -1 nogil:
    put(text, c' ')
    copy(text, start, middle)
    put(text, c' ')
    copy(text, middle, stop)
    return put(text, c' ')


cdef int put_utf8(Rewriter text, const unsigned char[::1] utf8, Py_ssize_t start, Py_ssize_t stop) except -1 nogil:
    """Write the code points of utf8[start:stop], which is valid UTF-8."""
    cdef Py_ssize_t i = start
    cdef unsigned int byte, c
    cdef int n_more
    while i < stop:
        byte = utf8[i]
        n_more = (byte >= 0xc0) + (byte >= 0xe0) + (byte >= 0xf0)
        c = byte & (0x3f >> n_more) if n_more else byte
        i += 1
        while n_more:
            c = c << 6 | (utf8[i] & 0x3f)
            i += 1
            n_more -= 1
        put(text, c)
    return 0


cdef Py_ssize_t write_utf8(unsigned int c, unsigned char[::1] out, Py_ssize_t place) except -1 nogil:
    """Write the code point `c` as UTF-8 from out[place] on; returns the place after its last byte."""
    cdef int shift = 0 if c < 0x80 else 6 if c < 0x800 else 12 if c < 0x10000 else 18
    out[place] = c >> shift | (0 if shift == 0 else 0xc0 if shift == 6 else 0xe0 if shift == 12 else 0xf0)
    while shift:
        place += 1
        shift -= 6
        out[place] = 0x80 | (c >> shift & 0x3f)
    return place + 1
