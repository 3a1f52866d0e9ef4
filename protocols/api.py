"""The toolkit from Python: run a study, read a run, estimate, audit.

Nothing here needs an event loop, so all of it works in a notebook::

    import handoff

    study = handoff.run("sokoban", cross=["sft", "rl"], policies={"sft": "noisy:0.5", "rl": "expert"}, tasks=6)
    estimates = handoff.estimate(study)
    print(estimates.get("interaction", a="sft", b="rl", c="sft", d="rl"))
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import Any

from handoff.auditing.checks import Audit
from handoff.episodes.start import Where
from handoff.errors import UsageError
from handoff.estimation.bootstrap import Estimates
from handoff.estimation.bootstrap import estimate as estimate_table
from handoff.estimation.estimands import Estimand
from handoff.estimation.method import Intervals
from handoff.estimation.table import Table
from handoff.estimation.table_csv import read_csv
from handoff.guard.adapter import load as load_adapter
from handoff.policies.bindings import own_options, require_name, resolve
from handoff.policies.language.options import ModelOptions
from handoff.policies.policy import Policy
from handoff.progress import Progress
from handoff.protocols.audit import audit_run
from handoff.protocols.registry import load as load_run
from handoff.protocols.registry import load_protocol
from handoff.runs.register import register as register_plan
from handoff.runs.run import Run


def _path(given: object) -> Path:
    """``given`` as a path.  Raises :class:`~handoff.errors.UsageError` for what is none."""
    if not isinstance(given, str | PathLike) or "\0" in str(given):
        raise UsageError(f"{given!r:.60} is no path")
    return Path(given).absolute()  # an adapter may change the working folder


def load(folder: str | Path) -> Any:
    """Read the run in ``folder`` (:func:`handoff.protocols.registry.load`)."""
    return load_run(_path(folder))


def run(
    environment: str,
    *,
    policies: Mapping[str, str | Policy] | None = None,
    cross: Sequence[str] | None = None,
    protocol: str = "frontier",
    options: Mapping[str, Any] | None = None,
    models: Mapping[str, Any] | None = None,
    out: str | Path | None = None,
    register: str | Path | None = None,
    workers: int | None = None,
    ray: str | None = None,
    step_timeout: float | None = None,
    progress: Progress | None = None,
    **settings: Any,
) -> Any:
    """Run a study of ``protocol`` on ``environment`` and read it back, or go on with it where it was left.

    ``policies`` are specs (or :class:`~handoff.policies.policy.Policy` objects) by name; ``cross`` names policies that
    have every role (else give ``reachers`` and ``solvers``).  ``options`` are the environment's, ``models`` the options
    of all language models, ``settings`` the fields of the protocol's configuration, such as ``tasks`` and ``depth``.
    ``out`` is the run folder (default: ``runs/ENVIRONMENT-DIGEST``), ``register`` a file for the plan, written before
    the first episode (:mod:`handoff.runs.register`).  One call of the environment may take ``step_timeout`` seconds
    (``None``: any).

    Returns the protocol's study: of the protocol ``frontier`` a :class:`~handoff.protocols.frontier.study.Study`.
    Raises :class:`~handoff.errors.UsageError` for a wrong request and :class:`~handoff.errors.Interrupted` if the work
    was cut short; the same call goes on from there.
    """
    folder, plan = (None if path is None else _path(path) for path in (out, register))
    design, adapter = load_protocol(protocol), load_adapter(environment)
    bound = dict(policies or {})
    for name, spec in bound.items():
        require_name(name)
        if not isinstance(spec, str | Policy):
            raise UsageError(f"policy {name!r} is bound to {spec!r:.60}, which is no spec and no policy")
    values: dict[str, Any] = {"split": adapter.splits[0], **settings}
    for role, given in [(role, values.get(role, ())) for role in design.roles] + [("cross", cross or ())]:
        if isinstance(given, str) or not isinstance(given, Sequence):
            raise UsageError(f"{role} is a list of names, not {given!r:.60}")
    if cross is not None:
        values |= dict.fromkeys(design.roles, tuple(cross))
    elif len(design.roles) == 1:
        values.setdefault(design.roles[0], tuple(bound))
    for role in design.roles:
        values[role] = tuple(values.get(role, ()))
    known = {one.field for one in design.settings()}
    unknown = sorted(set(values) - known - set(design.roles))
    if unknown:
        raise UsageError(f"protocol {protocol!r} has no setting {unknown[0]!r} (it has: {', '.join(sorted(known))})")
    config = design.configure(values)
    names = design.policies(config)
    specs = resolve(
        [name for name in names if not isinstance(bound.get(name), Policy)],
        {name: spec for name, spec in bound.items() if isinstance(spec, str)},
        adapter.policies,
    )
    chosen = {name: specs[name] if name in specs else bound[name] for name in names}
    model_options = {name: ModelOptions(**{**own_options(spec), **(models or {})}) for name, spec in specs.items()}
    where = Where(workers=workers, ray=ray, step_timeout=step_timeout)
    prepared = design.prepare(
        environment, dict(options or {}), config, chosen, model_options, step_timeout=step_timeout
    )
    folder = prepared.default_folder if folder is None else folder
    if plan is not None:
        register_plan(plan, prepared.identity, len(prepared.plan), folder)
    prepared.run(folder, where, progress)
    return design.read(folder)


def estimate(
    table: Table | Run | str | Path,
    estimands: Sequence[Estimand] | None = None,
    *,
    interval: str = "default",
    draws: int = 100_000,
    seed: int = 0,
    level: float = 0.95,
) -> Estimates:
    """Every estimand of a table with its interval (:func:`handoff.estimation.bootstrap.estimate`).

    ``table`` is a study of the protocol ``frontier``, its folder, a CSV file or a table.
    """
    if not isinstance(table, Table | Run):
        path = _path(table)
        table = load_run(path) if path.is_dir() else read_csv(path)
    if isinstance(table, Run):
        crossing = getattr(table, "table", None)
        if not isinstance(crossing, Table):
            raise UsageError(f"{table.folder} has no table of reachers and solvers to estimate from")
        table = crossing
    return estimate_table(table, estimands, Intervals(interval, draws, seed, level))


def audit(
    folder: str | Path,
    *,
    options: Mapping[str, Any] | None = None,
    workers: int | None = None,
    ray: str | None = None,
    step_timeout: float | None = None,
    replay: bool = True,
    templates: Sequence[str] = (),
    register: str | Path | None = None,
    progress: Progress | None = None,
) -> Audit:
    """Audit the run in ``folder`` (:func:`handoff.protocols.audit.audit_run`)."""
    where = Where(workers=workers, ray=ray, step_timeout=step_timeout)
    plan = None if register is None else _path(register)
    return audit_run(_path(folder), options, where, progress, replay, templates, plan)


__all__ = ["audit", "estimate", "load", "run"]
