"""An index of the short corpus for the tests of augmentations."""

import pytest

import una_fast
from support.short_corpus import CORPUS


@pytest.fixture(scope="module")
def index() -> una_fast.Index:
    return una_fast.build_index(CORPUS)
