"""English words that carry grammar rather than meaning: synonym replacement leaves them as they are."""

FUNCTION_WORDS = frozenset(
    """
    a an the this that these those each every either neither some any no none all both few many much more most other
    another such own same i me my mine myself we us our ours ourselves you your yours yourself yourselves he him his
    himself she her hers herself it its itself they them their theirs themselves one who whom whose which what
    am is are was were be been being have has had having do does did doing done will would shall should can could may
    might must ought not n't 's 're 've 'll 'd 'm and or but nor so yet if then else than as because while until unless
    although though since whether of at by for with about against between into through during before after above below
    to from up down in out on off over under upon within without toward towards among along across behind beyond
    again further once here there when where why how very too just only also even ever never now
    """.split()
)
