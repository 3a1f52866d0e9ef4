"""Adapters that misbehave in one method each, once an episode or two have been played; and policies that do.

Each is a corridor (:class:`kit.toy.Corridor`) under another name.  ``Hostile.mended`` makes all of them behave.
"""

from __future__ import annotations

import asyncio
import contextlib
import io
import os
import shutil
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, NoReturn

import attrs
import numpy as np
from kit.toy import Corridor

from handoff.environment import Environment
from handoff.errors import DataError, UsageError
from handoff.guard.watch import TimedOut
from handoff.policies.policy import Policy, Request, Served, scripted
from handoff.records import Certificate, Record, Task

RECORD = Record("here", ("left",), 0.0, False, False)
ESCAPES = "\x1b[31mred\x1b[0m\r\n\x07"


class Hostile(Corridor):
    """Counts its calls, and plays its trick from the sixth one on."""

    mended: ClassVar[bool] = False
    calls: ClassVar[int] = 0
    quiet_calls: ClassVar[int] = 6
    name: ClassVar[str] = "calm"

    def fires(self) -> bool:
        Hostile.calls += 1
        return not Hostile.mended and Hostile.calls > self.quiet_calls

    def plan(self) -> tuple[str, ...]:
        return ("right",) * (3 - self.position)


class Text(str):
    """A text whose methods lie."""

    def __len__(self) -> int:
        return 0


class Unspeakable(Exception):
    def __str__(self) -> str:
        raise RuntimeError("not even this")


class Mute(Exception):
    """An exception that ends the program when it is read."""

    def __str__(self) -> str:
        raise SystemExit(0)


class MuteText:
    """An object that ends the program when it is read or counted."""

    def __bool__(self) -> bool:
        raise SystemExit(0)

    def __str__(self) -> str:
        raise SystemExit(0)


class MuteRequest(Mute, UsageError):
    pass


class MuteData(Mute, DataError):
    pass


class Disguised(Exception):
    @property
    def __class__(self) -> Any:
        raise SystemExit(0)


class NamelessKind(type):
    @property
    def __name__(cls) -> str:
        raise SystemExit(0)


class Nameless(Exception, metaclass=NamelessKind):
    pass


class NamelessValue(metaclass=NamelessKind):
    pass


class Endless(Sequence[Task]):
    def __len__(self) -> int:
        return 1

    def __getitem__(self, index: Any) -> Any:
        return TASK


class Moody:
    """A snapshot that cannot be compared."""

    def __hash__(self) -> int:
        return 1

    def __eq__(self, other: object) -> bool:
        raise ValueError("moody")


def raising(error: BaseException | type[BaseException]) -> Callable[..., NoReturn]:
    def trick(*_: object) -> NoReturn:
        raise error

    return trick


def returning(value: object) -> Callable[..., Any]:
    return lambda *_: value


def record(**changes: Any) -> Callable[..., Any]:
    return returning(attrs.evolve(RECORD, **changes))


def deep(*_: object) -> Any:
    return deep()


def nested() -> Any:
    value: Any = []
    for _ in range(100_000):
        value = [value]
    return {"deep": value}


def exiting(*_: object) -> None:
    sys.exit(0)


def hanging(*_: object) -> None:
    while True:
        time.sleep(0.01)


def stubborn(*_: object) -> None:
    """Catches everything but what cannot be caught that way."""
    while True:
        try:
            time.sleep(0.01)
        except Exception:
            continue


TASK = Task("one", "one", "t", "default")
#: Name -> (method, trick, what the sentence says), of methods that a run calls.
IN_RUN: dict[str, tuple[str, Callable[..., Any], str]] = {
    "step-raises": ("step", raising(ValueError("boom")), "raised ValueError: boom (hostile.py, line "),
    "step-exits": ("step", exiting, "raised SystemExit: 0"),
    "step-exits-with-text": ("step", raising(SystemExit("good bye")), "raised SystemExit: good bye"),
    "step-closes": ("step", raising(GeneratorExit), "raised GeneratorExit"),
    "step-cancels": ("step", raising(asyncio.CancelledError), "raised CancelledError"),
    "step-recurses": ("step", deep, "raised RecursionError"),
    "step-is-out-of-memory": ("step", raising(MemoryError), "raised MemoryError"),
    "step-stops": ("step", raising(StopIteration(3)), "raised StopIteration: 3"),
    "step-breaks-its-pipe": ("step", raising(BrokenPipeError(32, "gone")), "raised BrokenPipeError"),
    "step-fails-on-a-file": ("step", raising(FileNotFoundError(2, "no file", "/x")), "raised FileNotFoundError"),
    "step-paints": ("step", raising(ValueError(ESCAPES)), "raised ValueError: \\x1b[31mred\\x1b[0m"),
    "step-is-unspeakable": ("step", raising(Unspeakable), "raised Unspeakable"),
    "step-is-mute": ("step", raising(Mute), "raised Mute (hostile.py, line "),
    "step-blames-data-mutely": ("step", raising(MuteData), "raised MuteData: MuteData"),
    "step-is-nameless": ("step", raising(Nameless), "raised Nameless (hostile.py, line "),
    "step-returns-a-nameless-value": ("step", returning(NamelessValue()), "it is a kit.hostile.NamelessValue, not a"),
    "step-is-disguised": ("step", raising(Disguised()), "raised Disguised (hostile.py, line "),
    "step-fails-mutely-on-a-file": ("step", raising(OSError(MuteText(), "x")), "raised OSError"),
    "step-times-itself-out": ("step", raising(TimedOut), "raised TimedOut (hostile.py, line "),
    "step-asks-for-usage": ("step", raising(UsageError("type something else")), "UsageError: type something else"),
    "step-blames-data": ("step", raising(DataError("bad data")), "raised DataError: bad data"),
    "step-is-nothing": ("step", returning(None), "returned what it must not: it is None, not a Record"),
    "step-is-a-dictionary": ("step", returning({"won": True}), "it is a dict, not a Record"),
    "step-is-a-set": ("step", record(admissible={"left"}), "admissible is a set, not a tuple"),
    "step-lists-numbers": ("step", record(admissible=(1, 2)), "admissible[0] is 1, not a str"),
    "step-lists-unhashables": ("step", record(admissible=(["left"],)), "admissible[0] is a list, not a str"),
    "step-subclasses-text": ("step", record(observation=Text("x")), "observation is a kit.hostile.Text, not a str"),
    "step-lists-numpy-text": ("step", record(admissible=(np.str_("a"),)), "admissible[0] is a numpy.str_, not a str"),
    "step-is-not-a-number": ("step", record(score=float("nan")), "score is nan, not a finite float"),
    "step-is-infinite": ("step", record(score=float("-inf")), "score is -inf, not a finite float"),
    "step-scores-whole": ("step", record(score=1), "score is 1, not a float"),
    "step-scores-numpy": ("step", record(score=np.float64(1)), "score is a numpy.float64, not a float"),
    "step-wins-numpy": ("step", record(won=np.bool_(True)), "won is a numpy.bool"),
    "step-is-done-by-number": ("step", record(done=np.int64(1)), "done is a numpy.int64, not a bool"),
    "step-writes-a-novel": ("step", record(observation="x" * 10_000_001), "observation has 10,000,001 characters"),
    "step-lists-a-million": ("step", record(admissible=("x",) * 1_000_001), "admissible has 1,000,001 items"),
    "reset-raises": ("reset", raising(KeyError("no")), "raised KeyError: 'no'"),
    "reset-exits": ("reset", exiting, "raised SystemExit: 0"),
    "reset-refuses": ("reset", raising(DataError("the game is gone")), "refused the task: the game is gone"),
    "reset-is-nothing": ("reset", returning(None), "it is None, not a Record"),
    "plan-raises": ("plan", raising(ZeroDivisionError("0")), "raised ZeroDivisionError: 0"),
    "plan-is-a-text": ("plan", returning("right"), "it is 'right', not a tuple"),
    "plan-is-a-set": ("plan", returning({"right"}), "it is a set, not a tuple"),
    "plan-holds-nothing": ("plan", returning((None,)), "it[0] is None, not a str"),
    "distance-raises": ("distance", raising(OSError("disk")), "raised OSError: disk"),
    "distance-is-true": ("distance", returning(True), "it is True, not an int or None"),
    "distance-is-negative": ("distance", returning(-1), "it is -1, not None or a number from 0"),
    "certify-raises": ("certify", raising(RuntimeError("x")), "raised RuntimeError: x"),
    "certify-is-nothing": ("certify", returning(None), "it is None, not a Certificate"),
    "certify-answers-another": ("certify", returning(Certificate(9, False, None, ())), "depth is 9, not the 2"),
    "certify-counts-in-floats": ("certify", returning(Certificate(2, False, None, (1.0,))), "tried[0] is 1.0"),  # type: ignore[arg-type]
    "snapshot-raises": ("snapshot", raising(RuntimeError("x")), "raised RuntimeError: x"),
    "snapshot-is-a-list": ("snapshot", returning([1]), "raised TypeError: unhashable type: 'list'"),
    "restore-is-nothing": ("restore", returning(None), "it is None, not a Record"),
    "outcomes-are-a-list": ("outcomes", returning([]), "it is a list, not a tuple of pairs"),
    "outcomes-are-half": ("outcomes", returning(((0.5, 0),)), "the probabilities sum to 0.5, not to 1"),
    "outcomes-are-moody": ("outcomes", lambda *_: ((0.5, Moody()), (0.5, Moody())), "raised ValueError: moody"),
}  # fmt: skip
#: The same, of methods that are called before a run starts.
BEFORE: dict[str, tuple[str, Callable[..., Any], str]] = {
    "tasks-raise": ("tasks", raising(ValueError("no list")), "tasks('default') raised ValueError: no list"),
    "tasks-exit": ("tasks", exiting, "tasks('default') raised SystemExit: 0"),
    "tasks-are-nothing": ("tasks", returning(None), "it is None, not a list of tasks"),
    "tasks-are-a-text": ("tasks", returning("tasks"), "it is 'tasks', not a list of tasks"),
    "tasks-are-a-set": ("tasks", returning({TASK}), "it is a set, not a list of tasks"),
    "tasks-are-none": ("tasks", returning([]), "it lists no task"),
    "tasks-never-end": ("tasks", returning(Endless()), "it lists more than 1,000,000 tasks"),
    "tasks-are-dictionaries": ("tasks", returning([{"id": "x"}]), "task 1 is a dict, not a Task"),
    "tasks-are-twins": ("tasks", returning([TASK, TASK]), "two tasks have the id 'one'"),
    "tasks-are-numbered": ("tasks", returning([attrs.evolve(TASK, id=1)]), "task 1.id is 1, not a str"),
    "tasks-are-painted": ("tasks", returning([attrs.evolve(TASK, name=ESCAPES)]), "the name of task 1 contains an"),
    "describe-raises": ("describe", raising(ValueError("no words")), "describe() raised ValueError: no words"),
    "describe-is-a-set": ("describe", returning({"a": {1}}), "it is not JSON-safe (TypeError: "),
    "describe-is-nan": ("describe", returning({"a": float("nan")}), "it is not JSON-safe (ValueError: "),
    "describe-is-deep": ("describe", lambda *_: nested(), "it is not JSON-safe (RecursionError: "),
    "describe-is-a-list": ("describe", returning([1]), "it is a list, not a mapping"),
    "describe-renames": ("describe", returning({"name": "sokoban"}), "its key 'name' is 'sokoban'"),
    "describe-is-mute": ("describe", raising(Mute), "describe() raised Mute"),
    "constructor-raises": ("__init__", raising(ValueError("no key")), "the constructor raised ValueError: no key"),
    "constructor-exits": ("__init__", exiting, "the constructor raised SystemExit: 0"),
    "constructor-mistypes": ("__init__", raising(TypeError("no type")), "the constructor raised TypeError: no type"),
}  # fmt: skip


def adapter(name: str, method: str, trick: Callable[..., Any]) -> type[Hostile]:
    """A class that plays ``trick`` in the place of ``method``, with the ability that has this method."""

    def misbehave(self: Any, *arguments: Any) -> Any:
        return trick(*arguments) if self.fires() else getattr(_Able, method)(self, *arguments)

    abilities: dict[str, Any] = {}
    if method in ("snapshot", "restore", "outcomes"):
        abilities = {one: getattr(_Able, one) for one in ("snapshot", "restore")}
    # A run without a trick takes 150 steps: its searches replay.
    quiet = {"tasks": 0, "describe": 0, "__init__": 0, "step": 100}.get(method, 6)
    stated = {"__module__": __name__, "name": name, "quiet_calls": quiet}
    return type(name, (Hostile,), {**abilities, **stated, method: misbehave})


class _Able(Hostile):
    """Behaves in every method."""

    def __init__(self) -> None:
        pass

    def snapshot(self) -> int:
        return self.position

    def restore(self, snapshot: Any) -> Record:
        self.position = snapshot
        return self._record("restored")

    def distance(self, limit: int) -> int | None:
        left = 3 - self.position
        return left if left <= limit else None

    def certify(self, depth: int) -> Certificate:
        left = 3 - self.position
        if left == 0:
            return Certificate(depth, False, 0, ())
        if left > depth:
            return Certificate(depth, False, None, (1,) * depth)
        return Certificate(depth, left == depth, left, (1,) * left, ("right",), ("right",) * left)

    def outcomes(self, action: str) -> tuple[tuple[float, Any], ...]:
        here = self.position
        self.step(action)
        after, self.position = self.position, here
        return ((1.0, after),)


class Chatty(Hostile):
    """Prints to standard output, by every way that there is in Python."""

    name: ClassVar[str] = "chatty"

    def tasks(self, split: str) -> Sequence[Task]:
        print("tasks!")
        return super().tasks(split)

    def step(self, action: str) -> Record:
        print("step!")
        sys.stdout.write("more\n")
        return super().step(action)


class Mover(Hostile):
    """Changes what it can reach of its host at every call."""

    name: ClassVar[str] = "mover"
    elsewhere: ClassVar[str] = "/"

    def __init__(self) -> None:
        self._move()

    def tasks(self, split: str) -> Sequence[Task]:
        self._move()
        return super().tasks(split)

    def step(self, action: str) -> Record:
        self._move()
        return super().step(action)

    def _move(self) -> None:
        import signal
        import threading
        import warnings

        if Hostile.mended:
            return
        os.chdir(self.elsewhere)
        os.umask(0o777)
        sys.setrecursionlimit(200)
        sys.argv = ["elsewhere"]
        sys.stdout = io.StringIO()
        warnings.simplefilter("error")
        if threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGTERM, signal.SIG_IGN)


class Keeper(Hostile):
    """Keeps every record that it gave, and changes all of them at its next call."""

    name: ClassVar[str] = "keeper"
    kept: ClassVar[list[Record]] = []

    def reset(self, task: Task, seed: int) -> Record:
        return self._kept(super().reset(task, seed))

    def step(self, action: str) -> Record:
        return self._kept(super().step(action))

    def _kept(self, record: Record) -> Record:
        for earlier in Keeper.kept:
            object.__setattr__(earlier, "won", True)
            object.__setattr__(earlier, "observation", "changed")
        Keeper.kept.append(record)
        return record


class ClosesBadly(Hostile):
    name: ClassVar[str] = "closes-badly"

    def close(self) -> None:
        if not Hostile.mended:
            raise RuntimeError("stuck door")


class Dies(Hostile):
    """Ends its process without a word."""

    name: ClassVar[str] = "dies"

    def step(self, action: str) -> Record:
        if self.fires():
            os._exit(0)
        return super().step(action)


class Hangs(Hostile):
    name: ClassVar[str] = "hangs"

    def step(self, action: str) -> Record:
        if self.fires():
            hanging()
        return super().step(action)


class Stubborn(Hostile):
    name: ClassVar[str] = "stubborn"

    def step(self, action: str) -> Record:
        if self.fires():
            stubborn()
        return super().step(action)


class Deaf(Hostile):
    """Takes its time once, and lets nothing end that."""

    name: ClassVar[str] = "deaf"
    seconds: ClassVar[float] = 3.0

    def step(self, action: str) -> Record:
        if self.fires():
            with contextlib.suppress(BaseException):
                time.sleep(self.seconds)
        return super().step(action)


class Spins(Hostile):
    """Starts threads that nobody ends."""

    name: ClassVar[str] = "spins"
    threads: ClassVar[int] = 3

    def reset(self, task: Task, seed: int) -> Record:
        for _ in range(Spins.threads):
            Spins.threads -= 1
            threading.Thread(target=hanging).start()
        return super().reset(task, seed)


class ShutsAndFails(Hostile):
    """Closes the standard streams, and fails."""

    name: ClassVar[str] = "shuts-and-fails"

    def step(self, action: str) -> Record:
        sys.stdout.close()
        sys.stderr.close()
        raise ValueError("boom")


class Removes(Hostile):
    """Removes the run folder."""

    name: ClassVar[str] = "removes"
    folder: ClassVar[Path | None] = None

    def step(self, action: str) -> Record:
        if self.folder is not None and self.fires():
            shutil.rmtree(self.folder, ignore_errors=True)
        return super().step(action)


class Named(Hostile):
    """Takes a text that is no path under the name of a path."""

    name: ClassVar[str] = "named"

    def __init__(self, data: str = "") -> None:
        self.data = data


class AsksMutely(Hostile):
    name: ClassVar[str] = "asks-mutely"

    def tasks(self, split: str) -> Sequence[Task]:
        raise MuteRequest


class Lists(Hostile):
    """Takes for ever to list its tasks."""

    name: ClassVar[str] = "lists"

    def tasks(self, split: str) -> Sequence[Task]:
        hanging()
        raise AssertionError


class Interrupts(Hostile):
    name: ClassVar[str] = "interrupts"

    def step(self, action: str) -> Record:
        if self.fires():
            raise KeyboardInterrupt
        return super().step(action)


class Misnamed(Hostile):
    name: ClassVar[str] = "somebody else"


class NoSplits(Hostile):
    name: ClassVar[str] = "no-splits"
    splits: ClassVar[Any] = {"default"}


_ADAPTERS = {name: adapter(name, *stated[:2]) for name, stated in {**IN_RUN, **BEFORE}.items()}
globals().update({name.replace("-", "_"): cls for name, cls in _ADAPTERS.items()})
_CLASSES: Mapping[str, type[Environment]] = {
    cls.name: cls
    for cls in (
        Hostile,
        Chatty,
        Keeper,
        Mover,
        ClosesBadly,
        Dies,
        Hangs,
        Stubborn,
        Deaf,
        Spins,
        ShutsAndFails,
        Removes,
        Named,
        AsksMutely,
        Lists,
        Interrupts,
        NoSplits,
    )
}


def entry_points() -> Iterator[str]:
    """Lines of the entry point group ``handoff.environments``."""
    yield from (f"{name} = kit.hostile:{name.replace('-', '_')}" for name in _ADAPTERS)
    yield from (f"{name} = kit.hostile:{cls.__name__}" for name, cls in _CLASSES.items())
    yield "misnamed = kit.hostile:Misnamed"


def install(folder: Path) -> None:
    """Write a distribution with all adapters and policies into ``folder``, which is to be on the path."""
    info = folder / "hostile-1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: hostile\nVersion: 1.0\n")
    policies = [f"bad-{name} = kit.hostile:{cls.__name__}" for name, cls in POLICIES.items()]
    groups = {"environments": list(entry_points()), "policies": policies}
    (info / "entry_points.txt").write_text(
        "".join(f"[handoff.{group}]\n" + "\n".join(lines) + "\n" for group, lines in groups.items())
    )


class BadPolicy(Policy):
    """A policy that decides well; its subclasses do not."""

    def __init__(self, argument: str | None = None) -> None:
        pass

    def decide(self, requests: Sequence[Request]) -> Any:
        return [scripted(request, request.record.admissible[-1]) for request in requests]


def bad_policy(name: str, **methods: Any) -> type[BadPolicy]:
    return type(f"Bad_{name}", (BadPolicy,), {"__module__": __name__, **methods})


def _changed(**changes: Any) -> Callable[..., Any]:
    def decide(self: BadPolicy, requests: Sequence[Request]) -> Any:
        return [attrs.evolve(decision, **changes) for decision in BadPolicy.decide(self, requests)]

    return decide


class ServedWithALeftover(Served, BadPolicy):
    """Starts a task that ends the program, and answers meanwhile."""

    async def decide_one(self, request: Request) -> Any:
        async def end() -> None:
            raise SystemExit(0)

        task = asyncio.create_task(end())
        await asyncio.sleep(0.01)
        return task


def _cancelling(self: BadPolicy, requests: Sequence[Request]) -> Any:
    for task in asyncio.all_tasks():
        task.cancel()
    return BadPolicy.decide(self, requests)


def _stopping(self: BadPolicy, requests: Sequence[Request]) -> Any:
    asyncio.get_running_loop().stop()
    return BadPolicy.decide(self, requests)


def _clearing(self: BadPolicy, requests: list[Request]) -> Any:
    requests.clear()
    return []


def _shutting(self: Policy, requests: Sequence[Request]) -> list[Any]:
    """Closes the standard streams, and decides."""
    sys.stdout.close()
    sys.stderr.close()
    return [scripted(request, request.record.admissible[-1]) for request in requests]


def _shutting_and_failing(self: Policy, requests: Sequence[Request]) -> list[Any]:
    _shutting(self, requests)
    raise ValueError("boom")


def _moving(self: BadPolicy, requests: Sequence[Request]) -> Any:
    print("HELLO")
    os.umask(0o777)
    sys.stdout = None  # type: ignore[assignment]
    return BadPolicy.decide(self, requests)


async def _failing(self: object) -> None:
    raise SystemExit(0)


#: Name -> the class.
POLICIES: dict[str, type[BadPolicy]] = {
    "raises": bad_policy("raises", decide=raising(ValueError(ESCAPES))),
    "exits": bad_policy("exits", decide=exiting),
    "blocks": bad_policy("blocks", decide=exiting, blocking=True),
    "cancels": bad_policy("cancels", decide=raising(asyncio.CancelledError)),
    "nothing": bad_policy("nothing", decide=returning(None)),
    "generator": bad_policy("generator", decide=lambda self, requests: (x for x in requests)),
    "mute": bad_policy("mute", decide=raising(Mute)),
    "mute-fault": bad_policy("mute_fault", decide=raising(MuteData)),
    "leftover": ServedWithALeftover,
    "cancels-all": bad_policy("cancels_all", decide=_cancelling),
    "stops": bad_policy("stops", decide=_stopping),
    "clears": bad_policy("clears", decide=_clearing),
    "moves": bad_policy("moves", decide=_moving),
    "shuts": bad_policy("shuts", decide=_shutting),
    "shuts-and-fails": bad_policy("shuts_and_fails", decide=_shutting_and_failing),
    "few": bad_policy("few", decide=returning([])),
    "texts": bad_policy("texts", decide=lambda self, requests: ["right" for _ in requests]),
    "status": bad_policy("status", decide=_changed(status="splendid")),
    "seed": bad_policy("seed", decide=_changed(seed=1)),
    "digest": bad_policy("digest", decide=_changed(input_digest="0" * 64)),
    "action": bad_policy("action", decide=_changed(action="fly", text="fly")),
    "number": bad_policy("number", decide=_changed(prompt_tokens=1.5)),
    "flags": bad_policy("flags", decide=_changed(flags=["x"])),
    "introduces": bad_policy("introduces", introduce=_failing),
    "describes": bad_policy("describes", describe=raising(SystemExit(0))),
    "described": bad_policy("described", describe=returning({"x": float("inf")})),
    "capacity": bad_policy("capacity", capacity="many"),
    "activates": bad_policy("activates", activate=exiting),
    "releases": bad_policy("releases", release=raising(RuntimeError("held"))),
    "closes": bad_policy("closes", close=raising(RuntimeError("open"))),
}
globals().update({cls.__name__: cls for cls in POLICIES.values()})
