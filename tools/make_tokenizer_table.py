"""Write docs/tokenizers.md: the tokenizers of the tests, how each gets its ids, and the lines compared.

python tools/make_tokenizer_table.py
"""

from __future__ import annotations

import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))
sys.path.insert(0, str(ROOT / "tests"))
from support.tokenizer_table import page  # noqa: E402

if __name__ == "__main__":
    (ROOT / "docs" / "tokenizers.md").write_text(page(), encoding="utf-8")
