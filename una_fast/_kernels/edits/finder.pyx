"""Finds the edits of texts that change their meaning: of polarity, and of numbers. Nothing here is random.

A text pays for the words that can change: all others get the id -1, and no Python object is made of them.
"""

from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t

import numpy as np

from una_fast._kernels.edits.numbers cimport (
    ANY, LONGEST, Limits, date_end, digits_at, has_minutes, is_address, is_always, is_decade, is_hour, is_ordinal,
    is_percent, near_numbers, range_limits, value_of,
)
from una_fast._kernels.edits.words cimport (
    FOLLOWS, IN_QUESTION, IS_JOINED, IS_NUMBER, LEADS, Lexicon, Word, Words,
)

from una_fast._kernels.edits.numbers import ordinal

cdef enum:
    # properties of the words of the lexicon
    NEGATIVE = 1 << 0
    SUBJECT = 1 << 1
    BEFORE_INFINITIVE = 1 << 2
    DETERMINER = 1 << 3
    QUESTION_WORD = 1 << 4
    WHY = 1 << 5
    WHETHER = 1 << 6
    PARTICIPLE = 1 << 7
    MONTH = 1 << 8
    COMMAND = 1 << 9
    ARTICLE = 1 << 10
    CAPITALISED = 1 << 11  # a name of a day or a German noun, so a capital inside a sentence makes no name
    OF_CLASS = 1 << 12     # a number, ordinal, month, day or unit
    UNIT = 1 << 13         # can be written right after digits
    HAVE = 1 << 14
    DO = 1 << 15
    LAST_DAY = 1 << 17     # of some months only, so a month next to it stays
    OF_IT = 1 << 16        # an auxiliary with its subject, such as "it's"

cdef enum:  # which rule finds the edits of a word
    NONE
    OPPOSITE
    AFFIRMED
    AUXILIARY
    NEGATION
    INFINITIVE

cdef enum:  # in the order of GUARDS
    NOT_NEAR
    ONLY_AFTER
    RIGHT_AFTER
    ONLY_BEFORE
    NOT_AFTER
    NOT_BEFORE
    N_GUARDS

cdef enum:
    REACH = 3  # how many words before a word [only after] checks
    NEAR = 8   # how many words before and after a word [not near] checks
    CLAUSE = 8  # how many words before a word can begin the clause that it is in
    NEAR_DECADES = 5
    LAST_SAFE_DAY = 28  # every month has it
    MOST_KEPT = 1 << 26  # bytes of the lists of options that a finder keeps, about
    BYTES_PER_LIST = 400  # with its key
    BYTES_PER_TEXT = 110  # with its place in `distinct`, without its characters
    FEW_WORDS = 1 << 12  # a buffer for more words is not kept

cdef enum:  # in the order of RULES
    AN_OPPOSITE
    REMOVED
    INSERTED
    OF_INFINITIVE
    OF_COMMAND
    SAME_KIND
    ANOTHER_NUMBER

RULES = (
    "an opposite", "a negation is removed", "a negation is inserted", "an infinitive is negated",
    "a command is negated", "a word of the same kind", "another number",
)
ROLES = {
    "opposite": OPPOSITE, "affirmed": AFFIRMED, "auxiliary": AUXILIARY, "negation": NEGATION, "infinitive": INFINITIVE
}
SECTIONS = {
    "subjects": SUBJECT, "before infinitives": BEFORE_INFINITIVE, "determiners": DETERMINER,
    "question words": QUESTION_WORD, "why": WHY, "whether": WHETHER, "participles": PARTICIPLE, "months": MONTH,
    "commands": COMMAND,
}
GUARDS = "not near", "only after", "right after", "only before", "not after", "not before"
NUMBER, END = "#", "."  # in guards: any number in digits, and the start or the end of the text
LAST_DAYS = "29", "30", "31"
AFTER_DIGITS = "st nd rd th s am pm a p".split()  # "1990s", "9a.m."
cdef tuple OF_NOTHING = ("",)


cdef class Options:
    """The replacements that an edit can draw, all different from the old text."""

    cdef readonly tuple texts
    cdef frozenset distinct
    cdef int64_t batch  # the batch that gave it `number`
    cdef int32_t number

    def __init__(self, tuple texts):
        self.texts = texts


cdef int64_t n_batches = 0  # that were made; options refer to a batch by its number, so that they keep none alive


cdef class FoundBatch:
    """The edits of texts, in the order in which they were found: those of the first kind of the first text, ...

    lists: the distinct lists of options, in the order of their numbers.
    """

    cdef dict known  # the number of each list of options
    cdef readonly list lists
    cdef int64_t batch
    cdef int32_t[:, ::1] edits
    cdef int64_t[::1] ends
    cdef Py_ssize_t n_edits, n_kinds

    def __init__(self):
        global n_batches
        n_batches += 1
        self.batch, self.known, self.lists = n_batches, {}, []
        self.edits, self.ends = np.empty((256, 4), dtype=np.int32), np.empty(128, dtype=np.int64)

    @property
    def table(self):
        """Where each edit starts and stops, its list of options, and the number of its rule: int32 (n_edits, 4)."""
        return np.asarray(self.edits)[: self.n_edits]

    @property
    def bounds(self):
        """Where the edits of each kind of each text end: int64 (n_kinds,)."""
        return np.asarray(self.ends)[: self.n_kinds]

    cdef int put(self, Py_ssize_t start, Py_ssize_t stop, Options options, int rule) except -1:
        cdef int32_t* edit
        cdef int32_t of
        if options.batch != self.batch:
            number = self.known.get(options.texts)
            if number is None:
                number = self.known[options.texts] = len(self.lists)
                self.lists.append(options.texts)
            options.number, options.batch = number, self.batch
        of = options.number  # before the GIL is released below, where another thread can number the same options
        if self.n_edits == self.edits.shape[0]:
            self.edits = np.concatenate([self.edits, np.empty_like(self.edits)])
        edit = &self.edits[self.n_edits, 0]
        edit[0], edit[1], edit[2], edit[3] = <int32_t>start, <int32_t>stop, of, rule
        self.n_edits += 1
        return 0

    cdef int end_kind(self) except -1:
        if self.n_kinds == self.ends.shape[0]:
            self.ends = np.concatenate([self.ends, np.empty_like(self.ends)])
        self.ends[self.n_kinds] = self.n_edits
        self.n_kinds += 1
        return 0

    def add(self, edits):
        """Add the edits of one kind. edits: (start, stop, options, why)."""
        for start, stop, options, _ in edits:
            self.put(start, stop, Options(tuple(options)), 0)
        self.end_kind()

    def to_bytes(self, str text, Py_ssize_t n_kinds):
        """Turn the places of the last `n_kinds` kinds, which are in characters of `text`, into places in its UTF-8."""
        cdef Py_ssize_t k, i, first = self.n_kinds - n_kinds, p = 0, place = 0
        if text.isascii():
            return
        for k in range(self.ends[first - 1] if first else 0, self.n_edits):
            for i in range(2):
                while p < self.edits[k, i]:
                    place += size_of(text[p])
                    p += 1
                while p > self.edits[k, i]:
                    p -= 1
                    place -= size_of(text[p])
                self.edits[k, i] = <int32_t>place


cdef inline int size_of(Py_UCS4 c) noexcept:
    return 1 + (c >= 0x80) + (c >= 0x800) + (c >= 0x10000)


cdef class EditFinder:
    """Finds edits by word lists. Threads may share one object. lists: a `WordLists`."""

    cdef Lexicon lexicon
    cdef object lists
    cdef dict kept
    cdef int64_t n_bytes  # of `kept`
    cdef list spare, opposites, classes, negated, affirmed, phrases, written
    cdef uint32_t[::1] properties
    cdef uint8_t[::1] roles
    cdef int32_t[:, ::1] guards
    cdef int32_t[::1] guard_values, opposite_ids, class_ids
    cdef int64_t[::1] guard_bounds, opposite_bounds, class_bounds
    cdef int32_t number, end
    cdef bint has_articles
    cdef str negation

    def __init__(self, lists):
        self.lists, self.kept, self.spare, self.negation = lists, {}, [], lists.negation
        self.has_articles = bool(lists.words["a or an"])
        words = [NUMBER, END, "a", "an", "do", *AFTER_DIGITS, *LAST_DAYS]
        words += [*lists.roles, *lists.negative, *lists.capitalised]
        for others in (lists.opposites, lists.classes):
            words += [word for key, found in others.items() for word in (key, *found)]
        for found in (*map(lists.words.get, SECTIONS), *lists.negations, lists.guards):
            words += found
        sets = [(word, name, near) for word, guard in lists.guards.items() for name, near in guard.items()]
        words += [word for *_, near in sets for word in near]
        self.lexicon = Lexicon(words)
        ids, self.written = self.lexicon.ids, [*self.lexicon.ids]
        self.number, self.end = ids[NUMBER], ids[END]
        self.opposites, self.classes, self.negated, self.affirmed = (
            [others.get(word) for word in ids]
            for others in (lists.opposites, lists.classes, lists.negated, lists.affirmed)
        )
        self.opposite_ids, self.opposite_bounds = self.ids_of(self.opposites)
        self.class_ids, self.class_bounds = self.ids_of(self.classes)
        self.roles = np.array([ROLES.get(lists.roles.get(word), NONE) for word in ids], dtype=np.uint8)
        self.phrases = [[ids[word] for word in phrase] for phrase in lists.negations]
        self.guards = np.full((len(ids), N_GUARDS), -1, dtype=np.int32)
        for k, (word, name, _) in enumerate(sets):
            self.guards[<int32_t>ids[word], <int32_t>GUARDS.index(name)] = k
        self.guard_values, self.guard_bounds = self.ids_of([sorted(near, key=ids.get) for *_, near in sets])
        self.properties = np.array([self.properties_of(word) for word in ids], dtype=np.uint32)

    def ids_of(self, rows):
        """Return the ids of the words in `rows`, which may be None, as values and bounds."""
        ids, rows = self.lexicon.ids, [row or () for row in rows]
        values = np.array([ids[word] for row in rows for word in row], dtype=np.int32)
        return values, np.cumsum([0, *map(len, rows)], dtype=np.int64)

    def properties_of(self, str word):
        lists = self.lists
        found = sum(bit for name, bit in SECTIONS.items() if word in lists.words[name])
        by_set = {
            NEGATIVE: lists.negative, ARTICLE: ("a", "an"), CAPITALISED: lists.capitalised, OF_CLASS: lists.classes,
            UNIT: (*lists.classes, *AFTER_DIGITS), HAVE: ("has", "have", "had"), DO: ("do", "does", "did"),
            LAST_DAY: LAST_DAYS,
        }
        found += sum(bit for bit, words in by_set.items() if word in words)
        return found + OF_IT * (lists.roles.get(word) == "auxiliary" and "'" in word)

    def find(self, str text, FoundBatch found, set cuts=None):
        """Add the edits of `text` to `found`: those of polarity, then those of numbers. Places are in characters.

        cuts: where a word tokenizer divides words of `text`, or None.
        """
        cdef Words words = self.read(text, cuts)
        self.find_polarity(words, found)
        found.end_kind()
        self.find_numbers(words, found)
        found.end_kind()
        self.give_back(words)

    def words(self, str text, set cuts=None):
        """Return the words of `text` in lower case, and where each one starts and stops in characters."""
        cdef Py_ssize_t i
        cdef Words words = self.read(text, cuts)
        found = [words.lowered(i) for i in range(words.n)]
        places = [(words.words[i].start, words.words[i].stop) for i in range(words.n)]
        self.give_back(words)
        return found, places

    def number_words(self, str text):
        """Return the distinct words of `text` that are numbers, in digits or as a word of a class, in lower case."""
        cdef Py_ssize_t i
        cdef Word* word
        cdef Words words = self.read(text, None)
        found = set()
        for i in range(words.n):
            word = &words.words[i]
            if word.flags & IS_NUMBER or (self.has(word, OF_CLASS) and self.allows(words, i, word.id)):
                found.add(words.lowered(i))
        self.give_back(words)
        return found

    cdef Words read(self, str text, set cuts):
        """Return the words of a text, in a buffer that no other thread uses."""
        cdef Words words = self.spare.pop() if self.spare else Words(self.lexicon)
        words.read(text, cuts)
        return words

    cdef int give_back(self, Words words) except -1:
        words.text = ""
        if words.room <= FEW_WORDS:
            self.spare.append(words)
        return 0

    cdef inline bint has(self, Word* word, uint32_t property) noexcept:
        return word.id >= 0 and self.properties[word.id] & property

    cdef bint has_any(self, Words words, Py_ssize_t start, Py_ssize_t stop, uint32_t property) noexcept:
        """Return whether one of the words start .. stop - 1 that exist has a property."""
        cdef Py_ssize_t i
        for i in range(max(start, 0), min(stop, words.n)):
            if self.has(&words.words[i], property):
                return True
        return False

    cdef inline bint follows(self, Words words, Py_ssize_t i) noexcept:
        """Return whether words i - 1 and i exist, and at most white space separates them."""
        return i < words.n and words.words[i].flags & FOLLOWS

    cdef bint among(self, int32_t guard, int32_t id) noexcept:
        """Return whether a guard contains a word."""
        cdef int64_t low = self.guard_bounds[guard], high = self.guard_bounds[guard + 1], middle
        while low < high:
            middle = (low + high) // 2
            if self.guard_values[middle] < id:
                low = middle + 1
            else:
                high = middle
        return low < self.guard_bounds[guard + 1] and self.guard_values[low] == id

    cdef bint any_among(self, int32_t guard, Words words, Py_ssize_t start, Py_ssize_t stop) noexcept:
        cdef Py_ssize_t i
        for i in range(max(start, 0), min(stop, words.n)):
            if words.words[i].id >= 0 and self.among(guard, words.words[i].id):
                return True
        return False

    cdef int32_t neighbour(self, Words words, Py_ssize_t i) noexcept:
        """Return the id by which guards know word i, if it is a number or the end of the text too."""
        if not 0 <= i < words.n:
            return self.end
        return self.number if words.words[i].flags & IS_NUMBER else words.words[i].id

    cdef bint allows(self, Words words, Py_ssize_t i, int32_t id) noexcept:
        """Return whether the words near word i allow a change: "up" may change only after a word such as "turn".

        id: the word that is checked as word i.
        """
        cdef int32_t* guard
        cdef int32_t before, after
        if id < 0:
            return True
        guard = &self.guards[id, 0]
        before, after = self.neighbour(words, i - 1), self.neighbour(words, i + 1)
        if guard[NOT_AFTER] >= 0 and self.among(guard[NOT_AFTER], before):
            return False
        if guard[NOT_BEFORE] >= 0 and self.among(guard[NOT_BEFORE], after):
            return False
        if guard[NOT_NEAR] >= 0 and self.any_among(guard[NOT_NEAR], words, i - NEAR, i + NEAR + 1):
            return False
        if guard[RIGHT_AFTER] >= 0 and not self.among(guard[RIGHT_AFTER], before):
            return False
        if guard[ONLY_AFTER] >= 0:
            if self.among(guard[ONLY_AFTER], before) or self.any_among(guard[ONLY_AFTER], words, i - REACH, i):
                return True
            return guard[ONLY_BEFORE] >= 0 and self.among(guard[ONLY_BEFORE], after)
        return guard[ONLY_BEFORE] < 0 or self.among(guard[ONLY_BEFORE], after)

    cdef bint is_name(self, Words words, Py_ssize_t i) noexcept:
        """Return whether word i is probably a name: capitalised inside a sentence that is not in title case."""
        cdef Word* word = &words.words[i]
        if word.first == i or not words.is_title(word.start, word.stop) or self.has(word, CAPITALISED):
            return False
        return not words.has_title_case()

    cdef int replace(self, FoundBatch found, Words words, Py_ssize_t i, Py_ssize_t n, tuple new, int rule) except -1:
        """Add the edit in which one of the texts `new` replaces the n words that start at word i.

        Each text gets the old words' capitalisation, and the article before it agrees: "an old" becomes "a new".
        Nothing is added if every text then equals the old words.
        """
        cdef Py_ssize_t start = words.words[i].start, stop = words.words[i + n - 1].stop
        cdef Options options
        old = words.text[start:stop]
        options = self.kept.get((old, new))
        if options is None:
            options = self.keep((old, new), tuple([
                text for text in dict.fromkeys([like(old, option) for option in new]) if text != old
            ]))
        if options.texts:
            self.put_with_article(found, words, start, stop, options, rule, i)
        return 0

    cdef int put_with_article(self, FoundBatch found, Words words, Py_ssize_t start, Py_ssize_t stop, Options new,
                              int rule, Py_ssize_t i) except -1:
        """Add the edit that replaces ``text[start:stop]``, which word i begins with. The article before it agrees."""
        cdef Word* before
        cdef Options options
        if self.has_articles and self.follows(words, i) and self.has(&words.words[i - 1], ARTICLE):
            before = &words.words[i - 1]
            article, gap = words.written(i - 1), words.text[before.stop : start]
            options = self.kept.get((article, gap, new.texts))
            if options is None:
                options = self.keep((article, gap, new.texts), tuple([
                    f"{like(article, self.lists.article(option))}{gap}{option}" for option in new.texts
                ]))
            new, start = options, before.start
        found.put(start, stop, new, rule)
        return 0

    cdef Options keep(self, tuple key, tuple texts):
        """Keep a list of options by a key that is looked up faster than it is made."""
        cdef int64_t n_bytes = BYTES_PER_LIST
        for text in texts:
            n_bytes += BYTES_PER_TEXT + len(<str>text)
        if self.n_bytes + n_bytes > MOST_KEPT:
            self.kept.clear()
            self.n_bytes = 0
        self.n_bytes += n_bytes
        cdef Options options = Options(texts)
        self.kept[key] = options
        return options

    cdef int find_polarity(self, Words words, FoundBatch found) except -1:
        cdef Py_ssize_t i
        cdef Word* word
        cdef int role
        self.mark_leading(words)
        self.negate_command(found, words)
        for i in range(words.n):
            word = &words.words[i]
            role = NONE if word.id < 0 else self.roles[word.id]
            if role == NONE or word.flags & IS_JOINED or not self.allows(words, i, self.neighbour(words, i)):
                continue
            if role == OPPOSITE:
                self.replace_opposite(found, words, i)
            elif role == AFFIRMED:
                self.affirm(found, words, i)
            elif role == AUXILIARY:
                self.negate(found, words, i)
            elif role == NEGATION:
                self.remove(found, words, i)
            else:
                self.negate_infinitive(found, words, i)
        return 0

    cdef int mark_leading(self, Words words) noexcept:
        """Flag the auxiliaries that lead a question, as in "What does it do" and "Is it good"."""
        cdef Py_ssize_t i, last = -1, first
        cdef Word* word
        cdef int role
        for i in range(words.n):
            word = &words.words[i]
            role = NONE if word.id < 0 else self.roles[word.id]
            if word.first != last and (role == AUXILIARY or role == AFFIRMED):
                first = last = word.first
                if (
                    word.flags & IN_QUESTION
                    or (i == first and not self.has(word, OF_IT))
                    or (i == first + 1 and self.has(&words.words[first], QUESTION_WORD))
                ):
                    word.flags |= LEADS
        return 0

    cdef bint keeps_question(self, Words words, Py_ssize_t i) noexcept:
        """Return whether a negation of word i, an auxiliary, asks the same: "Is it?" and "Isn't it?" do."""
        cdef Py_ssize_t first = words.words[i].first
        if not words.words[i].flags & LEADS:
            return False
        return not (
            self.has_any(words, first, min(first + 1, i), WHY) or self.has_any(words, max(first, i - 1), i, WHY)
        )

    cdef bint reports(self, Words words, Py_ssize_t i) noexcept:
        """Return whether word i is in a clause that asks the same with a negation: "how do I know that it is on"."""
        return self.has_any(words, max(words.words[i].first, i - CLAUSE), i, WHETHER)

    cdef int replace_opposite(self, FoundBatch found, Words words, Py_ssize_t i) except -1:
        cdef int32_t id = words.words[i].id
        cdef int64_t k, first = self.opposite_bounds[id], stop = self.opposite_bounds[id + 1]
        cdef bint all_fit = True
        if self.is_name(words, i) or self.reports(words, i) or words.at(words.words[i].stop) == c'-':  # "new-comers"
            return 0
        for k in range(first, stop):
            if words.occurs(self.opposite_ids[k]):  # as in "good or bad"
                return 0
            all_fit &= self.allows(words, i, self.opposite_ids[k])
        new = <tuple>self.opposites[id]
        if not all_fit:
            new = tuple([new[k - first] for k in range(first, stop) if self.allows(words, i, self.opposite_ids[k])])
        return self.replace(found, words, i, 1, new, AN_OPPOSITE)

    cdef int affirm(self, FoundBatch found, Words words, Py_ssize_t i) except -1:
        """Add the edit that removes the negation in word i: "isn't" -> "is", and "Don't go" -> "Go"."""
        cdef Word* word = &words.words[i]
        affirmed = self.affirmed[word.id]
        if i == word.first and affirmed == "do" and self.follows(words, i + 1):
            if not (self.has(&words.words[i + 1], SUBJECT) or word.flags & IN_QUESTION):
                self.replace(found, words, i, 2, (like(words.written(i), words.written(i + 1)),), REMOVED)
        elif not self.keeps_question(words, i):
            self.replace(found, words, i, 1, (affirmed,), REMOVED)
        return 0

    cdef int remove(self, FoundBatch found, Words words, Py_ssize_t i) except -1:
        """Add the edit that removes the negation that starts at word i: "is not true" -> "is true"."""
        cdef Py_ssize_t n = self.phrase_at(words, i), first = words.words[i].first
        cdef Options options
        if n and self.follows(words, i) and not (words.words[first].flags & LEADS and i <= first + 3):
            options = self.kept.get(OF_NOTHING) or self.keep(OF_NOTHING, OF_NOTHING)
            found.put(words.words[i - 1].stop, words.words[i + n - 1].stop, options, REMOVED)  # "Is he not here?" stays
        return 0

    cdef Py_ssize_t phrase_at(self, Words words, Py_ssize_t i) except -1:
        """Return how many words the longest negation at word i has, or 0 if there is none."""
        cdef Py_ssize_t k
        for phrase in self.phrases:
            if i + len(phrase) <= words.n:
                for k in range(len(phrase)):
                    if words.words[i + k].id != <int32_t>phrase[k]:
                        break
                else:
                    return len(phrase)
        return 0

    cdef int negate(self, FoundBatch found, Words words, Py_ssize_t i) except -1:
        """Add the edit that negates word i, an auxiliary: "is" -> "isn't" or "is not"; "is it" -> "is it not"."""
        cdef Word* word = &words.words[i]
        cdef Word* following = word + 1
        cdef Word* verb
        cdef bint is_inverted, leads = word.flags & LEADS
        if (
            not self.follows(words, i + 1)
            or self.keeps_question(words, i)
            or self.has_any(words, i - 3, i + 4, NEGATIVE)
            or self.reports(words, i)
        ):
            return 0
        is_inverted = self.has(following, SUBJECT)
        if is_inverted and not leads:
            return 0
        if self.has(word, HAVE):  # only before a participle are these words auxiliaries
            verb = following + 1 if is_inverted and i + 2 < words.n else following
            if not (self.has(verb, PARTICIPLE) or is_participle(words, verb)):
                return 0
        if self.has(word, DO) and not leads and self.has(following, DETERMINER):
            return 0  # as in "it does its work"
        old, form = <str>self.written[word.id], <str>self.negated[word.id]
        if is_inverted:
            subject = words.written(i + 1)
            return self.replace(
                found, words, i, 2, (f"{old} {subject} {self.negation}", f"{form} {subject}"), INSERTED
            )
        if leads or self.has(following, DETERMINER) or not words.is_lower(following.start, following.stop):
            return self.replace(found, words, i, 1, (form,), INSERTED)
        return self.replace(found, words, i, 1, (form, f"{old} {self.negation}"), INSERTED)

    cdef int negate_infinitive(self, FoundBatch found, Words words, Py_ssize_t i) except -1:
        """Add the edit that negates the infinitive whose "to" is word i: "to go" -> "to not go"."""
        cdef Word* following = &words.words[i] + 1
        if (
            self.follows(words, i)
            and self.follows(words, i + 1)
            and words.is_lower(following.start, following.stop)
            and self.has(&words.words[i - 1], BEFORE_INFINITIVE)
            and not self.has(following, DETERMINER)
            and not self.has_any(words, i - 4, i + 2, NEGATIVE)
        ):
            self.replace(found, words, i, 1, (f"to {self.negation}",), OF_INFINITIVE)
        return 0

    cdef int negate_command(self, FoundBatch found, Words words) except -1:
        """Add the edit that negates a command: "open it" -> "don't open it" or "do not open it"."""
        cdef Word* word = words.words
        if not self.follows(words, 1) or not self.has(word, COMMAND) or word.flags & IN_QUESTION:
            return 0
        if words.is_title(word[1].start, word[1].stop):  # as in "Show Business"
            return 0
        first, negated = self.written[word.id], self.negated[self.lexicon.ids["do"]]
        if negated is not None:
            self.replace(found, words, 0, 1, (f"{negated} {first}", f"do {self.negation} {first}"), OF_COMMAND)
        return 0

    cdef int find_numbers(self, Words words, FoundBatch found) except -1:
        cdef Py_ssize_t i
        cdef _Numbers numbers
        for i in range(words.n):
            if self.has(&words.words[i], OF_CLASS):
                self.replace_of_class(found, words, i)
        if words.n_numbers:
            numbers = _Numbers(self, words, found)
            for i in range(words.n):
                if words.words[i].flags & IS_NUMBER:
                    numbers.replace_number(i)
        return 0

    cdef int replace_of_class(self, FoundBatch found, Words words, Py_ssize_t i) except -1:
        """Add the edit that replaces word i, the name of a number, ordinal, month, day or unit."""
        cdef Word* word = &words.words[i]
        cdef Word* before = word - 1
        cdef int64_t k, first = self.class_bounds[word.id], stop = self.class_bounds[word.id + 1]
        cdef bint occurs = False
        if not self.allows(words, i, self.neighbour(words, i)) or self.is_name(words, i):
            return 0
        if self.has(word, MONTH):
            if self.has_any(words, i - 1, i, LAST_DAY) or self.has_any(words, i + 1, i + 2, LAST_DAY):
                return 0
        if i and self.has(before, OF_CLASS) and word.start - before.stop == 1 and words.at(before.stop) == c'-':
            return 0  # as in "twenty-two"
        for k in range(first, stop):
            occurs |= words.occurs(self.class_ids[k])
        others = <tuple>self.classes[word.id]
        if occurs:
            others = tuple([others[k - first] for k in range(first, stop) if not words.occurs(self.class_ids[k])])
        return self.replace(found, words, i, 1, others, SAME_KIND)


cdef class _Numbers:
    """Finds the edits of the numbers in digits of one text, from left to right."""

    cdef EditFinder finder
    cdef Words words
    cdef FoundBatch found
    cdef set numbers, repeated  # the distinct numbers if there are several, and those that occur more than once
    cdef Py_ssize_t date_start, date_stop  # the last date that was read
    cdef Py_ssize_t chunk_stop  # of the text between spaces that was read last
    cdef bint in_address  # whether it is an address

    def __init__(self, EditFinder finder, Words words, FoundBatch found):
        cdef Py_ssize_t i
        self.finder, self.words, self.found = finder, words, found
        self.numbers, self.repeated = set(), set()
        if words.n_numbers > 1:
            for i in range(words.n):
                if words.words[i].flags & IS_NUMBER:
                    number = words.written(i)
                    (self.repeated if number in self.numbers else self.numbers).add(number)

    cdef int replace_number(self, Py_ssize_t i) except -1:
        """Add the edits of word i, a number. The date 24.12.2025 gets three edits, one per part."""
        cdef Words words = self.words
        cdef Word* word = &words.words[i]
        cdef Py_ssize_t p, n = 0, start, last = word.start, size = 0
        cdef Py_UCS4 mark = 0
        cdef bint is_grouped = True, was_grouped = True
        if self.is_part_of_name(i) or self.is_in_address(word.start):
            return 0
        for p in range(max(0, word.start - 3), word.start + 1):
            if is_always(words, p):
                return 0
        # "Road 404 (Rv404)", "3 of 4"
        if self.repeated and words.written(i) in self.repeated:
            return 0
        if not self.finder.allows(words, i, self.finder.number):
            return 0
        # 1,000.50 has the groups 1, 000 and 50. It is grouped up to a place if all groups before it but the first
        # have three digits, with the same mark between them.
        start = word.start
        for p in range(start, word.stop + 1):
            if p == word.stop or not words.is_digit(p):
                size, n, was_grouped, last = p - start, n + 1, is_grouped, start
                if n == 1:
                    is_grouped = size <= 3
                else:
                    mark = words.at(start - 1) if n == 2 else mark
                    is_grouped = is_grouped and size == 3 and words.at(start - 1) == mark
                start = p + 1
        if n < 3 or is_grouped:
            return self.replace_digits(i, word.start, word.stop)
        if was_grouped:
            return self.replace_digits(i, word.start, last - 1)
        start = word.start
        for p in range(start, word.stop + 1):
            if p == word.stop or not words.is_digit(p):
                self.replace_digits(i, start, p)
                start = p + 1
        return 0

    cdef bint is_part_of_name(self, Py_ssize_t i) except -1:
        """Return whether a letter that is no unit is right beside word i, a number: "mp3", "3D", "'99"."""
        cdef Words words = self.words
        cdef Word* word = &words.words[i]
        cdef Py_UCS4 before = words.at(word.start - 1)
        if has_case(before) or before == c"'" or before == 0x2019:  # an apostrophe is before a short year
            return True
        return has_case(words.at(word.stop)) and not (i + 1 < words.n and self.finder.has(word + 1, UNIT))

    cdef bint is_in_address(self, Py_ssize_t p) noexcept:
        cdef Words words = self.words
        cdef Py_ssize_t start = p
        if p >= self.chunk_stop:
            while start > self.chunk_stop and not words.is_space(start - 1):
                start -= 1
            self.chunk_stop = p
            while self.chunk_stop < words.n_characters and not words.is_space(self.chunk_stop):
                self.chunk_stop += 1
            self.in_address = is_address(words, start, self.chunk_stop)
        return self.in_address

    cdef bint is_in_date(self, Py_ssize_t p) noexcept:
        cdef Py_ssize_t start
        cdef bint is_date
        while self.date_stop <= p:
            start = self.date_stop
            self.date_stop = date_end(self.words, start)
            is_date = self.date_stop > start and not (self.date_stop == start + 4 and is_always(self.words, start))
            self.date_stop = max(self.date_stop, start + 1)
            self.date_start = start if is_date else self.date_stop
        return self.date_start <= p

    cdef int replace_digits(self, Py_ssize_t i, Py_ssize_t begin, Py_ssize_t end) except -1:
        """Add the edit that replaces ``text[begin:end]``, a number or a part of one, in word i."""
        cdef Words words = self.words
        cdef int64_t decade, most
        cdef Limits limits
        cdef Options options
        number = words.text[begin:end]
        if is_ordinal(words, end):
            ending = words.text[end : end + 2]
            most = LAST_SAFE_DAY if self.is_month(i - 1) or self.is_month(i + 2) else ANY
            options = self.ordinals(number, ending, most)
            end += 2
        elif is_decade(words, begin):  # "1990s" becomes "1980s", and "20s" becomes "30s"
            end -= 1
            decade = value_of(words, begin, end - begin)
            most = decade + NEAR_DECADES if end - begin == 3 else 9
            options = self.near(words.text[begin:end], max(2, decade - NEAR_DECADES), most, "0")
        else:
            limits = self.limits(i, begin, end)
            if limits.keeps:
                return 0
            options = self.near(number, limits.least, limits.most, "")
        if not options.texts:
            return 0
        if begin == words.words[i].start:
            return self.finder.put_with_article(self.found, words, begin, end, options, ANOTHER_NUMBER, i)
        return self.found.put(begin, end, options, ANOTHER_NUMBER)

    cdef Options near(self, str number, int64_t least, int64_t most, str ending):
        """Return the numbers near `number` that are not in the text if `ending` follows them."""
        cdef Options options = self.finder.kept.get((number, least, most))
        if options is None:
            options = self.finder.keep((number, least, most), near_numbers(number, least, most))
        if not self.numbers:
            return options
        if ending:
            return Options(tuple([other for other in options.texts if f"{other}{ending}" not in self.numbers]))
        if options.distinct is None:
            options.distinct = frozenset(options.texts)
        if options.distinct.isdisjoint(self.numbers):  # asks for each item of the smaller set
            return options
        return Options(tuple([other for other in options.texts if other not in self.numbers]))

    cdef Options ordinals(self, str number, str ending, int64_t most):
        cdef Options near = self.near(number, 1, most, "")
        cdef Options options = self.finder.kept.get((near.texts, ending))
        if options is None:
            options = self.finder.keep((near.texts, ending), tuple([ordinal(other, ending) for other in near.texts]))
        return options

    cdef bint is_month(self, Py_ssize_t i) noexcept:
        return self.finder.has_any(self.words, i, i + 1, MONTH)

    cdef Limits limits(self, Py_ssize_t i, Py_ssize_t begin, Py_ssize_t end) noexcept:
        """Return the least and the highest useful number instead of ``text[begin:end]``, or whether it must stay."""
        cdef Words words = self.words
        cdef Word* following = &words.words[i] + 1
        cdef Py_UCS4 before = words.at(begin - 1), after = words.at(end)
        cdef int64_t n, least, percent = 100 if is_percent(words, end) else ANY
        cdef Py_ssize_t size = digits_at(words, begin, end - begin), tail, minutes
        if size < end - begin:
            tail = 0
            while tail < LONGEST and words.is_digit(end - 1 - tail):
                tail += 1
                percent = 10 * percent if percent != ANY else ANY
            return Limits(0, percent, False)
        if before == c':' or size > LONGEST:  # minutes do not change
            return Limits(0, 0, True)
        n = value_of(words, begin, size)
        least = min(1, n)
        if (is_date_mark(before) or is_date_mark(after)) and self.is_in_date(begin):
            return Limits(1, ANY if n > 31 else 12 if n <= 12 else LAST_SAFE_DAY, False)
        if n <= 31 and (self.is_month(i - 1) or self.is_month(i + 1)):
            return range_limits(words, begin, end, n, 1, LAST_SAFE_DAY)
        minutes = 3 * has_minutes(words, end)
        if is_hour(words, end + minutes):
            return Limits(1, 12, False)
        if minutes and n <= 24:
            return Limits(0, 23, False)
        if self.finder.follows(words, i + 1) and following.start > words.words[i].stop:
            if n == 1:  # the next word may be a noun in the singular
                return Limits(0, 0, True)
            least = 2
        return range_limits(words, begin, end, n, least, percent)


cdef bint is_date_mark(Py_UCS4 c) noexcept:
    return c == c'/' or c == c'-' or c == c'.'


cdef bint has_case(Py_UCS4 c) except -1:
    if c < 128:
        return c'a' <= c <= c'z' or c'A' <= c <= c'Z'
    return chr(c).lower() != chr(c).upper()


cdef bint is_participle(Words words, Word* verb) noexcept:
    """Return whether a word ends in "ed" or "en"."""
    cdef Py_UCS4 last = words.at(verb.stop - 1), before = words.at(verb.stop - 2)
    return verb.stop - verb.start > 1 and before in u"eE" and last in u"dDnN"


def like(str old, str new):
    """Return `new` capitalised like `old`: "cold" becomes "COLD" if `old` is "HOT", and "Cold" if `old` is "Hot"."""
    if len(old) > 1 and old.isupper():
        return new.upper()
    if old.islower():
        return new.lower()
    return new[:1].upper() + new[1:] if old[:1].isupper() else new
