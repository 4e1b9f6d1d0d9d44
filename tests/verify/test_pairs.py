"""The pairs: harmless changes, their harmful twins, templates, WordNet's files, and `PairMaker`."""

import time
import warnings
from collections import Counter

import numpy as np
import pytest

import una_fast
from una_fast.augment.counter_rng import CounterRNG
from una_fast.augment.draws import Draws
from una_fast.augment.harmless import chosen_changes, reworded
from una_fast.augment.rewordings import JUDGING, exchanged_word, harmful_changes, harmless_changes, read_rewordings
from una_fast.augment.wordnet import WordNet, inflected
from una_fast.errors import InputError
from una_fast.verify import pairs
from una_fast.verify.pairs import PairMaker, around, has_roles, marked, overlap, question_of, roles
from una_fast.verify.templates import SLOT, read_templates, template_pair, written

TEXTS = [
    "The castle was designed by Anna Berg in 1910.",
    "Chelsea defeated Arsenal in the final.",
    "How do I convert miles to kilometres?",
    "The museum is older than the theatre.",
    "She moved from Oslo to Bergen before the war ended.",
    "In 1950 the company bought a factory and a mill.",
    "It is not legal to park here.",
    "Why do cats purr at night?",
    "The river is near the old mill.",
    "Bread and butter are cheap in Norway.",
] * 3


def draws(seed=0):
    return Draws(CounterRNG(seed, 0, np.zeros(1, np.int64)))


def results(change, text, n=60):
    return {change(text, draws(seed)) for seed in range(n)}


@pytest.mark.parametrize(("name", "text", "right", "wrong"), [
    ("passive", "The castle was designed by Anna Berg in 1910.", {"Anna Berg designed the castle in 1910."},
     {"The castle designed Anna Berg in 1910.", "Anna Berg was designed by the castle in 1910."}),
    ("active", "Chelsea defeated Arsenal in the final.", {"Arsenal was defeated by Chelsea in the final."},
     {"Arsenal defeated Chelsea in the final.", "Chelsea was defeated by Arsenal in the final."}),
    ("asked", "Did Anna follow Tom?", {"Was Tom followed by Anna?"},
     {"Did Tom follow Anna?", "Was Anna followed by Tom?"}),
    ("compared", "The museum is older than the theatre.", {"The theatre is newer than the museum."},
     {"The theatre is older than the museum.", "The museum is newer than the theatre."}),
    ("from to", "Trains run from Oslo to Bergen.", {"Trains run to Bergen from Oslo."},
     {"Trains run from Bergen to Oslo.", "Trains run to Oslo from Bergen."}),
    ("time order", "She left Oslo before the war ended.", {"Before the war ended, she left Oslo."},
     {"She left Oslo after the war ended.", "After the war ended, she left Oslo."}),
    ("twice negated", "It is not legal to park here.", {"It is illegal to park here."},
     {"It is not illegal to park here."}),
])  # fmt: skip
def test_a_change_and_its_harmful_twin(name, text, right, wrong):
    assert results(harmless_changes()[name], text) == right
    assert results(harmful_changes()[name], text) == wrong


@pytest.mark.parametrize(("name", "text", "expected"), [
    ("coordinated", "Bread and butter are cheap.", {"Butter and bread are cheap."}),
    ("fronted", "In 1950 the firm, once rich, closed.", {None}),
    ("fronted", "In winter, the lake is frozen solid.", {"The lake is frozen solid in winter."}),
    ("fronted", "The lake is frozen solid in winter.", {"In winter, the lake is frozen solid."}),
    ("symmetric", "Kenya borders Uganda.", {"Uganda borders Kenya."}),
    ("symmetric", "Is Anna married to Tom?", {"Is Tom married to Anna?"}),
    ("genitive", "He met the king of Spain.", {"He met Spain's king."}),
    ("that", "He said that it rained.", {"He said it rained."}),
    ("written", "It costs 12000 euros.", {"It costs 12,000 euros."}),
    ("written", "It was built in 1950 in stone.", {None}),
    ("passive", "It rained all day.", {None}),
    ("opening", "How do you bake bread?", None),
])  # fmt: skip
def test_harmless_changes(name, text, expected):
    found = results(harmless_changes()[name], text)
    if expected is None:
        assert len(found) > 8 and text not in found and "What is the best way to bake bread?" in found
    else:
        assert found == expected


@pytest.mark.parametrize(
    ("names", "text"),
    [
        (["coordinated", "symmetric", "compared"], lambda n: "Abcde " * n + "than x"),
        (["coordinated", "symmetric"], lambda n: "Ab-cd'" * n),
        (["filler"], lambda n: "." * 6 * n + "x"),
        (["time order"], lambda n: f"She left before {'a' * (n // 25)}%"),  # 10 and 40 letters
    ],
)
def test_the_time_of_a_change_is_linear_in_the_length(names, text):
    def seconds(change, n):
        started = time.process_time()
        results(change, text(n), 8)
        return time.process_time() - started

    for name in names:
        short, long = (min(seconds(harmless_changes()[name], n) for _ in range(3)) for n in (250, 1000))
        assert long < 10 * short + 0.01, name  # 4 times the length: a quadratic search takes 16 times as long


def test_a_phrase_is_replaced_only_where_it_has_one_meaning():
    phrase = harmless_changes()["phrase"]
    assert phrase("I like it as well.", draws()) != "I such as it as well."
    assert results(phrase, "He lived there since March.") == {None}
    assert "A huge film." in results(phrase, "A enormous film.") or "enormous" in read_rewordings()["phrases"][30]


def test_no_phrase_is_both_harmless_and_harmful():
    harmless = {frozenset((a, b)) for line in read_rewordings()["phrases"] for a in line for b in line if a != b}
    harmful = {frozenset((a, b)) for line in read_rewordings()["contrasts"] for a in line for b in line if a != b}
    assert not harmless & harmful


def test_judging_kinds_are_not_trained():
    maker = PairMaker(TEXTS)
    assert JUDGING.isdisjoint(maker._harmless) and JUDGING.isdisjoint(maker._harmful)
    assert {*harmless_changes(), *harmful_changes()} >= JUDGING


def test_pairs_depend_only_on_the_seed():
    first, second, other = (PairMaker(TEXTS, seed) for seed in (3, 3, 4))
    for kind in (lambda m: m.near_misses(), lambda m: m.same_meaning(), lambda m: m.from_templates(50)):
        assert [*kind(first)] == [*kind(second)] != [*kind(other)]


def test_each_edit_searches_the_corpus_once_and_no_edit_is_reported(monkeypatch):
    made = []

    def near_misses(*args, **settings):
        made.append(settings["edits"])
        return una_fast.NearMisses(*args, **settings)

    monkeypatch.setattr(pairs, "NearMisses", near_misses)
    maker = PairMaker(["Anna met the old king.", "The king met Anna again."])  # no edit of numbers fits
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert [*maker.near_misses()] and [*maker.near_misses(epoch=1)]
    assert sorted(made) == [["name"], ["number"], ["polarity"], ["word"]]


def test_near_misses_and_harmless_pairs_have_their_labels():
    maker = PairMaker(TEXTS)
    near, same = [*maker.near_misses()], [*maker.same_meaning()]
    assert {pair.near_miss for pair in near} == {1} and {pair.near_miss for pair in same} == {0}
    assert len(near) >= 25 and len(same) >= 25
    assert all(pair.first != pair.second for pair in near + same)
    assert len({pair.kind for pair in near}) >= 5


def test_templates_name_known_slots_and_different_meanings():
    templates = read_templates()
    known = {*templates.slots, "verb", "more", "less", "adj", "act"}
    assert len(templates.blocks) > 100
    for block in templates.blocks:
        wordings = [wording for meaning in block for wording in meaning.wordings]
        assert len(wordings) == len({*wordings}), wordings
        for meaning in block:
            slots = [{match[1] + match[2] for match in SLOT.finditer(wording)} for wording in meaning.wordings]
            assert {match[1] for wording in meaning.wordings for match in SLOT.finditer(wording)} <= known
            if meaning.order:
                numbered = [{slot for slot in found if slot.endswith(("1", "2"))} for found in slots]
                assert all(len(found) >= 2 for found in numbered), meaning
    assert all(len(verb) == 5 for verb in templates.verbs) and all(len(row) == 4 for row in templates.adjectives)
    assert all(len(row) == 3 for row in templates.opposites + templates.acts)


def test_template_pairs_follow_their_labels():
    templates, kinds = read_templates(), Counter()
    for seed in range(3000):
        pair = template_pair(templates, {"person": ["Zoe", "Max", "Ida"]}, draws(seed))
        assert pair.near_miss == (pair.kind in ("template role", "template other meaning", "template word"))
        assert (
            "{" not in pair.first + pair.second and pair.first[0] == pair.first[0].upper() and pair.first[-1] in "?.!"
        )
        kinds[pair.kind] += 1
    assert min(kinds.values()) > 50 and len(kinds) == 6
    near = sum(n for kind, n in kinds.items() if kind.endswith(("role", "meaning", "word")))
    assert 0.4 < near / 3000 < 0.65


def test_a_wording_is_filled():
    assert written(
        "{person1} is {more} than {person2}", {"person1": "my boss", "more": "taller", "person2": "Tom"}
    ) == ("My boss is taller than Tom.")


def test_questions_roles_and_marks():
    assert question_of("The castle was built in 1210.") == "Was the castle built in 1210?"
    assert question_of("Anna Berg can swim.") == "Can Anna Berg swim?"
    assert question_of("Can Anna swim?") is None and question_of("What he said was wrong.") is None
    assert results(roles, "Yesterday Chelsea beat Arsenal.") == {"Yesterday Arsenal beat Chelsea."}
    assert results(roles, "Yesterday Chelsea and Arsenal met.") == {None}
    assert results(around, "How do I turn PDF into Word?") == {"How do I turn Word into PDF?"}
    assert marked("It isn't 5 km to Rome") == (frozenset({"5", "rome"}), True, False)
    assert marked("Nobody has no car") == marked("everybody has a car")
    assert has_roles("Trains run from Oslo to Bergen.") and not has_roles("It rained all day.")


def test_neighbours_with_other_numbers_or_names_are_left_out():
    texts = ["Why 5 km to Rome?", "To Rome, why 5 km?", "Why 6 km to Rome?", "Why 5 km to Oslo?"]
    made = [*PairMaker(texts).from_neighbours([(0, 1), (0, 2), (0, 3)])]
    assert [(pair.first, pair.second) for pair in made if not pair.near_miss] == [(texts[0], texts[1])]


WORDNET = {  # six words, in WordNet's format
    "noun": """
        00000001 03 n 01 animal 0 000 | a living thing
        00000002 03 n 02 dog 0 hound 0 001 @ 00000001 n 0000 | it barks
        00000003 03 n 01 cat 0 001 @ 00000001 n 0000 | it purrs""",
    "adj": """
        00000004 00 a 01 hot 0 001 ! 00000005 a 0101 | warm
        00000005 00 a 01 cold 0 002 ! 00000004 a 0101 & 00000006 a 0000 | not hot
        00000006 00 s 01 icy 0 001 & 00000005 a 0000 | like ice""",
    "verb": "",
    "adv": "",
}
COUNTED = "dog%1:05:00:: hound%1:05:00:: cat%1:05:00:: hot%3:00:01:: cold%3:00:01:: icy%5:00:00:cold:00"


@pytest.fixture
def wordnet_folder(tmp_path):
    for name, content in WORDNET.items():
        lines, index = [line.strip() for line in content.strip().splitlines()], []
        for fields in map(str.split, lines):
            for word in fields[4 : 4 + 2 * int(fields[3]) : 2]:
                index.append(f"{word} {fields[2].replace('s', 'a')} 1 0 1 1 {fields[0]}")
        for part, written_lines in (("data", lines), ("index", index)):
            (tmp_path / f"{part}.{name}").write_text("\n".join(["  1 a licence", *written_lines, ""]))
    (tmp_path / "cntlist.rev").write_text("".join(f"{key} 1 9\n" for key in COUNTED.split()))
    return tmp_path


def test_wordnet_is_read(wordnet_folder):
    net = WordNet(wordnet_folder)
    assert net.synonyms == {"dog": ["hound"], "hound": ["dog"]}
    assert net.opposites == {"hot": ["cold"], "cold": ["hot"], "icy": ["hot"]}
    assert net.sisters["dog"] == ["cat"] and net.kind("hot") == "a" and net.kind("unseen") == ""
    assert net.lemma("dogs") == ("dog", "s") and net.lemma("unseen") == ("unseen", "")
    assert results(exchanged_word(net, net.synonyms), "Two dogs bark.") == {"Two hounds bark."}
    index = una_fast.build_index(["Two dogs bark.", "It is hot."])
    edits = una_fast.HarmlessEdits(index, edits=["synonym"], wordnet=wordnet_folder)
    assert edits.texts([0, 1]) == ["Two hounds bark.", "It is hot."]
    (wordnet_folder / "data.adv").unlink()
    with pytest.raises(InputError, match=r"wordnet=.*data\.adv.*give the folder"):
        WordNet(wordnet_folder)


def test_regular_forms():
    bases = ("party", "s"), ("box", "s"), ("bake", "ing"), ("try", "ed"), ("dog", "")
    assert [inflected(*pair) for pair in bases] == ["parties", "boxes", "baking", "tried", "dog"]


@pytest.mark.parametrize(("settings", "named"), [
    ({"edits": ["opning"]}, "'opning'.* opening"), ({"most": 0}, "^most=0"),
    ({"wordnet": "nowhere"}, "^wordnet='nowhere'"),
    ({"sed": 1}, "'sed'.* seed"),
])  # fmt: skip
def test_wrong_settings_are_refused(settings, named):
    with pytest.raises(InputError, match=named):
        una_fast.HarmlessEdits(una_fast.build_index(TEXTS[:3]), **settings)
    with pytest.raises(InputError, match="^texts: 1 "):
        PairMaker(["one"])


def test_a_chain_applies_each_change_once():
    changes = chosen_changes(["filler", "marks", "typo"])
    for seed in range(40):
        text, names = reworded("The old museum is open on Sundays.", 3, changes, draws(seed))
        assert len(names) == len({*names}) and text != "The old museum is open on Sundays."


def test_draws_are_uniform_and_never_repeat_a_block():
    stream = draws()
    units = np.array([stream.unit() for _ in range(8000)])
    assert 0 <= units.min() and units.max() < 1 and len({*units.tolist()}) == 8000
    assert np.allclose(np.histogram(units, 10, (0, 1))[0], 800, atol=120)
    stream = draws(1)
    counts = Counter(stream.weighted((1.0, 0.0, 3.0)) for _ in range(4000))
    assert counts[1] == 0 and abs(counts[2] - 3000) < 150
    first = Counter(draws(seed).ordered({"rare": 1.0, "often": 9.0})[0] for seed in range(2000))
    assert abs(first["often"] - 1800) < 80


def test_matched_pairs_change_equally_many_words_in_both_labels():
    from bench.evidence.matched import changed_words, matched_pairs

    names = "Oslo Rome Paris Cairo Lima Delhi Boston Kyoto Turin Ghent".split()
    texts = [f"{a} is older than {b} in the north." for a in names for b in names if a != b]
    texts += [f"The castle was designed by Anna {a} in 19{i:02}." for i, a in enumerate(names)]
    texts += [
        f"He said that {a} and {b} are near the king of {c}."
        for a, b, c in zip(names, names[1:], names[2:], strict=False)
    ]
    pairs = matched_pairs(texts)
    counts = Counter((changed_words(first, second), label) for first, second, label, _ in pairs)
    assert len(pairs) > 20 and all(counts[n, 0] == counts[n, 1] > 0 for n, _ in counts)
    groups = {group for *_, group in pairs}
    assert any(group.startswith("new ") for group in groups) and any(group.startswith("trained ") for group in groups)
    assert (
        changed_words("a b c", "c b a") == 2 and changed_words("a b", "a b") == 0 and changed_words("a b", "a c d") == 3
    )


def test_distant_pairs_share_a_name_and_few_words():
    texts = ["Anna lives in Oslo.", "The mayor of Oslo resigned.", "Anna lived in Oslo.", "It rained."]
    made = [*PairMaker(texts).distant()]
    assert [(pair.near_miss, pair.kind) for pair in made] == [(0, "distant")] * len(made) and made
    assert all(overlap(pair.first, pair.second) < 0.3 and "Oslo" in pair.first + pair.second for pair in made)
    assert [*PairMaker([*texts[:2], " \t", "", *texts[2:]]).distant()] == made  # blank texts change nothing
    assert overlap("a b", "b c") == pytest.approx(1 / 3) and overlap("", "") == 0
