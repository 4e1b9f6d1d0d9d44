"""Write the table of tokenizers in docs/tokenizers.md, and the reasons why ids made word by word are exact.

python tools/make_tokenizer_table.py
"""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "tests")]
from support.tokenizer_families import BY_TEXT, FAMILIES, Family  # noqa: E402
from una_fast.tokens.pipelines import PIPELINES, NotByWordError  # noqa: E402
from una_fast.tokens.subwords import SubwordEncoder  # noqa: E402

PAGE = ROOT / "docs" / "tokenizers.md"
COMPARED = ROOT / "bench" / "results" / "tokenizers.json"
COLUMNS = ["tokenizers of", "pipeline", "lines compared"]


def page() -> str:
    """Return the text of docs/tokenizers.md, with the table and the list of reasons written again."""
    compared = json.loads(COMPARED.read_text(encoding="utf-8"))
    rows = [_row(family, compared.get(name, 0)) for name, family in {**FAMILIES, **BY_TEXT}.items()]
    table = "".join("| " + " | ".join(cells) + " |\n" for cells in [COLUMNS, ["---"] * len(COLUMNS), *rows])
    text = re.sub(r"(^\|.*\n)+", lambda _: table, PAGE.read_text(encoding="utf-8"), flags=re.MULTILINE)
    reasons = "".join(map(_reason, PIPELINES))
    return re.sub(r"(?<=on its neighbours:\n\n)(- .*\n)+", lambda _: reasons, text)


def _row(family: Family, compared: int) -> list[str]:
    tokenizer = family()
    try:
        kind, lines = SubwordEncoder(tokenizer).pipeline.kind.name, f"{compared:,}"
    except NotByWordError as error:
        kind, lines = error.reason, "text by text"
    normalizer = json.loads(tokenizer.backend_tokenizer.to_str())["normalizer"]
    steps = (normalizer or {}).get("normalizers", [normalizer] if normalizer else [])
    names = ", ".join(step["type"] for step in steps) + ": " * bool(steps)
    return [family.models, f"{names}{kind}".replace("|", "\\|"), lines]


def _reason(kind: Any) -> str:
    return f"- **{kind.name}**: {kind.reason}.\n"


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
