"""Hypothesis strategies for text that triggers many more rules of the word tokenizer than ordinary text."""

from hypothesis import strategies as st

PIECES = [
    *"""'"`.,:;@#$%&?!*()[]{}<>-–—―«»“”‘’„_/""",
    *" \t\n\r\v\f\x1c\x1f\x85\xa0\u2003\u2028\u3000",
    *"axX1٣Éßſıİ\u0301\u0345\u200c\u200d\u24b6",
    *"ΣσςK",  # capital, small and final sigma, and the Kelvin sign
    "\U0001d7ce",  # a digit
    *["''", "``", "--", "...", ".)", '."', ".' ", ". ", " )", ' "', " '", "' "],
    *["can", "not", "cannot", "d'ye", "gimme", "gonna", "gotta", "lemme", "more'n", "wanna", "wanna ", "whaddya"],
    *["'tis", "'twas", "'t", "is", "was", "n't", "N'T", "'ll", "'RE", "'ve", "'s", "'S", "'m", "'d", "'n"],
    *["re", "ve", "ll", "gİmme", "gımme", "'tıs", "'twaſ", "'ſ", "CANNOT", "Gonna", "More'N"],
    *["York.", "U.S.", "3,000", "10:30", "a-b", "Mr.", "dogs'", "$5", "&c."],
]
nasty_text = st.lists(st.sampled_from(PIECES), max_size=12).map("".join)
any_text = st.text(st.characters(exclude_categories=["Cs", "Cn"]), max_size=30)
text = nasty_text | any_text
