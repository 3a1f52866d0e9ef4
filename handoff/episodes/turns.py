"""One turn of a policy: decide, step, remember."""

from __future__ import annotations

from handoff.episodes.batching import Batcher
from handoff.episodes.host import Ask, View
from handoff.episodes.pool import Episode
from handoff.policies import Request
from handoff.records import Decision


async def decide_and_step(
    episode: Episode, request: Request, batcher: Batcher, view: View, ask: Ask
) -> tuple[Decision, View]:
    """One decision and its action.  A decision without an action spends the step: the environment is not touched, and
    what it showed before stands."""
    decision = await batcher.decide(request)
    if not decision.action:
        return decision, view
    return decision, await episode.step(decision.action, ask)
