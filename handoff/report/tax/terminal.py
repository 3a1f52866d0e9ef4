"""The sharpening tax on the terminal."""

from __future__ import annotations

from rich.console import Console
from rich.table import Table as Grid
from rich.text import Text

from handoff.passk.comparison import Contribution, EarlyEstimate, TaxComparison, TaxEstimate
from handoff.passk.routing import Routing
from handoff.report.tax.sentences import names


def _number(value: float | None, digits: int = 3) -> str:
    return "–" if value is None else f"{value:.{digits}f}"


def _percent(value: float | None) -> str:
    return "–" if value is None else f"{100 * value:.1f}%"


def _interval(estimate: TaxEstimate, percent: bool = False) -> str:
    show = _percent if percent else _number
    if estimate.point is None:
        return f"undefined ({estimate.reason})"
    if estimate.low is None:
        return f"{show(estimate.point)} (no interval: {estimate.interval_reason})"
    ends = f"{show(estimate.point)} [{show(estimate.low)}, {show(estimate.high)}]"
    return f"{ends} (all draws alike)" if estimate.degenerate else ends


def _grid(*columns: str) -> Grid:
    grid = Grid(header_style="")
    for index, column in enumerate(columns):
        grid.add_column(column, justify="left" if index == 0 else "right")
    return grid


def _row(grid: Grid, *cells: object) -> None:
    grid.add_row(*(Text(str(cell)) for cell in cells))  # Text: names are data, never markup


def _say(console: Console, text: str, style: str | None = None) -> None:
    console.print(text, style=style, markup=False, highlight=False, soft_wrap=True)


def _budgets(budget: int) -> list[int]:
    """1, 2, 4, ... and K."""
    return sorted({*(2**i for i in range(budget.bit_length()) if 2**i <= budget), budget})


def show(console: Console, compared: TaxComparison, routed: Routing, early: EarlyEstimate | None) -> None:
    """Everything that ``handoff tax`` says, as tables."""
    base, post, k = compared.base, compared.post, compared.budget
    _say(
        console,
        f"{' -> '.join(names(base.name, post.name))}: {compared.tasks} tasks, budget K = {k} rollouts",
        style="bold",
    )
    _say(console, f"{compared.level:.0%} intervals from {compared.draws} paired draws of tasks, seed {compared.seed}\n")

    grid = _grid(
        "k", *(f"{metric} {name}" for metric in ("pass@k", "pass^k") for name in ("base", "post")), "Tax_A", "Tax_S"
    )
    for at in _budgets(k):
        curves = (base.pass_at_k, post.pass_at_k, base.pass_hat_k, post.pass_hat_k)
        taxes = (compared.tax_a_by_k[at - 1].point, compared.tax_s_by_k[at - 1].point)
        _row(grid, at, *(_percent(curve[at - 1]) for curve in curves), *(_number(value) for value in taxes))
    console.print(grid)

    grid = _grid(f"at K = {k}", "base", "post")
    _row(grid, "raw scalability A", _interval(base.scalability), _interval(post.scalability))
    _row(grid, "calibrated S", _interval(base.calibrated), _interval(post.calibrated))
    _row(grid, "coverage pass@K", _interval(base.coverage, True), _interval(post.coverage, True))
    _row(grid, "budget-averaged coverage", _interval(base.mean_coverage, True), _interval(post.mean_coverage, True))
    _row(grid, "never solved", _percent(base.never_solved), _percent(post.never_solved))
    _row(grid, "always solved", _percent(base.always_solved), _percent(post.always_solved))
    console.print(grid)

    grid = _grid("sharpening tax", "estimate")
    _row(grid, "Tax_A", _interval(compared.tax_a))
    _row(grid, "  lost: solved by the base only", f"{_interval(compared.lost)}  {compared.tasks_lost} tasks")
    _row(
        grid,
        "  gained: solved by the post-trained only",
        f"{_interval(compared.gained)}  {compared.tasks_gained} tasks",
    )
    _row(grid, "  shape: solved by both", f"{_interval(compared.shape)}  {compared.tasks_both} tasks")
    _row(grid, "  K x gap of ceilings", _interval(compared.ceiling))
    _row(grid, "  less K x gap of averaged coverage", _interval(compared.averaged))
    _row(grid, "Tax_S", _interval(compared.tax_s))
    _row(grid, "coverage lost", _interval(compared.coverage_lost, True))
    _row(grid, "efficiency gained", _interval(compared.efficiency_gained, True))
    at_k = str(compared.crossover) if compared.crossover else compared.crossover_reason
    _row(grid, "base overtakes at k", f"{at_k} (within K in {_percent(compared.crossed_share)} of draws)")
    console.print(grid)

    _show_tasks(console, "highest", compared.highest)
    _show_tasks(console, "lowest", compared.lowest)

    _say(
        console,
        f"\nRouting, pilot of {routed.pilot} rollouts of both policies (means over {routed.pilots} pilots)",
        style="bold",
    )
    grid = _grid(
        "rule",
        "pass@1",
        f"pass@{routed.budget}",
        "to the base",
        "rollouts a task",
        f"at {routed.budget} rollouts in all",
    )
    for route in routed.routes:
        _row(
            grid, route.rule, _percent(route.pass_1), _percent(route.pass_k), _percent(route.to_base), route.rollouts,
            _percent(route.equal_cost),
        )  # fmt: skip
    console.print(grid)
    if early is not None:
        _say(console, f"\nTax_S at {early.early} rollouts against Tax_S at {early.late}", style="bold")
        grid = _grid("pair", f"Tax_S({early.early})", f"Tax_S({early.late})")
        for name, first, second in early.pairs:
            _row(grid, name, _number(first), _number(second))
        console.print(grid)
        _say(console, f"rank correlation: {_number(early.rho)}" + (f" ({early.reason})" if early.reason else ""))


def _show_tasks(console: Console, which: str, tasks: tuple[Contribution, ...]) -> None:
    if not tasks:
        return
    grid = _grid(f"{which} part of Tax_S", "part", "base c/n", "post c/n")
    for task in tasks:
        _row(grid, task.name, _number(task.contribution), "/".join(map(str, task.base)), "/".join(map(str, task.post)))
    console.print(grid)
