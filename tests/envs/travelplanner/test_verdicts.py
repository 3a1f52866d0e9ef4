"""Both evaluators on recorded verdicts, and on plans whose verdicts follow from the rules."""

from __future__ import annotations

import copy
import gzip
import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from kit.command import invoke
from kit.shared import shared_path as shared

from handoff.envs.travelplanner import world as worlds
from handoff.envs.travelplanner.evaluation.evaluator import COMMONSENSE, Evaluator, PlanVerdict
from handoff.envs.travelplanner.evaluation.names import LegType, Rules, flight_number, from_to, name_and_city
from handoff.envs.travelplanner.plans import read_plan
from handoff.envs.travelplanner.queries import Query

Plan = list[dict[str, Any]]
WORLD = worlds.load(None, None)
OFFICIAL, AGENT_STAR = Rules.OFFICIAL, Rules.AGENT_STAR


def test_all_recorded_verdicts_are_equal_check_by_check(tmp_path: Path) -> None:
    folder = shared("data/travelplanner")
    lines = gzip.decompress((folder / "reference_verdicts.jsonl.gz").read_bytes()).decode().splitlines()
    recorded = [json.loads(line) for line in lines]
    bare = tmp_path / "plans.jsonl"
    with bare.open("w") as file:
        for row in recorded:
            file.write(json.dumps({key: row[key] for key in row if key not in ("official", "agent_star")}) + "\n")
    out = tmp_path / "scored.jsonl"
    result = invoke("score", "travelplanner", bare, "--data", folder, "--out", out, "-q")
    assert result.exit_code == 0, result.output
    scored = [json.loads(line) for line in out.read_text().splitlines()]
    assert len(scored) == len(recorded) == 1584
    assert [row for row, expected in zip(scored, recorded, strict=True) if row != expected] == []


def case(idx: int) -> tuple[Query, Plan]:
    """A query of the invented world and a copy of its gold plan: 0 has three days, 12 five, 24 seven."""
    query = Query.of(WORLD.queries["validation"][idx], "")
    return query, copy.deepcopy(WORLD.gold["validation", idx])


def verdict(rules: Rules, idx: int, change: Callable[[Plan], object], **fields: Any) -> PlanVerdict:
    _, plan = case(idx)
    change(plan)
    form = {**WORLD.queries["validation"][idx], **fields}
    return Evaluator(WORLD.database, rules).evaluate(Query.of(form, ""), plan)


def failures(result: PlanVerdict) -> set[str]:
    checks = {**(result.commonsense or {}), **(result.hard or {})}
    return {name for name, passed in checks.items() if passed is False}


@pytest.mark.parametrize("rules", list(Rules))
def test_all_gold_plans_of_the_invented_world_pass(rules: Rules) -> None:
    evaluator = Evaluator(WORLD.database, rules)
    results = [evaluator.evaluate(*case(idx)) for idx in WORLD.queries["validation"]]
    assert len(results) == 36
    assert all(result.passed for result in results)


def _set(day: int, **fields: str) -> Callable[[Plan], object]:
    return lambda plan: plan[day].update(fields)


def _repeat_meal(plan: Plan) -> None:
    plan[1]["lunch"] = plan[1]["breakfast"]


def _repeat_sight(plan: Plan) -> None:
    plan[1]["attraction"] = plan[1]["attraction"].split(";")[0] + ";" + plan[1]["attraction"].split(";")[0] + ";"


def _unclosed(plan: Plan) -> None:
    # Without a closing ";" the last one is dropped, whatever it is.
    plan[1]["attraction"] += "Nowhere, Nowhere"


def _invented(plan: Plan) -> None:
    plan[1]["dinner"] = f"No Such Table, {plan[1]['current_city']}"


def _without_a_comma(plan: Plan) -> None:
    plan[1]["dinner"] = plan[1]["dinner"].replace(",", "")


def _drop(name: str) -> Callable[[Plan], object]:
    return lambda plan: plan[1].pop(name)


EVERYWHERE: list[tuple[Callable[[Plan], object], set[str]]] = [
    (lambda plan: None, set()),
    (_unclosed, set()),
    (_repeat_meal, {"is_valid_restaurants"}),
    (_repeat_sight, {"is_valid_attractions"}),
    (_set(0, transportation="-"), {"is_not_absent", "is_valid_transportation"}),
    (_set(1, breakfast="-"), {"is_not_absent"}),
    (_set(1, attraction="-"), {"is_not_absent"}),
    (_drop("lunch"), {"is_not_absent"}),
    (lambda plan: plan.pop(), {"is_not_absent", "is_reasonable_visiting_city"}),
    (_invented, {"is_valid_information_in_sandbox"}),
    (_without_a_comma, {"is_valid_information_in_sandbox"}),
    (lambda plan: plan.append(dict(plan[0])), set()),  # a day too many is not read
]


@pytest.mark.parametrize("rules", list(Rules))
@pytest.mark.parametrize(("change", "failing"), EVERYWHERE)
def test_a_broken_plan_fails_the_checks_that_it_breaks(
    rules: Rules, change: Callable[[Plan], object], failing: set[str]
) -> None:
    assert failures(verdict(rules, 0, change)) == failing


def _hotel_elsewhere(plan: Plan) -> None:
    own = plan[0]["accommodation"].rpartition(", ")[2]
    city, beds = next((city, beds) for city, beds in WORLD.database.accommodations.items() if city != own)
    plan[0]["accommodation"] = f"{beds[0].name}, {city}"


@pytest.mark.parametrize("rules", list(Rules))
@pytest.mark.parametrize(
    ("change", "failing"),
    [
        (_repeat_meal, "is_valid_restaurants"),
        (_repeat_sight, "is_valid_attractions"),
        (_invented, "is_valid_information_in_sandbox"),
        (_hotel_elsewhere, "is_valid_information_in_current_city"),
        (_set(0, transportation="-"), "is_not_absent"),
        (lambda plan: plan.pop(), "is_not_absent"),
    ],
)
def test_no_gold_plan_of_the_invented_world_passes_once_broken(
    rules: Rules, change: Callable[[Plan], object], failing: str
) -> None:
    for idx in range(36):
        result = verdict(rules, idx, change)
        assert failing in failures(result), idx
        assert not result.passed


@pytest.mark.parametrize("rules", list(Rules))
def test_a_budget_a_dollar_below_the_cost_fails(rules: Rules) -> None:
    query, plan = case(0)
    evaluator = Evaluator(WORLD.database, rules)
    # Two nights, two flights and four meals, from the tables.
    bed = next(one for one in WORLD.database.accommodations[query.dest] if one.name in plan[0]["accommodation"])
    flights = sum(WORLD.database.prices[flight_number(plan[day]["transportation"])] for day in (0, 2))
    meals = [plan[0]["dinner"], *(plan[1][name] for name in ("breakfast", "lunch", "dinner"))]
    food = sum(
        next(one.price for one in WORLD.database.restaurants[query.dest] if meal.startswith(one.name + ","))
        for meal in meals
    )
    cost = 2 * bed.price + flights + food
    assert failures(verdict(rules, 0, lambda plan: None, budget=int(cost))) == set()
    assert failures(verdict(rules, 0, lambda plan: None, budget=int(cost) - 1)) == {"valid_cost"}
    assert evaluator.evaluate(query, plan).passed


def test_the_two_evaluators_differ_where_the_rules_say_so() -> None:
    city = case(0)[0].dest

    def states(plan: Plan) -> None:
        plan[1]["current_city"] = f"{city}(Arvenia)"

    # A parenthesis is cut off by the official evaluator alone.
    assert failures(verdict(OFFICIAL, 0, states)) == set()
    expected = {"is_not_absent", "is_reasonable_visiting_city", "is_valid_information_in_current_city"}
    assert failures(verdict(AGENT_STAR, 0, states)) == expected
    # It is cut off alone: the blank before it stays, in a city and not in the city of a name.
    blank = _set(1, current_city=f"{city} (Arvenia)")
    assert "is_reasonable_visiting_city" in failures(verdict(OFFICIAL, 0, blank))
    # The official one takes the letters of a stay's city for cities: a dinner in another one passes.
    elsewhere = WORLD.database.restaurants[next(other for other in WORLD.database.restaurants if other != city)][0]
    dinner = _set(1, dinner=f"{elsewhere.name}, {elsewhere.row['City']}")
    assert "is_valid_information_in_current_city" not in failures(verdict(OFFICIAL, 0, dinner, budget=10_000))
    assert failures(verdict(AGENT_STAR, 0, dinner, budget=10_000)) == {"is_valid_information_in_current_city"}
    # What is neither a flight nor a taxi is driving to Agent-STAR, and of no type to the official one.
    assert (OFFICIAL.leg("Rental Car"), AGENT_STAR.leg("Rental Car")) == (None, LegType.DRIVING)
    both = "Taxi, then a flight"
    assert (OFFICIAL.leg(both), AGENT_STAR.leg(both)) == (LegType.TAXI, LegType.FLIGHT)
    assert OFFICIAL.leg("SELF-DRIVING by taxi") is LegType.TAXI


@pytest.mark.parametrize("rules", list(Rules))
def test_a_city_that_is_left_is_not_visited_again(rules: Rules) -> None:
    def again(plan: Plan) -> None:
        first = plan[1]["current_city"]
        plan[3]["current_city"] = first

    assert "is_reasonable_visiting_city" in failures(verdict(rules, 12, again))


@pytest.mark.parametrize("rules", list(Rules))
def test_a_taxi_takes_four_people_and_a_car_five(rules: Rules) -> None:
    query, plan = case(0)
    origin, city = query.org, query.dest
    leg = WORLD.database.distances[origin, city]
    kilometres = int(leg.distance.replace(" km", "").replace(",", ""))
    evaluator = Evaluator(WORLD.database, rules)
    # The trip without its own two legs, for as many people, costs as much as before.
    for people, taxis, cars in ((4, 1, 1), (5, 2, 1), (6, 2, 2), (9, 3, 2)):
        costs = {}
        for way in ("-", f"Taxi, from {origin} to {city}", f"Self-driving, from {origin} to {city}"):
            form = {**WORLD.queries["validation"][0], "people_number": people, "budget": 0}
            days = copy.deepcopy(plan)
            days[0]["transportation"], days[2]["transportation"] = way, "-"
            costs[way[:4]] = _cost(evaluator, Query.of(form, ""), days)
        assert costs["Taxi"] - costs["-"] == kilometres * taxis
        assert costs["Self"] - costs["-"] == int(kilometres * 0.05) * cars


def _cost(evaluator: Evaluator, query: Query, plan: Plan) -> float:
    from handoff.envs.travelplanner.evaluation.evaluator import Trip

    return Trip(evaluator, query, plan).cost()


@pytest.mark.parametrize("rules", list(Rules))
def test_house_rules_rooms_cuisines_and_transport_are_held_where_they_are_asked(rules: Rules) -> None:
    def asked(**constraints: Any) -> dict[str, Any]:
        empty = dict.fromkeys(("house rule", "cuisine", "room type", "transportation"))
        return {"local_constraint": {**empty, **constraints}, "budget": 100_000}

    query, plan = case(0)
    assert failures(verdict(rules, 0, lambda plan: None, **asked(transportation="no flight"))) == {
        "valid_transportation"
    }
    assert failures(verdict(rules, 0, lambda plan: None, **asked(transportation="no self-driving"))) == set()
    beds = WORLD.database.accommodations[query.dest]
    shared_bed = next(bed for bed in beds if bed.row["room type"] == "Shared room" and bed.minimum_nights <= 2)

    def sleep(bed: Any) -> Callable[[Plan], object]:
        def change(plan: Plan) -> None:
            for day in plan[:2]:
                day["accommodation"] = f"{bed.name}, {query.dest}"

        return change

    for room, passes in (("shared room", True), ("not shared room", False), ("entire room", False)):
        result = failures(verdict(rules, 0, sleep(shared_bed), **asked(**{"room type": room})))
        assert result == (set() if passes else {"valid_room_type"})
    strict = [bed for bed in beds if bed.row["house_rules"].startswith("No ") and bed.minimum_nights <= 2]
    for bed in strict:
        rule = bed.row["house_rules"].split(" & ")[0].removeprefix("No ")
        assert failures(verdict(rules, 0, sleep(bed), **asked(**{"house rule": rule}))) == {"valid_room_rule"}
    served = {
        cuisine
        for meal in (plan[0]["dinner"], *(plan[1][name] for name in ("breakfast", "lunch", "dinner")))
        for one in WORLD.database.restaurants[query.dest]
        if meal.startswith(one.name + ",")
        for cuisine in one.row["Cuisines"].split(", ")
    }
    others = {"Chinese", "American", "Italian", "Mexican", "Indian", "Mediterranean", "French", "Thai"} - served
    assert failures(verdict(rules, 0, lambda plan: None, **asked(cuisine=sorted(served)))) == set()
    assert failures(verdict(rules, 0, lambda plan: None, **asked(cuisine=[min(others)]))) == {"valid_cuisine"}


@pytest.mark.parametrize("rules", list(Rules))
def test_a_bed_for_fewer_nights_than_its_minimum_fails(rules: Rules) -> None:
    # A bed for three nights or more in the city of one of the trips of three days.
    idx, bed = next(
        (idx, bed)
        for idx in range(12)
        for bed in WORLD.database.accommodations[case(idx)[0].dest]
        if bed.minimum_nights > 2
    )
    query, _ = case(idx)

    def change(plan: Plan) -> None:
        for day in plan[:2]:
            day["accommodation"] = f"{bed.name}, {query.dest}"

    empty = dict.fromkeys(("house rule", "cuisine", "room type", "transportation"))
    result = failures(verdict(rules, idx, change, budget=100_000, local_constraint=empty))
    assert result == {"is_valid_accommodation"}


@pytest.mark.parametrize("rules", list(Rules))
@pytest.mark.parametrize("plan", [None, [], {}, "a plan", 3])
def test_what_is_no_plan_has_no_checks(rules: Rules, plan: Any) -> None:
    assert Evaluator(WORLD.database, rules).evaluate(case(0)[0], plan) == PlanVerdict(None, None, False)


@pytest.mark.parametrize("rules", list(Rules))
def test_no_plan_of_any_shape_raises(rules: Rules) -> None:
    generator, evaluator = random.Random(0), Evaluator(WORLD.database, rules)
    query, gold = case(24)
    junk: list[Any] = [
        None, 0, 1.5, True, "", "-", "from ", "from A to B", ",", ";;", "Flight Number: , from A to B", [], {}, [[]],
        {"a": None}, "(", "Taxi", "\x00", "x" * 10_000,
    ]  # fmt: skip
    for _ in range(2_000):
        plan = copy.deepcopy(gold)
        for _ in range(generator.randrange(1, 6)):
            place = generator.randrange(len(plan))
            if generator.random() < 0.1:
                plan[place] = generator.choice(junk)
            elif isinstance(plan[place], dict) and plan[place]:
                plan[place][generator.choice(sorted(plan[place]))] = generator.choice(junk)
        result = evaluator.evaluate(query, plan)
        assert result.commonsense is not None
        assert list(result.commonsense) == list(COMMONSENSE)


def test_texts_are_read_by_the_rules() -> None:
    assert from_to("Self-driving, from St. Louis to Fort Worth, cost: 3") == ("St. Louis", "Fort Worth")
    assert from_to("to B from A") is None
    assert name_and_city("Smith, Jones, and Co, Denver (other menu)", OFFICIAL) == ("Smith, Jones, and Co", "Denver")
    assert name_and_city("Smith, Denver (other menu)", AGENT_STAR) == ("Smith", "Denver (other menu)")
    assert name_and_city("Smith in Denver", OFFICIAL) is None
    assert flight_number("flight number: F123, from A to B") == "F123"


@pytest.mark.timeout(60)
@pytest.mark.parametrize("unit", [" ", "from ", " to ,", "from a", "(", "\n"])
def test_a_hostile_text_is_searched_in_no_more_than_its_length(unit: str) -> None:
    long = unit * 100_000
    assert from_to(f"from{long}") is None
    assert from_to(f"from A{long}") is None


@pytest.mark.parametrize(
    ("text", "cities"),
    [
        ("from  Home   to  Alder, x", ("Home", "Alder")),
        ("from to to Alder", ("to", "Alder")),
        ("from A to B to C", ("A", "B to C")),
        ("from A to , x", None),
        ("from A", None),
    ],
)
def test_from_to_takes_the_shortest_start_and_ends_at_a_comma(text: str, cities: tuple[str, str] | None) -> None:
    assert from_to(text) == cities


@pytest.mark.timeout(60)
@pytest.mark.parametrize("start", ["Day 1", "Day 1:\nLunch: x", "Lunch"])
def test_a_hostile_line_is_no_plan_at_once(start: str) -> None:
    plan = read_plan(f"{start}{' ' * 150_000}x")
    assert plan is None or list(plan[0]) == ["days", "lunch"]
