"""``handoff plan``: how many tasks and seeds a study needs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import attrs
import click

from handoff.cli import bootstrap_options, numbers, options
from handoff.cli.settings import options_of
from handoff.estimation.method import Intervals


@click.command(
    epilog="""\b
Examples:
  handoff plan --reach sft=0.13 --reach rl=0.82 --solve sft=0.55 --solve rl=0.95 --half-width 0.1
  handoff plan --reach sft=0.13 --reach rl=0.82 --solve sft/sft=0.44 --solve sft/rl=0.93 \\
               --solve rl/sft=0.58 --solve rl/rl=0.95 --power 0.9 --seeds 1,4,16
  handoff plan --pilot pilot.csv --power 0.8 --estimand survivor_interaction
  handoff plan --pilot pilot.csv --equivalence 10 --power 0.8

Solve is guessed by solver, or by reacher/solver where it depends on who reached the state."""
)
@click.option("--reach", "reach", multiple=True, metavar="NAME=RATE", help="Guess of a reacher's Reach; repeats.")
@click.option("--solve", "solve", multiple=True, metavar="[REACHER/]SOLVER=RATE", help="Guess of Solve; repeats.")
@click.option("--pilot", type=options.PATH, metavar="TABLE", help="Pilot study instead of guesses.")
@click.option(
    "--half-width", type=numbers.RATE, metavar="W", help="Wanted half-width of the interval: 0.1 is ten points."
)
@click.option("--power", type=numbers.RATE, metavar="P", help="Wanted chance that the interval excludes 0.")
@click.option(
    "--equivalence", type=numbers.Real(0, 200), metavar="POINTS",
    help="Plan a transport instead: both splits' tasks, to show a residual within so many points of 0.",
)  # fmt: skip
@click.option(
    "--estimand", default="interaction", show_default=True, help="What is planned for; an unknown name lists all."
)
@click.option("--pair", metavar="A,B", help="The contrast A to B.  [default: the first two]")
@click.option("--seeds", default="4", show_default=True, metavar="LIST", help="Seed slots; one curve each.")
@click.option("--types", type=numbers.Whole(1, 1000), default=6, show_default=True, help="Task types, with guesses.")
@click.option(
    "--spread", type=numbers.Real(0, 4), default=1.0, show_default=True,
    help="How much tasks of a type differ (s.d. on the logit scale), with guesses.",
)  # fmt: skip
@click.option(
    "--pairing", type=numbers.Real(0, 1),
    help="Share of seeds on which paired arms act on one random number.  [default: learned from a pilot, else 0.5]",
)  # fmt: skip
@click.option("--repeats", type=numbers.Whole(10, 100_000), default=200, show_default=True, help="Studies per size.")
@click.option("--max-tasks", type=numbers.Whole(2, 10_000), default=100, show_default=True, help="Most tasks per type.")
@options_of(Intervals, leave_out=("draws",))
@options.as_json
def plan(
    reach: tuple[str, ...],
    solve: tuple[str, ...],
    pilot: Path | None,
    half_width: float | None,
    power: float | None,
    equivalence: float | None,
    estimand: str,
    pair: str | None,
    seeds: str,
    types: int,
    spread: float,
    pairing: float | None,
    repeats: int,
    max_tasks: int,
    intervals: dict[str, Any],
    as_json: bool,
) -> None:
    """How many tasks (and seeds) give a wanted half-width or power, by simulating studies of growing size."""
    from handoff.cli import inputs
    from handoff.cli.output import console
    from handoff.errors import UsageError
    from handoff.planning import population
    from handoff.planning import power as planning
    from handoff.planning.pairing import ASSUMED, Pairing, learned
    from handoff.report import statistics

    if (pilot is None) == (not reach and not solve):
        raise UsageError("give guesses (--reach and --solve) or a pilot's table (--pilot), one of them")
    told: Pairing | None = None
    if pilot is not None:
        table = inputs.load_table(pilot)
        design = population.from_pilot(table)
        if pairing is None:
            told = learned(table, design)
            pairing = told.share
        design = attrs.evolve(design, pairing=pairing)
    else:
        guesses = population.spread_out(
            bootstrap_options.assigned("--reach", reach), bootstrap_options.assigned("--solve", solve)
        )
        share = ASSUMED if pairing is None else pairing
        design = population.from_guesses(*guesses, types=types, spread=spread, pairing=share)
    question = planning.question(estimand, design, *(bootstrap_options.names(pair) or ()))
    sizes = [size for size in planning.SIZES if size < max_tasks] + [max_tasks]
    slot_numbers = bootstrap_options.whole_numbers("--seeds", seeds, 10_000) or []
    quick = attrs.evolve(planning.QUICK, **intervals)
    if equivalence is not None:
        if half_width is not None:
            raise UsageError("--equivalence is planned for a power, not for a half-width")
        asked = dict(question.arguments)
        both, wanted = (str(asked["a"]), str(asked["b"])), 0.8 if power is None else power
        curves = [
            planning.equivalence_curve(
                design, both, slots, equivalence / 100, wanted, sizes=sizes, repeats=repeats, intervals=quick
            )
            for slots in slot_numbers
        ]
    else:
        curves = [
            planning.curve(
                design,
                question,
                slots,
                half_width=half_width,
                power=power,
                sizes=sizes,
                repeats=repeats,
                intervals=quick,
            )
            for slots in slot_numbers
        ]
    if as_json:
        form: dict[str, Any] = {"curves": [one.to_json() for one in curves]}
        if told is not None:
            form["pairing"] = attrs.asdict(told)
        click.echo(json.dumps(form, indent=2, allow_nan=False))
        return
    if told is not None:
        click.echo(str(told))
    for one in curves:
        statistics.show_curve(console(), one)
