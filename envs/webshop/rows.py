"""Scores purchases that were made elsewhere, for ``handoff score webshop FILE.jsonl``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from handoff.envs.webshop.catalogue import Catalogue
from handoff.envs.webshop.plans import is_full
from handoff.envs.webshop.reward import reward
from handoff.errors import DataError


def score_row(catalogue: Catalogue, row: Mapping[str, Any]) -> dict[str, Any]:
    """The row ``{"goal", "asin", "options"}`` with ``reward``, ``parts`` and ``passed`` filled in; other fields stay.

    Raises :class:`~handoff.errors.DataError` for a row that cannot be read.
    """
    number, asin, options = row.get("goal"), row.get("asin"), row.get("options")
    if type(number) is not int or not 0 <= number < len(catalogue.goals):
        raise DataError(f"its goal is {number!r:.40}, and the catalogue has goals 0 to {len(catalogue.goals) - 1}")
    if not isinstance(asin, str) or asin not in catalogue.products:
        raise DataError(f"its asin is {asin!r:.40}, which the catalogue does not have")
    if not isinstance(options, dict) or not all(isinstance(value, str) for value in options.values()):
        raise DataError("its options are not texts by name")
    result = reward(catalogue, catalogue.goals[number], asin, options)
    return {**row, "reward": result.total, "parts": result.parts(), "passed": is_full(result.total)}
