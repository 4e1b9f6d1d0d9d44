"""An installed wheel: features without extras, and the same negatives on every system and processor.

`cibuildwheel` runs this file with each wheel that it builds, outside the source tree. It needs only pytest.
"""

import json
import subprocess
import sys
from pathlib import Path

import una_fast

RUN = """
import json, sys
from una_fast_cli.__main__ import main
sys.exit(max(main(call) for call in json.loads(sys.argv[1])))
"""
SENTENCES = [
    "The river flows north past the old castle.",
    "A market opens in the winter garden",
    "Music fills the quiet museum hall tonight",
    "An engine of the old treaty, isn't it?",
    "The naïve café owner paid 12.50 for the garden",
] * 2
# fixed negatives of epoch 3, which every processor, compiler and operating system must give
DRAWN = [
    "the tonight hall river river the old flows north",
    "opens market music market the quiet garden",
    "fills winter the quiet museum fills river",
    "engine an is the ? , , , n't ? n't",
    "the paid café café paid an for the garden",
]
UNSEEN = "an opens naïve on the tonight"
SETTINGS = ["--beta", "0.5", "--radius", "3", "--surface", "paper"]


def test_negatives_are_the_same_on_every_machine(tmp_path):
    una_fast.build_index(SENTENCES).save(tmp_path / "index")
    una = una_fast.Augmenter(una_fast.load_index(tmp_path / "index"), beta=0.5, radius=3, surface="paper")
    assert una.texts(range(5), epoch=3) == DRAWN
    assert una.augment(["An unseen castle on the river"], epoch=3) == [UNSEEN]


def test_the_commands_run_and_write_the_same_negatives(tmp_path):
    (tmp_path / "sentences.txt").write_text("\n".join(SENTENCES) + "\n", encoding="utf-8")
    calls = [["index", "sentences.txt", "--output", "index"], ["explain", "--index", "index", "the castle"]]
    calls += [["negatives", "--index", "index", *SETTINGS, "--epoch", "3", "--output", "negatives.jsonl"]]
    command = [sys.executable, "-c", RUN, json.dumps(calls)]
    ran = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, encoding="utf-8", check=False)
    assert ran.returncode == 0, ran.stderr
    lines = (tmp_path / "negatives.jsonl").read_text(encoding="utf-8").splitlines()
    assert [json.loads(line)["negative"] for line in lines[:5]] == DRAWN


def test_the_wheel_contains_the_word_lists_and_the_verifier():
    edits = una_fast.HarmlessEdits(una_fast.build_index(SENTENCES), edits=["coordinated"])
    assert edits.augment(["Bread and butter are cheap."]) == ["Butter and bread are cheap."]
    folder = Path(una_fast.__file__).parent / "verify"
    assert (folder / "templates.txt").is_file() and (folder / "minilm" / "verifier.json").is_file()
    assert 0 < sum(path.stat().st_size for path in (folder / "minilm").iterdir()) < 1_500_000
