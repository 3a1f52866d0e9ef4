"""Seeded task sets: layouts drawn by number and kept by their distance to success, no two alike in any orientation."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TypeVar

from handoff.canonical import digest
from handoff.records import Task

Layout = TypeVar("Layout")


def symmetries(rows: Sequence[str]) -> Iterator[tuple[str, ...]]:
    """The eight layouts that are this one, turned or mirrored."""
    turned = tuple(rows)
    for _ in range(4):
        turned = tuple("".join(column) for column in zip(*turned[::-1], strict=True))
        yield turned
        yield tuple(row[::-1] for row in turned)


def seeded_tasks(
    environment: str,
    noun: str,
    splits: Mapping[str, int],
    types: Mapping[str, range],
    draw: Callable[[str, int], Layout | None],
    rows: Callable[[Layout], Sequence[str]],
    distance: Callable[[Layout], int],
) -> dict[str, dict[str, tuple[Task, Layout]]]:
    """All tasks with their layouts, by split and by the task's id.

    ``splits`` gives the number of layouts per type, ``types`` the range of distances to success per type, and ``draw``
    the layout of a number in a split.  A task's id is the digest of ``environment`` and, under the key ``noun``, the
    rows.
    """
    forms: set[tuple[str, ...]] = set()
    catalogue: dict[str, dict[str, tuple[Task, Layout]]] = {}
    for split, count in splits.items():
        by_type: dict[str, list[Layout]] = {kind: [] for kind in types}
        attempt = 0
        while any(len(layouts) < count for layouts in by_type.values()):
            layout = draw(split, attempt)
            attempt += 1
            if layout is None:
                continue
            kind = next((kind for kind, moves in types.items() if distance(layout) in moves), None)
            if kind is None or len(by_type[kind]) == count:
                continue
            form = min(symmetries(rows(layout)))
            if form not in forms:
                forms.add(form)
                by_type[kind].append(layout)
        catalogue[split] = {}
        for kind, layouts in by_type.items():
            for number, layout in enumerate(layouts):
                task = Task(
                    id=digest({"environment": environment, noun: list(rows(layout))}),
                    name=f"{environment}-{split}-{kind}-{number:02d}",
                    type=kind,
                    split=split,
                    source=f"{split}/{kind}/{number:02d}",
                )
                catalogue[split][task.id] = task, layout
    return catalogue


def find(catalogue: Mapping[str, Mapping[str, tuple[Task, Layout]]], task: Task) -> Layout | None:
    """The layout of a task, by its id alone; ``None`` if there is none."""
    return next((layouts[task.id][1] for layouts in catalogue.values() if task.id in layouts), None)
