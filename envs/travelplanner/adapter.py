"""The TravelPlanner adapter: an episode is a conversation of look-ups that ends in an answer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from handoff.canonical import canonical
from handoff.environment import Environment
from handoff.envs.travelplanner import world as worlds
from handoff.envs.travelplanner.evaluation.evaluator import COMMONSENSE, HARD, Evaluator, PlanVerdict
from handoff.envs.travelplanner.evaluation.names import Rules, from_to
from handoff.envs.travelplanner.plans import read_plan
from handoff.envs.travelplanner.queries import Query
from handoff.envs.travelplanner.rows import PlanScorer
from handoff.envs.travelplanner.tools import TOOLS, look_up
from handoff.errors import UsageError
from handoff.messages.history import added
from handoff.messages.replies import as_text, read_reply
from handoff.records import AnswerVerdict, Message, NamedCheck, Record, Task

#: A prediction that says so has no plan.
NOT_FOUND = "answer not found"
#: The remark on an episode that was told of no flight where the table does not know.
CLOSED_WORLD = "closed_world"

CONTRACT = (
    "You plan trips. Use the tools to find flights, roads, places to stay, restaurants and attractions; take nothing "
    "from memory. When you know enough, give the whole plan as your answer, between <answer> and </answer>: for every "
    "day the current city, transportation, breakfast, attraction, lunch, dinner and accommodation, places as NAME, "
    "City, attractions each followed by a semicolon, and - where a day has none. End the trip where it began, and keep "
    "to the budget for all people."
)
FORMAT = """You turn a travel plan into JSON. Reply with one JSON array and nothing else: one object per day, in order,
with the keys "day" (a number), "current_city", "transportation", "breakfast", "attraction", "lunch", "dinner" and
"accommodation", all other values texts. Change nothing of the plan and add nothing to it. Write "-" where it says
nothing. On a day of travel "current_city" is "from A to B". "transportation" keeps the flight number, written "Flight
Number: F1234567, from A to B", or the way by road, written "Self-driving, from A to B" or "Taxi, from A to B". Places
are written "NAME, City", attractions each with a ";" after it. The plan answers this query:
"""


class TravelPlannerEnvironment(Environment):
    """TravelPlanner: plan a trip of 3, 5 or 7 days by six look-up tools; two evaluators."""

    name: ClassVar[str] = "travelplanner"
    splits: ClassVar[tuple[str, ...]] = worlds.SPLITS
    last_request: ClassVar[str] = (
        "No more tools can be used. Give the whole plan now, from what you have found, as your answer: day by day, "
        "with city, transportation, meals, attractions and accommodation, between <answer> and </answer>."
    )

    def __init__(
        self,
        data: str | None = None,
        flights: str | None = None,
        evaluator: str = Rules.AGENT_STAR.value,
        closed_world: bool = False,
    ) -> None:
        """``data`` is a folder in the official layout, ``flights`` a flight table that lies elsewhere, ``evaluator``
        ``agent-star`` or ``official``; ``closed_world`` takes a leg that the table does not know for one without a
        flight."""
        if evaluator not in {rules.value for rules in Rules}:
            known = ", ".join(rules.value for rules in Rules)
            raise UsageError(f"travelplanner has no evaluator {evaluator!r:.40} (known: {known})")
        if type(closed_world) is not bool:
            raise UsageError(f"closed_world is true or false, not {closed_world!r:.40}")
        self._world = worlds.load(data, flights)
        self._evaluator = Evaluator(self._world.database, Rules(evaluator))
        self._rows = PlanScorer(self._world)
        self._closed_world = closed_world
        self._messages: list[Message] = []
        self._task: Task | None = None
        self._answer: str | None = None
        self._made: list[str] = []

    def tasks(self, split: str) -> Sequence[Task]:
        return self._world.tasks(split)

    def reset(self, task: Task, seed: int) -> Record:
        _, query = self._world.query(task)
        self._task, self._answer, self._made = task, None, []
        self._messages = [Message("system", CONTRACT), Message("user", query.text)]
        return Record(query.text, (), 0.0, False, False, messages=tuple(self._messages), tools=TOOLS)

    def step(self, action: str) -> Record:
        record = self._after(action)
        self._messages += [Message("assistant", action), *added(record)]
        return record

    def _after(self, action: str) -> Record:
        if self._answer is not None:
            return Record("", (), 0.0, True, False, problem="the episode has ended")
        reply = read_reply(action)
        if reply.calls:
            told = look_up(reply.calls[0], self._world.database, self._closed_world)
            if not told.problem:
                self._made.append(_key(reply.calls[0].name, reply.calls[0].arguments))
            flags = (CLOSED_WORLD,) if told.assumed else ()
            return Record(told.text, (), 0.0, False, False, problem=told.problem, flags=flags)
        if reply.answer is None:
            return Record("", (), 0.0, False, False, problem="the reply holds neither a call nor an answer")
        self._answer = reply.answer
        assert self._task is not None
        won = self.score(self._task, read_plan(reply.answer)).passed
        return Record("", (), float(won), True, won)

    def describe(self, tasks: Sequence[Task] = ()) -> Mapping[str, Any]:
        return {
            "rules": 1,
            "evaluator": self._evaluator.rules.value,
            "closed_world": self._closed_world,
            "world": "invented" if self._world.shipped else "given",
            **self._world.describe(),
        }

    # Messages

    def messages(self) -> Sequence[Message]:
        return list(self._messages)

    # Scored

    def answer(self) -> str | None:
        return self._answer

    def score(self, task: Task, answer: Any) -> AnswerVerdict:
        """The evaluator's verdict on ``answer``, a list of days; anything else is no plan."""
        _, query = self._world.query(task)
        verdict = self._evaluator.evaluate(query, answer)
        flags = () if verdict.commonsense is not None else ("no_plan",)
        return AnswerVerdict(verdict.passed, _checks(verdict), flags)

    # Formatted

    def formatting(self, task: Task, answer: str) -> Sequence[Message]:
        if not answer.strip() or NOT_FOUND in answer.lower():
            return ()
        _, query = self._world.query(task)
        return [Message("system", FORMAT + query.text), Message("user", answer)]

    def read_formatted(self, reply: str) -> list[Any] | None:
        return read_plan(reply)

    # Rows

    def score_row(self, row: Mapping[str, Any]) -> Mapping[str, Any]:
        return self._rows.score_row(row)

    # Planner

    def plan(self) -> tuple[str, ...]:
        """The look-ups that a careful agent makes for the gold plan, then the plan itself; empty if it is not known."""
        if self._task is None or self._answer is not None:
            return ()
        split, query = self._world.query(self._task)
        gold = self._world.gold.get((split, query.idx))
        if gold is None:
            return ()
        made = set(self._made)
        calls = [call for call in _look_ups(query, gold) if _key(*call) not in made]
        answer = canonical(gold).decode()
        return (*(as_text("", [call]) for call in calls), f"<answer>{answer}</answer>")


def _key(name: str, arguments: Mapping[str, Any]) -> str:
    return canonical([name, dict(arguments)]).decode()


def _checks(verdict: PlanVerdict) -> tuple[NamedCheck, ...]:
    parts = ((COMMONSENSE, verdict.commonsense), (HARD, verdict.hard))
    return tuple(
        NamedCheck(name, None if checks is None else checks[name]) for names, checks in parts for name in names
    )


def _look_ups(query: Query, plan: Sequence[Any]) -> list[tuple[str, dict[str, str]]]:
    """One look-up per leg, and three per city of ``plan``."""
    calls: list[tuple[str, dict[str, str]]] = []
    for number, day in enumerate(plan):
        ends = from_to(str(day.get("current_city", "")))
        if ends is None:
            continue
        start, end = ends
        leg, text = {"departure": start, "destination": end}, str(day.get("transportation", "")).lower()
        if "flight" in text and number < len(query.date):
            calls.append(("SearchFlight", {**leg, "date": query.date[number]}))
        else:
            calls.append(("GoogleDistanceMatrix", {**leg, "mode": "taxi" if "taxi" in text else "self-driving"}))
        if end != query.org:
            for tool in ("SearchAccommodation", "SearchRestaurant", "SearchAttraction"):
                calls.append((tool, {"city": end}))
    return list({_key(*call): call for call in calls}.values())
