# made from numbers.pyx by tools/stubs.py
from typing import Any

ENDINGS: Any
def ordinal(number: str, ending: str) -> Any: ...
