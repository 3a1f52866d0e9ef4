"""What both trainings need: a clock, a journal, saving so that a killed training goes on, the last checkpoint."""

from __future__ import annotations

import argparse
import hashlib
import json
import platform
import time
from importlib import metadata
from pathlib import Path
from typing import Any

import torch
from arguments import differing, refuse, stated
from network import Words, save


class Clock:
    """Seconds of CPU and of the wall that the training took, over all its sittings."""

    def __init__(self) -> None:
        self._before = (0.0, 0.0)
        self._start = (time.process_time(), time.perf_counter())

    def now(self) -> tuple[float, float]:
        return (
            self._before[0] + time.process_time() - self._start[0],
            self._before[1] + time.perf_counter() - self._start[1],
        )

    def cpu(self) -> float:
        return round(self.now()[0], 1)

    def go_on(self, before: tuple[float, float]) -> None:
        self._before = before


class Journal:
    """The training curve: one JSON object a line in ``curve.jsonl``."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._path = folder / "curve.jsonl"

    def note(self, **values: Any) -> None:
        line = json.dumps({k: round(v, 4) if isinstance(v, float) else v for k, v in values.items()})
        print(line, flush=True)
        with self._path.open("a", encoding="utf-8") as file:
            file.write(line + "\n")

    def cut(self, key: str, last: int) -> None:
        """Forget what was noted after ``last``: it will be done again."""
        if self._path.exists():
            lines = self._path.read_text("utf-8").splitlines()
            lines = [line for line in lines if json.loads(line)[key] <= last]
            self._path.write_text("".join(line + "\n" for line in lines), "utf-8")


def suspend(
    folder: Path,
    given: argparse.Namespace,
    model: torch.nn.Module,
    optimizer: Any,
    clock: Clock,
    step: int,
    **more: Any,
) -> None:
    """Save everything that :func:`resume` needs; whole or not at all."""
    state = {"model": model.state_dict(), "optimizer": optimizer.state_dict(), "clock": clock.now(), "step": step}
    state["arguments"] = stated(given)
    half = folder / "state.half"
    torch.save({**state, **more}, half)
    half.replace(folder / "state.pt")


def resume(
    folder: Path, given: argparse.Namespace, model: torch.nn.Module, optimizer: Any, clock: Clock
) -> dict[str, Any]:
    """Load what :func:`suspend` saved, if it did.  Returns ``step``, the number of steps that are done, and whatever
    else was saved; an empty dictionary for a new training.

    Ends the script if the training is finished, or if ``folder`` holds another one or anything else.
    """
    path, finished = folder / "state.pt", folder / "training.json"
    if finished.exists():
        if other := differing(json.loads(finished.read_text("utf-8"))["arguments"], stated(given)):
            refuse(f"{folder} holds a training with other arguments ({other} differ); give another --out")
        print(f"{folder} is finished")
        raise SystemExit(0)
    if not path.exists():
        if {entry.name for entry in folder.iterdir()} - {"curve.jsonl", "state.half"}:
            refuse(f"{folder} is not empty and holds no training; give another --out")
        Journal(folder).cut("step", 0)
        return {}
    state: dict[str, Any] = torch.load(path, weights_only=True)
    if other := differing(state.pop("arguments"), stated(given)):
        refuse(f"{folder} holds a training with other arguments ({other} differ); give another --out")
    model.load_state_dict(state.pop("model"))
    optimizer.load_state_dict(state.pop("optimizer"))
    clock.go_on(tuple(state.pop("clock")))
    Journal(folder).cut("step", state["step"])
    return state


def digest(path: Path) -> str:
    """Of a file's content.  Ends the script if it cannot be read."""
    try:
        return hashlib.sha256(path.read_bytes()).hexdigest()
    except OSError as error:
        refuse(f"cannot read {path}: {error.strerror}; the earlier steps make it (see docs/small_checkpoints.md)")


def finish(
    folder: Path,
    model: torch.nn.Module,
    words: Words,
    given: argparse.Namespace,
    step: int,
    clock: Clock,
    data: str,
    **more: Any,
) -> None:
    """Save a checkpoint with its manifest; the unfinished state goes."""
    folder.mkdir(parents=True, exist_ok=True)
    model.eval()
    save(folder, model, words)
    model.train()
    cpu, wall = clock.now()
    manifest = {
        "arguments": stated(given),
        "step": step,
        "parameters": sum(p.numel() for p in model.parameters()),
        "demonstrations_sha256": data,
        "weights_sha256": digest(folder / "model.safetensors"),
        "cpu_s": round(cpu, 1),
        "wall_s": round(wall, 1),
        "versions": {
            "python": platform.python_version(),
            **{name: metadata.version(name) for name in ("torch", "transformers", "alfworld", "textworld")},
        },
        **more,
    }
    (folder / "training.json").write_text(json.dumps(manifest, indent=1) + "\n", "utf-8")
    if step == getattr(given, "steps", None) or step == getattr(given, "iterations", None):
        (folder / "state.pt").unlink(missing_ok=True)
