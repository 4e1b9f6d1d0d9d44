"""UNA in plain Python, written from section 3 of the paper and, for open questions, docs/paper-and-released-code.md.

It imports nothing from una_fast. A sentence is a list of words (or ids); scores are in dicts or lists.
"""

import bisect
import functools
from collections import Counter
from decimal import Context, Decimal

MASK = 2**64 - 1
GAMMA = 0x9E3779B97F4A7C15
TRIES = 64
NUMBERS = 128


@functools.cache
def ln(x):
    """Return ln(x), correctly rounded: 60 digits are enough for every double."""
    return float(Context(prec=60).ln(Decimal(x)))


@functools.cache
def ln1p(x):
    """Return ln(1 + x), correctly rounded."""
    return ln(Context(prec=2000).add(1, Decimal(x)))


def idf(documents):
    """Return -ln(N_t / N) by term. N_t of the N documents contain term t."""
    frequency = Counter(term for words in documents for term in set(words))
    return {term: 0.0 - ln(n / len(documents)) for term, n in frequency.items()}


def tfidf(words, idf_of, unseen):
    """Return ln(1 + n_t / n) idf by term, in order of first appearance. n_t of the n words are term t. Equation 2."""
    terms = dict.fromkeys(words)
    return {term: ln1p(words.count(term) / len(words)) * idf_of.get(term, unseen) for term in terms}


def max_tfidf(documents):
    """Return the highest tf-idf in any document by term, in order of first appearance."""
    idf_of, highest = idf(documents), {}
    for words in documents:
        for term, z in tfidf(words, idf_of, 0.0).items():
            highest[term] = max(z, highest.get(term, z))
    return highest


def ranking(documents):
    """Sort terms by descending score, ties by first appearance (dicts keep this order and sorting is stable)."""
    highest = max_tfidf(documents)
    return sorted(highest, key=lambda term: -highest[term])


def probabilities(words, idf_of, unseen, beta, variant="paper", select="tfidf", fixed=frozenset()):
    """Return the probability of each word: 0 for words in `fixed`, and by equations 3 and 4 for the others."""
    z = tfidf(words, idf_of, unseen)
    others = iter(of_scores([word for word in words if word not in fixed], z, beta, variant, select))
    return [0.0 if word in fixed else next(others) for word in words]


def of_scores(words, z, beta, variant, select):
    """Return the probability of each word from the scores z of the terms."""
    if not words or select == "random":
        return [beta] * len(words)
    z = {term: z[term] for term in words}
    lowest = min(z.values())
    over = list(z) if variant == "paper" else words  # C is a mean over distinct terms, or over words
    total = 0.0
    for term in over:
        total += z[term] - lowest
    scale = beta / (total / len(over)) if total else 0.0
    p = [min(scale * (z[term] - lowest), 1.0) if total else beta for term in words]
    top = max(z, key=lambda term: z[term])  # the first term if several have the highest score
    if variant == "paper":
        return [1.0 if term == top else p[k] for k, term in enumerate(words)]
    if max(p) < 1:
        p[words.index(top)] = 1.0
    return p


def packed(words, p, bits, variant="paper"):
    """Return each word as the kernel stores it.

    The lowest `bits` are its id. The next bit is 1 if its draw also decides for later positions. The remaining
    n = 31 - bits are floor(2**n p), at most 2**n - 1, or 0 if another position decides.
    """
    found, steps = [], 2 ** (31 - bits)
    for k, word in enumerate(words):
        decides = variant == "released" or word not in words[:k]
        again = variant == "paper" and decides and word in words[k + 1 :]
        height = min(int(steps * p[k]), steps - 1) if decides else 0
        found.append((height * 2 + again) * 2**bits + word)
    return found


def rank_window(scores, term, z, radius):
    """Return the range of ids within `radius` of a term, or of the rank that an unseen word's score z would have."""
    if term is None:
        place = bisect.bisect_right([-s for s in scores], -z)  # after all scores >= z
        return max(0, place - radius), min(len(scores), place + radius)
    return max(0, term - radius), min(len(scores), term + radius + 1)


def candidates(scores, window, excluded, fixed=frozenset()):
    """Return the ids of the window that can be drawn; if there are none, widen the window by one rank and repeat."""
    ids = [j for j in range(*window) if j != excluded and j not in fixed]
    wider = (max(0, window[0] - 1), min(len(scores), window[1] + 1))
    return ids or candidates(scores, wider, excluded, fixed)


def candidate_weights(scores, window, excluded, replace="tfidf", fixed=frozenset()):
    """Return the weight of each id of the window: the unnormalised probability that it is the replacement."""
    ids = candidates(scores, window, excluded, fixed)
    if replace == "random" or all(scores[j] == 0 for j in ids):
        return dict.fromkeys(ids, 1.0)
    return {j: scores[j] for j in ids}


def mix64(x):
    x = ((x ^ (x >> 30)) * 0xBF58476D1CE4E5B9) & MASK
    x = ((x ^ (x >> 27)) * 0x94D049BB133111EB) & MASK
    return x ^ (x >> 31)


def draw64(seed, epoch, row, position, number):
    """Return 64 random bits, SplitMix64 by counter."""
    key = mix64((mix64(seed & MASK) + (epoch + 1) * GAMMA) & MASK)
    key = mix64((key + (row + 1) * GAMMA) & MASK)
    return mix64((key + (position * NUMBERS + number + 1) * GAMMA) & MASK)


def unit(bits):
    return (bits >> 11) * 2.0**-53


def draw_replacement(scores, window, excluded, replace, bits_of, fixed=frozenset()):
    """Draw an id of the window by rejection: candidates are uniform, and accepted in proportion to their weight."""
    start, stop = window
    envelope = 0.0 if replace == "random" else scores[start - start % 64]
    for number in range(1, TRIES + 1):
        product = bits_of(number) * (stop - start)
        j = start + (product >> 64)
        if j != excluded and j not in fixed and (envelope == 0 or unit(product & MASK) * envelope < scores[j]):
            return j
    ids = candidates(scores, window, excluded, fixed)
    if replace == "random" or all(scores[j] == 0 for j in ids):
        return ids[(bits_of(TRIES + 1) * len(ids)) >> 64]
    return invert(ids, [scores[j] for j in ids], unit(bits_of(TRIES + 1)))


def invert(ids, weights, u):
    """Return the first id at which the cumulative weight exceeds u times the total weight."""
    total = 0.0
    for weight in weights:
        total += weight
    target, last = u * total, None
    for j, weight in zip(ids, weights, strict=True):
        if weight > 0:
            last = j
            target -= weight
            if target < 0:
                break
    return last


def negative(
    ids, scores, idf_of, unseen, window_of, row, *, beta, seed, epoch, variant="paper", select="tfidf", replace="tfidf",
    fixed=frozenset(), others_of=lambda term: frozenset(),
):  # fmt: skip
    """Return the ids of the negative of a row.

    ids: term ids, or unseen words (str); window_of(term or None, z): start and stop of a window; fixed: ids and words
    that are neither replaced nor drawn; others_of(term): ids that never replace a term.
    """
    p = probabilities(ids, idf_of, unseen, beta, variant, select, fixed)
    draws = [unit(draw64(seed, epoch, row, position, 0)) for position in range(len(ids))]
    if select == "random" and variant == "paper":  # if no draw is below p, the term with the smallest is replaced
        of_terms = {draws[k]: term for k, term in enumerate(ids) if ids.index(term) == k and term not in fixed}
        if of_terms and not any(draws[ids.index(term)] < p[k] for k, term in enumerate(ids)):
            p = [1.0 if term == of_terms[min(of_terms)] else 0.0 for term in ids]
    z = tfidf(ids, idf_of, unseen)
    out, drawn = [], {}
    for k, term in enumerate(ids):
        position = k if variant == "released" else ids.index(term)
        if position not in drawn:
            new = term
            if draws[position] < p[k]:
                known = term if not isinstance(term, str) else None
                excluded = term if variant == "paper" else None
                window = (0, len(scores)) if replace == "random" else window_of(known, z[term])
                never = fixed | others_of(term)
                new = draw_replacement(
                    scores, window, excluded, replace, lambda n, at=position: draw64(seed, epoch, row, at, n), never
                )
            drawn[position] = new
        out.append(drawn[position])
    return out
