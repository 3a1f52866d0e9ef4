"""The sharpening tax in words: formats, and the sentences of its page, each made from the numbers that it states."""

from __future__ import annotations

from typing import Any

from handoff.report.format import MINUS, NONE, Json, interval, percent, plural, points, sign


def names(base: str, post: str) -> tuple[str, str]:
    """What the two policies are called beside each other."""
    return (base, post) if base != post else (f"{base} (base)", f"{post} (post)")


def value(estimate: Json) -> Json:
    """An :class:`handoff.passk.comparison.TaxEstimate` as the report's tables and figures take values."""
    note = estimate["reason"] or estimate["interval_reason"]
    ends = {end: estimate[end] for end in ("point", "low", "high")}
    return {**ends, "numerator": None, "denominator": None, "note": note}


def exact(point: float | None) -> Json:
    """A value without an interval."""
    return {"point": point, "low": None, "high": None, "numerator": None, "denominator": None, "note": None}


def number(figure: float | None, digits: int = 3) -> str:
    if figure is None:
        return NONE
    text = f"{figure:.{digits}f}"
    return text.removeprefix("-") if float(text) == 0 else text.replace("-", MINUS)


def ends(found: Json, digits: int = 3) -> str:
    """``[low, high]``; empty where there is none."""
    if found["low"] is None or found["high"] is None:
        return ""
    return f"[{number(found['low'], digits)}, {number(found['high'], digits)}]"


def with_ends(found: Json, digits: int = 3) -> str:
    """``0.123 [0.045, 0.201]``."""
    return f"{number(found['point'], digits)} {ends(found, digits)}".strip()


def percent_with_ends(found: Json) -> str:
    return f"{percent(found['point'])} {interval(found)}".strip()


def points_with_ends(found: Json) -> str:
    """``+12.3 points [4.5, 20.1]``."""
    unit = "" if found["point"] is None else " points"
    return f"{points(found['point'])}{unit} {interval(found)}".strip()


def sentences(numbers: Json) -> dict[str, list[str]]:
    """The sentences of each section."""
    found = {
        "verdict": [verdict(numbers), trade(numbers)],
        "curves": curves(numbers),
        "scalability": scalability(numbers),
        "parts": parts(numbers),
        "tasks": tasks(numbers),
        "trade": [trade(numbers), *_pairs(numbers)],
        "early": early(numbers),
        "routing": routing(numbers),
        "intervals": [intervals(numbers["comparison"])],
    }
    return {section: [sentence for sentence in said if sentence] for section, said in found.items()}


def verdict(numbers: Json) -> str:
    """Whether there is a sharpening tax, by its interval."""
    compared, (base, post) = numbers["comparison"], numbers["names"]
    tax, k = compared["tax_s"], compared["budget"]
    if tax["point"] is None:
        return f"The sharpening tax is undefined: {tax['reason']}."
    of = (
        f"from {base} to {post}, calibrated scalability S({k}) goes from "
        f"{number(compared['base']['calibrated']['point'])} to {number(compared['post']['calibrated']['point'])}, "
        f"Tax_S {with_ends(tax)}"
    )
    direction = sign(tax)
    if tax["low"] is None:
        return f"Without an interval: {of}."
    if direction > 0:
        return f"There is a sharpening tax: {of}."
    if direction < 0:
        return f"There is none, retries gained: {of}."
    return f"Not resolved: {of}, an interval that is not on one side of zero."


def trade(numbers: Json) -> str:
    compared, (base, post) = numbers["comparison"], numbers["names"]
    k, one, other = compared["budget"], compared["base"], compared["post"]
    return (
        f"A rollout succeeds in {percent(one['pass_at_k'][0])} with {base} and {percent(other['pass_at_k'][0])} with "
        f"{post}, {points_with_ends(compared['efficiency_gained'])}; {k} rollouts cover "
        f"{percent(one['coverage']['point'])} of the tasks with {base} and {percent(other['coverage']['point'])} with "
        f"{post}, {points_with_ends(_negated(compared['coverage_lost']))}."
    )


def _negated(found: Json) -> Json:
    low, high = found["low"], found["high"]
    return {
        "point": None if found["point"] is None else -found["point"],
        "low": None if high is None else -high,
        "high": None if low is None else -low,
    }


def curves(numbers: Json) -> list[str]:
    compared, (base, _) = numbers["comparison"], numbers["names"]
    k = compared["budget"]
    share = f"in {percent(compared['crossed_share'])} of the draws it is ahead at some k up to {k}"
    if compared["crossover"] is None:
        crossing = f"{base}'s pass@k is greater at no k up to {k}; {share}."
    else:
        crossing = f"{base}'s pass@k is first the greater one at k = {compared['crossover']}; {share}."
    average = (
        f"Averaged over all budgets up to {k}, coverage is {percent_with_ends(compared['base']['mean_coverage'])} and "
        f"{percent_with_ends(compared['post']['mean_coverage'])}."
    )
    return [
        (
            f"pass@k is the share of tasks that at least one of k rollouts solves, pass^k the share that all k solve. "
            f"{crossing}"
        ),
        average,
    ]


def scalability(numbers: Json) -> list[str]:
    compared, (base, post) = numbers["comparison"], numbers["names"]
    k = compared["budget"]
    first = (
        f"Raw scalability A({k}) is the number of failed attempts before a success within {k} rollouts: "
        f"{with_ends(compared['base']['scalability'], 2)} for {base} and "
        f"{with_ends(compared['post']['scalability'], 2)} for {post}, so Tax_A is {with_ends(compared['tax_a'], 2)}."
    )
    return [first, "Calibrated scalability S sets it against all attempts that could have failed: 1 is the most."]


def parts(numbers: Json) -> list[str]:
    compared, (base, post) = numbers["comparison"], numbers["names"]
    lost, gained, shape, ceiling, averaged = (
        number(compared[part]["point"], 2) for part in ("lost", "gained", "shape", "ceiling", "averaged")
    )
    of_lost, of_gained, of_both = (plural(compared[f"tasks_{which}"], "task") for which in ("lost", "gained", "both"))
    three = (
        f"Tax_A is the sum of three parts: {lost} from {of_lost} that only {base} ever solves, {gained} from "
        f"{of_gained} that only {post} does, and {shape} from {of_both} that both do."
    )
    two = (
        f"By Eq. 8 it is also K times the gap of coverage, {ceiling}, less K times the gap of budget-averaged "
        f"coverage, {averaged}."
    )
    return [three, two]


def tasks(numbers: Json) -> list[str]:
    compared, (base, post) = numbers["comparison"], numbers["names"]
    found = []
    each = [row["contribution"] for row in numbers["contributions"]]
    if each:
        positive = sum(part > 0 for part in each)
        negative = sum(part < 0 for part in each)
        found.append(
            f"Tax_S is the mean of the tasks' parts (Eq. 10): {positive} of {len(each)} are positive, {negative} "
            f"negative and {len(each) - positive - negative} zero."
        )
    never, always = ([compared[side][f"{which}_solved"] for side in ("base", "post")] for which in ("never", "always"))
    found.append(
        f"{base} never solves {percent(never[0])} of the tasks and always solves {percent(always[0])}; for {post} "
        f"these shares are {percent(never[1])} and {percent(always[1])}."
    )
    return found


def _pairs(numbers: Json) -> list[str]:
    rows = numbers["trade"]
    if len(rows) < 2:
        return []
    both = sum(row["coverage_lost"]["point"] > 0 and row["efficiency_gained"]["point"] > 0 for row in rows)
    return [f"Of {len(rows)} pairs, {both} gained efficiency and lost coverage."]


def early(numbers: Json) -> list[str]:
    found = numbers["early"]
    if found is None:
        compared = numbers["comparison"]
        if compared["budget"] < 16:
            return []
        taxes = compared["tax_s_by_k"]
        return [
            (
                f"At 8 rollouts Tax_S is {with_ends(taxes[7])}, at {compared['budget']} it is {with_ends(taxes[-1])}. "
                "How well the early one ranks policies can be told from further pairs only (--pair)."
            )
        ]
    told = f"their rank correlation over {plural(len(found['pairs']), 'pair')} is {number(found['rho'])}"
    if found["rho"] is None:
        told = f"there is no rank correlation ({found['reason']})"
    return [f"Tax_S at {found['early']} rollouts against Tax_S at {found['late']}: {told}."]


def routing(numbers: Json) -> list[str]:
    found, (base, post) = numbers["routing"], numbers["names"]
    rules: dict[str, Any] = {row["rule"]: row for row in found["routes"]}
    tax, oracle, k = rules["tax"], rules["oracle"], found["budget"]
    equal = (
        f"At an equal cost of {k} rollouts a task it covers {percent(tax['equal_cost'])}."
        if tax["equal_cost"] is not None
        else f"At an equal cost nothing is left: {tax['reason']}."
    )
    return [
        (
            f"Sending each task to the policy that a pilot of {found['pilot']} rollouts of both speaks for covers "
            f"{percent(tax['pass_k'])} of the tasks with {k} rollouts of the chosen one, and costs {tax['rollouts']} "
            f"rollouts a task; {base} alone covers {percent(rules['base']['pass_k'])}, {post} alone "
            f"{percent(rules['post']['pass_k'])}, and an oracle {percent(oracle['pass_k'])}."
        ),
        equal,
        f"Numbers of the tax rule are means over {plural(found['pilots'], 'random pilot')}.",
    ]


def intervals(compared: Json) -> str:
    return (
        f"Intervals are {compared['level']:.0%} percentiles of {plural(compared['draws'], 'bootstrap draw')} of tasks, "
        f"seed {compared['seed']}; both policies' counts of a drawn task come together. Bands are pointwise."
    )


def source(side: Json) -> str:
    """What a policy's counts are."""
    low, high = side["rollouts"]
    each = f"{low}" if low == high else f"{low} to {high}"
    return f"{each} rollouts a task" + (f" ({side['remark']}; pilots are not counted)" if side["remark"] else "")
