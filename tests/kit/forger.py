"""Forges sealed run folders, as somebody with our source code would.

A :class:`Forger` holds the content of an honest run.  A forgery edits it: the manifest, keys and bodies of records,
their order and number, other files.  :meth:`Forger.write` makes digests, chain, seal and numbers of records anew, so
the folder is consistent in itself.  What an edit makes wrong further on can be made right again: :meth:`Forger.settle`
makes the digests of inputs, clones and prompts anew, and :meth:`Forger.retell` tells an episode by other actions, with
the records that the environment really shows.

The canonical form and the chain are written out here once more: the reader of runs is not asked what it believes.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import attrs

from handoff import frontier, registry
from handoff.environment import Environment
from handoff.policies.language.prompts import Template
from handoff.policies.policy import Request, Turn
from handoff.records import Record, Task, from_json, to_json
from handoff.replay import records_digest
from handoff.seeds import REACH, ROLLOUT, SOLVE, SeedSchedule

Body = dict[str, Any]

_RAW = re.compile(rb'"@@(.*?)@@"')


def raw(token: str) -> str:
    """A value that is written as ``token``, without quotes: numbers that JSON cannot hold."""
    return f"@@{token}@@"


def canonical(value: Any) -> bytes:
    text = json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=True).encode()
    return _RAW.sub(rb"\1", text)


def digest(value: Any) -> str:
    return hashlib.sha256(canonical(value)).hexdigest()


@attrs.define
class Forger:
    """The content of a run folder, to be changed in place."""

    manifest: dict[str, Any]
    #: Key and body of every record.
    records: list[tuple[list[str], Body]]
    #: Further files by name; ``None`` removes one.
    files: dict[str, bytes | None] = attrs.Factory(dict)
    #: What the seal states in place of the truth.
    sealed: dict[str, Any] = attrs.Factory(dict)

    @classmethod
    def read(cls, folder: Path) -> Forger:
        lines = [json.loads(line) for line in (folder / "records.jsonl").read_bytes().splitlines()]
        files = {path.name: path.read_bytes() for path in folder.iterdir() if path.name not in _WRITTEN}
        manifest = json.loads((folder / "manifest.json").read_bytes())
        return cls(manifest, [(line["key"], line["body"]) for line in lines], dict(files))

    def write(self, folder: Path) -> Path:
        """Write the folder, with digests, chain and seal made anew."""
        folder.mkdir(parents=True)
        for name, content in self.files.items():
            if content is not None:
                (folder / name).write_bytes(content)
        head = self.manifest["digest"] = digest(self.identity)
        (folder / "manifest.json").write_bytes(canonical(self.manifest) + b"\n")
        lines = []
        for seq, (key, body) in enumerate(self.records):
            before, head = head, digest([seq, head, key, body])
            line = {"seq": seq, "prev": before, "digest": head, "key": key, "body": body}
            lines.append(canonical(line) + b"\n")
        (folder / "records.jsonl").write_bytes(b"".join(lines))
        if "seal.json" not in self.files:
            seal = {"head": head, "records": len(lines), **self.sealed}
            (folder / "seal.json").write_bytes(canonical(seal) + b"\n")
        return folder

    @property
    def identity(self) -> dict[str, Any]:
        identity: dict[str, Any] = self.manifest["identity"]
        return identity

    @property
    def protocol(self) -> dict[str, Any]:
        protocol: dict[str, Any] = self.identity["protocol"]
        return protocol

    @property
    def policies(self) -> dict[str, Any]:
        policies: dict[str, Any] = self.identity["policies"]
        return policies

    def bodies(self, kind: str, where: Callable[[Body], bool] = lambda body: True) -> list[Body]:
        """The bodies of one kind of record (``trajectory``, ``endpoint``, ``rollout``), in their order."""
        return [body for key, body in self.records if key[0] == kind and where(body)]

    def label(self, body: Body) -> str:
        """An episode in the words of the audit."""
        name = next(task["name"] for task in self.identity["tasks"] if task["id"] == body["task"])
        if "policy" in body:
            return f"task {name}, policy {body['policy']}, rollout {body['index']}"
        words = f"task {name}, slot {body['slot']}, reacher {body['reacher']}"
        return f"{words}, solver {body['solver']}" if "solver" in body else words

    # ------------------------------------------------------------------------------- what follows from decisions

    def settle(self) -> None:
        """Make anew what follows from the records and decisions of a run: digests of inputs, of rendered prompts and of
        clones; of rollouts the records' digest and number as well."""
        starts = {(body["task"], body["slot"], body["reacher"]): body for body in self.bodies("trajectory")}
        for body in starts.values():
            self._settle_steps(body["reacher"], body, [], body["steps"], self.protocol["reach_budget"])
        for body in self.bodies("endpoint", lambda body: bool(body["arrived"])):
            start = starts[body["task"], body["slot"], body["reacher"]]
            turns = [_turn(step) for step in start["steps"]]
            self._settle_steps(body["solver"], start, turns, body["steps"], self.protocol["solve_budget"])
            first = body["steps"][0]["decision"]["input_digest"] if body["steps"] else body["clone"]["input_digest"]
            records = [start["reset"], *(step["record"] for step in start["steps"])]
            body["clone"] = {
                "records": len(records),
                "digest": records_digest([_record(record) for record in records]),
                "input_digest": first,
            }
        rollouts = self.bodies("rollout")
        with self.world() if rollouts else _Nowhere() as world:
            for body in rollouts:
                self._settle_rollout(world, body)

    def _settle_steps(self, policy: str, start: Body, turns: list[Turn], steps: list[Any], budget: int) -> None:
        for position, step in enumerate(steps):
            decision = step["decision"]
            request = Request(
                self._task(start["task"]), decision["seed"], _record(start["reset"]), tuple(turns), budget - position
            )
            self._settle_decision(policy, decision, request)
            turns.append(_turn(step))

    def _settle_rollout(self, world: World, body: Body) -> None:
        decisions = body["decisions"]
        records = world.play(body["task"], body["reset_seed"], [one["action"] for one in decisions])
        turns: list[Turn] = []
        for position, decision in enumerate(decisions):
            request = Request(
                self._task(body["task"]),
                decision["seed"],
                records[0],
                tuple(turns),
                self.protocol["budget"] - position,
                temperature=body["temperature"],
            )
            self._settle_decision(body["policy"], decision, request)
            turns.append(Turn(decision["action"] or "", records[position + 1], decision["text"]))
        body["records"], body["digest"] = len(records), records_digest(records)

    def _settle_decision(self, policy: str, decision: Body, request: Request) -> None:
        decision["input_digest"] = request.input_digest()
        form = self.policies.get(policy, {}).get("prompt")
        if form is not None and decision["generation"] is not None:
            decision["generation"]["rendered"] = Template.from_json(form).render(request).digest()

    def _task(self, id: str) -> Task:
        form = next(task for task in self.identity["tasks"] if task["id"] == id)
        return from_json(Task, form)

    # ------------------------------------------------------------------------------------------- other episodes

    def world(self) -> World:
        """The environment that the run was played in."""
        options = {key: value for key, value in self.manifest["host"]["options"].items() if key != "engine"}
        return World(registry.create(self.identity["environment"]["name"], options), self.protocol["split"])

    def retell(self, body: Body, choose: Callable[[World], str | None], most: int | None = None) -> None:
        """Tell an episode by other actions, those that ``choose`` names in the world (``None``: no more), with true
        records, checks and outcomes, and seeds of the schedule.  Decisions that followed from others are dropped, and
        the digests of inputs are made anew."""
        seeds = SeedSchedule(self.protocol["run_seed"])
        kind = "rollout" if "policy" in body else "endpoint" if "solver" in body else "trajectory"
        with self.world() as world:
            start = None
            if kind == "endpoint":
                cell = [body[name] for name in ("task", "slot", "reacher")]
                (start,) = self.bodies("trajectory", lambda b: [b["task"], b["slot"], b["reacher"]] == cell)
                reset_seed = start["reset_seed"]
                world.play(body["task"], reset_seed, [step["decision"]["action"] for step in start["steps"]])
            else:
                reset_seed = body["reset_seed"]
                world.play(body["task"], reset_seed, [])
            slot = body["index"] if kind == "rollout" else body["slot"]
            purpose = {"rollout": ROLLOUT, "endpoint": SOLVE, "trajectory": REACH}[kind]
            key = {"rollout": "budget", "endpoint": "solve_budget", "trajectory": "reach_budget"}[kind]
            budget = self.protocol[key] if most is None else most
            policy = body["policy" if kind == "rollout" else "solver" if kind == "endpoint" else "reacher"]
            model = self._a_decision(policy)
            depth = self.protocol.get("depth")
            steps: list[Any] = []
            while len(steps) < budget and not (world.record.won or world.record.done):
                if kind == "trajectory" and world.member(depth):
                    break
                action = choose(world)
                if action is None:
                    break
                seed = seeds.decision(body["task"], slot, purpose, len(steps))
                decision = _decision(model, action, world.record, seed)
                world.step(action)
                check = to_json(world.certificate(depth)) if kind == "trajectory" else None
                distance = world.distance(self.protocol.get("distances"))
                steps.append(
                    {"decision": decision, "record": to_json(world.record), "check": check, "distance": distance}
                )
            last = world.record
            if kind == "rollout":
                body["decisions"] = [step["decision"] for step in steps]
                body["won"] = last.won
                body["outcome"] = "won" if last.won else "terminal" if last.done else "budget"
            elif kind == "endpoint":
                assert start is not None
                body["steps"], body["won"] = steps, last.won
                bridges = (start["steps"][-1]["check"] if start["steps"] else start["reset_check"])["bridges"]
                body["bridge"] = steps[0]["decision"]["action"] in bridges
            else:
                arrived = world.member(depth)
                body["steps"] = steps
                body["arrival"] = len(steps) if arrived else None
                body["outcome"] = "won" if last.won else "terminal" if last.done else "arrived" if arrived else "budget"
        self.settle()

    def _a_decision(self, policy: str) -> Body | None:
        """A decision of a language model that came to an action; ``None`` for a scripted policy."""
        if "prompt" not in self.policies[policy]:
            return None
        for key, body in self.records:
            mine = body["policy"] if key[0] == "rollout" else body["solver" if key[0] == "endpoint" else "reacher"]
            steps = [step["decision"] for step in body.get("steps", ())] or body.get("decisions", ())
            for decision in steps if mine == policy else ():
                if decision["status"] == "parsed":
                    return dict(decision)
        raise AssertionError(f"{policy} never came to an action")


#: Files that :meth:`Forger.write` makes itself, or that belong to a process.
_WRITTEN = ("manifest.json", "records.jsonl", "seal.json", "lock")


@attrs.define
class World:
    """An environment with its tasks, after the actions that were played last."""

    environment: Environment
    split: str
    task: Task | None = None
    seed: int = 0
    actions: list[str] = attrs.Factory(list)
    record: Record = attrs.field(init=False)

    def __enter__(self) -> World:
        return self

    def __exit__(self, *_: object) -> None:
        self.environment.close()

    def play(self, task: str, seed: int, actions: Sequence[str | None]) -> list[Record]:
        """The records of a reset and of each action (``None``: a step without one)."""
        self.task = next(one for one in self.environment.tasks(self.split) if one.id == task)
        self.seed, self.actions = seed, []
        self.record = self.environment.reset(self.task, seed)
        return [self.record, *(self.step(action) for action in actions)]

    def step(self, action: str | None) -> Record:
        if action:
            self.actions.append(action)
            self.record = self.environment.step(action)
        return self.record

    def certificate(self, depth: int) -> Any:
        """The certificate of the state here."""
        assert self.task is not None
        certificate = frontier.search(self.environment, self.task, self.seed, tuple(self.actions), depth)
        self.play(self.task.id, self.seed, list(self.actions))
        return certificate

    def member(self, depth: int | None) -> bool:
        return depth is not None and bool(self.certificate(depth).member)

    def distance(self, limit: int | None) -> int | None:
        return None if limit is None else self.certificate(limit).distance


class _Nowhere:
    """No world, where none is needed."""

    def __enter__(self) -> World:
        return None  # type: ignore[return-value]

    def __exit__(self, *_: object) -> None:
        pass


def _record(form: Body) -> Record:
    return from_json(Record, form)


def _turn(step: Body) -> Turn:
    decision = step["decision"]
    return Turn(decision["action"] or "", _record(step["record"]), decision["text"])


def _decision(model: Body | None, action: str, record: Record, seed: int) -> Body:
    status = "parsed" if action in record.admissible else "inadmissible"
    if model is None:
        return {
            "text": action, "action": action, "status": status, "seed": seed, "input_digest": "", "flags": [],
            "prompt_digest": None, "prompt_tokens": None, "generation": None,
        }  # fmt: skip
    text = model["text"].replace(model["action"], action)
    generation = dict(model["generation"])
    return {**model, "text": text, "action": action, "status": status, "seed": seed, "generation": generation}


def decisions(body: Body) -> list[Body]:
    """The decisions of an episode of either protocol."""
    return body["decisions"] if "decisions" in body else [step["decision"] for step in body["steps"]]


def episodes(forger: Forger) -> Iterator[Body]:
    """Every episode in which somebody decided, in the order of the records."""
    return (body for _, body in forger.records if decisions(body))
