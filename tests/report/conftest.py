"""The browser that opens the pages."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from kit import chromium


@pytest.fixture(scope="module")
def browser() -> Iterator[chromium.Page]:
    with chromium.page() as tab:
        yield tab
