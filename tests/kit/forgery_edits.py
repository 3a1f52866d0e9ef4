"""The edits of forgeries: each changes a :class:`~kit.forger.Forger` and returns the words by which an audit names the
place.  All of the words must be in one failure."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from copy import deepcopy
from typing import Any

from kit.forger import Body, Forger, World, decisions

from handoff.runs.selection import draw_tasks

#: Words that must all be in one failure.
Place = str | tuple[str, ...]
Edit = Callable[[Forger], Place]

# --------------------------------------------------------------------------------------------------------- finding


def _one(bodies: Sequence[Body]) -> Body:
    assert bodies, "the honest run has no such record"
    return bodies[0]


def _kind(forger: Forger) -> str:
    return "rollout" if forger.records[0][0][0] == "rollout" else "trajectory"


def _won(forger: Forger) -> Body:
    """A continuation or a rollout that won after two decisions or more."""
    kind = "rollout" if _kind(forger) == "rollout" else "endpoint"
    return _one(forger.bodies(kind, lambda body: body["won"] and len(decisions(body)) > 1))


def _lost(forger: Forger) -> Body:
    """A continuation or a rollout that did not win, with decisions."""
    kind = "rollout" if _kind(forger) == "rollout" else "endpoint"
    return _one(forger.bodies(kind, lambda body: not body["won"] and bool(decisions(body))))


def _arrived(forger: Forger) -> Body:
    return _one(forger.bodies("trajectory", lambda body: bool(body["arrival"])))


def _strayed(forger: Forger) -> Body:
    """A trajectory that did not arrive."""
    return _one(forger.bodies("trajectory", lambda body: body["outcome"] == "budget"))


def _ends(forger: Forger, start: Body) -> list[Body]:
    names = ("task", "slot", "reacher")
    return forger.bodies("endpoint", lambda body: all(body[name] == start[name] for name in names))


def _spoken(forger: Forger, status: str = "parsed") -> tuple[Body, Body]:
    """An episode of a language model, and its last decision, which has the status."""
    kind = "rollout" if _kind(forger) == "rollout" else "endpoint"
    for body in forger.bodies(kind):
        if decisions(body) and decisions(body)[-1]["status"] == status and decisions(body)[-1]["generation"]:
            return body, decisions(body)[-1]
    raise AssertionError(f"no model's last decision is {status}")


# ------------------------------------------------------------------------------------- edits of any run's records


def cut_last_decision(forger: Forger) -> Place:
    body = _won(forger)
    decisions_of = body["decisions"] if "decisions" in body else body["steps"]
    decisions_of.pop()
    body["won"] = False
    if "outcome" in body:
        body["outcome"] = "terminal"
    forger.settle()
    return forger.label(body)


def no_decision(forger: Forger) -> Place:
    body = _won(forger)
    (body["decisions"] if "decisions" in body else body["steps"]).clear()
    body["won"] = False
    if "outcome" in body:
        body["outcome"] = "terminal"
    forger.settle()
    return forger.label(body)


def appended_decision(forger: Forger) -> Place:
    body = _won(forger)
    steps = body["decisions"] if "decisions" in body else body["steps"]
    steps.append(deepcopy(steps[-1]))
    forger.settle()
    return forger.label(body)


def won_is_lost(forger: Forger) -> Place:
    body = _won(forger)
    body["won"] = False
    if "outcome" in body:
        body["outcome"] = "budget"
    return forger.label(body)


def lost_is_won(forger: Forger) -> Place:
    body = _lost(forger)
    body["won"] = True
    if "outcome" in body:
        body["outcome"] = "won"
    else:
        body["steps"][-1]["record"].update(won=True, done=True, score=1.0)
    forger.settle()
    return forger.label(body)


def ended_early(forger: Forger) -> Place:
    body = _lost(forger)
    if "outcome" in body:
        body["outcome"] = "terminal"
        body["decisions"].pop()
    else:
        body["steps"].pop()
    forger.settle()
    return forger.label(body)


def false_line(first: bool) -> Edit:
    """A second record of a cell: the false one comes first or last."""

    def edit(forger: Forger) -> Place:
        body = _won(forger)
        at = next(n for n, (_, one) in enumerate(forger.records) if one is body)
        key, false = forger.records[at][0], deepcopy(body)
        false["won"] = False
        if first:
            forger.records.insert(at, (key, false))
        else:
            forger.records.append((key, false))
        return "/".join(key)

    return edit


def lines_exchanged(forger: Forger) -> Place:
    one, other = forger.records[0], forger.records[1]
    forger.records[:2] = [other, one]
    return "/".join(other[0])


def bodies_exchanged(forger: Forger) -> Place:
    """Two slots or rollouts of one task exchange what was done in them."""
    slot = "index" if _kind(forger) == "rollout" else "slot"
    bodies = forger.bodies(_kind(forger), lambda body: bool(decisions(body)))
    one = bodies[0]
    who = "policy" if slot == "index" else "reacher"
    other = next(b for b in bodies[1:] if (b["task"], b[who]) == (one["task"], one[who]))
    mine, theirs = deepcopy(one), deepcopy(other)
    one.update(theirs | {slot: mine[slot]})
    other.update(mine | {slot: theirs[slot]})
    return forger.label(one)


def of_unlisted_policy(forger: Forger) -> Place:
    key, body = deepcopy(forger.records[-1])
    who = "policy" if _kind(forger) == "rollout" else "solver"
    body[who] = "nobody"
    key[2 if who == "policy" else 4] = "nobody"
    forger.records.append((key, body))
    return "nobody"


def missing_record(forger: Forger) -> Place:
    key, _ = forger.records.pop(len(forger.records) // 2)
    return "/".join(key)


def sealed_with(place: str = "sealed", **values: Any) -> Edit:
    def edit(forger: Forger) -> Place:
        forger.sealed.update(values)
        return place

    return edit


def file(name: str, content: bytes, place: Place) -> Edit:
    def edit(forger: Forger) -> Place:
        forger.files[name] = content
        return place

    return edit


def in_decision(place: str = "", **values: Any) -> Edit:
    """Sets values in the last decision of a model's (or else of the first) episode."""

    def edit(forger: Forger) -> Place:
        try:
            body, decision = _spoken(forger)
        except AssertionError:
            body = _one(forger.bodies(_kind(forger), lambda body: bool(decisions(body))))
            decision = decisions(body)[-1]
        decision.update(values)
        forger.settle()
        return (forger.label(body), place)

    return edit


def in_generation(place: str = "", **values: Any) -> Edit:
    def edit(forger: Forger) -> Place:
        body, decision = _spoken(forger)
        decision["generation"].update(values)
        return (forger.label(body), place)

    return edit


def in_body(place: str = "", where: Callable[[Body], bool] = lambda body: True, **values: Any) -> Edit:
    """Sets values in the first trajectory or rollout."""

    def edit(forger: Forger) -> Place:
        body = _one(forger.bodies(_kind(forger), where))
        body.update(values)
        return (forger.label(body), place)

    return edit


def line(**values: Any) -> Edit:
    """Sets values in the first record, for which no label can be made."""

    def edit(forger: Forger) -> Place:
        body = _one(forger.bodies(_kind(forger), lambda body: bool(decisions(body))))
        at = next(n for n, (_, one) in enumerate(forger.records) if one is body)
        body.update(values)
        # The reader counts lines from 1 and records from 0; both name the line.
        return f"line {at + 1}" if any("@@" in str(v) for v in values.values()) else "/".join(forger.records[at][0])

    return edit


def decision_line(**values: Any) -> Edit:
    def edit(forger: Forger) -> Place:
        body = _one(forger.bodies(_kind(forger), lambda body: bool(decisions(body))))
        at = next(n for n, (_, one) in enumerate(forger.records) if one is body)
        decisions(body)[-1].update(values)
        return f"line {at + 1}" if any("@@" in str(v) for v in values.values()) else "/".join(forger.records[at][0])

    return edit


def other_input(forger: Forger) -> Place:
    body = _one(forger.bodies(_kind(forger), lambda body: bool(decisions(body))))
    decisions(body)[0]["input_digest"] = "0" * 64
    return forger.label(body)


def other_reset_seed(forger: Forger) -> Place:
    body = _one(forger.bodies(_kind(forger)))
    body["reset_seed"] += 1
    return forger.label(body)


def other_decision_seed(forger: Forger) -> Place:
    body = _one(forger.bodies(_kind(forger), lambda body: bool(decisions(body))))
    decisions(body)[-1]["seed"] += 1
    return forger.label(body)


def invented(forger: Forger) -> Place:
    """Every episode of a noisy policy follows the shortest plan."""

    def plan(world: World) -> str | None:
        return next(iter(world.environment.plan()), None)  # type: ignore[attr-defined]

    if _kind(forger) == "rollout":
        bodies = forger.bodies("rollout", lambda body: body["policy"] == "y")
    else:
        bodies = forger.bodies("endpoint", lambda body: body["solver"] == "a" and body["arrived"])
    changed = None
    for body in bodies:
        before = deepcopy(decisions(body))
        forger.retell(body, plan)
        if changed is None and decisions(body) != before:
            changed = body
    assert changed is not None
    return forger.label(changed)


# ------------------------------------------------------------------------------------------- edits of a manifest


def in_identity(place: Place, **values: Any) -> Edit:
    def edit(forger: Forger) -> Place:
        forger.identity.update(values)
        return place

    return edit


def environment(place: Place, *path: str, **values: Any) -> Edit:
    """Sets values in the environment's part of the manifest, or in an object inside it."""

    def edit(forger: Forger) -> Place:
        inside = forger.identity["environment"]
        for part in path:
            inside = inside[part]
        inside.update(values)
        return place

    return edit


def described(policy: str, place: Place, **values: Any) -> Edit:
    """Sets facts of a policy; its place is given."""

    def edit(forger: Forger) -> Place:
        forger.policies[policy].update(values)
        return place

    return edit


def in_task(place: Place, **values: Any) -> Edit:
    def edit(forger: Forger) -> Place:
        forger.identity["tasks"][0].update(values)
        return place

    return edit


def more_seeds(forger: Forger) -> Place:
    forger.identity["seeds"]["remark"] = 1
    return "seeds"


def in_protocol(place: Place, **values: Any) -> Edit:
    def edit(forger: Forger) -> Place:
        forger.protocol.update(values)
        return place

    return edit


def fact(policy: str, *path: str, value: Any, place: str = "") -> Edit:
    """Sets a fact of a policy; its place is the policy."""

    def edit(forger: Forger) -> Place:
        inside = forger.policies[policy]
        for part in path[:-1]:
            inside = inside[part]
        inside[path[-1]] = value
        return (policy, place)

    return edit


def other_run_seed(forger: Forger) -> Place:
    forger.protocol["run_seed"] = 1
    forger.identity["seeds"]["run"] = 1
    return forger.label(_one(forger.bodies(_kind(forger), lambda body: bool(decisions(body)))))


def other_task(forger: Forger) -> Place:
    """The first task becomes one that was not drawn."""
    with forger.world() as world:
        available = world.environment.tasks(forger.protocol["split"])
    known = {task["id"] for task in forger.identity["tasks"]}
    first = forger.identity["tasks"][0]
    other = next(task for task in available if task.id not in known and task.type == first["type"])
    was = first["id"]
    first.update(id=other.id, name=other.name)
    for key, body in forger.records:
        if body["task"] == was:
            key[1] = body["task"] = other.id
    forger.settle()
    return "selection seed"


def renamed_task(forger: Forger) -> Place:
    forger.identity["tasks"][0]["name"] = "an easy one"
    return "an easy one"


def task_twice(forger: Forger) -> Place:
    forger.identity["tasks"].append(forger.identity["tasks"][0])
    if forger.protocol["tasks"] is not None:
        forger.protocol["tasks"] += 1
    return forger.identity["tasks"][0]["name"]


def specs_exchanged(forger: Forger) -> Place:
    one, other = sorted(forger.policies)[:2]
    forger.policies[one], forger.policies[other] = forger.policies[other], forger.policies[one]
    return (f" {one}",)


def labels_exchanged(forger: Forger) -> Place:
    """Who solved (or rolled out) is exchanged, and the lines are put into the plan's order."""
    who = "policy" if _kind(forger) == "rollout" else "solver"
    names = forger.protocol["policies" if who == "policy" else "solvers"]
    place = {"policy": 2, "solver": 4}[who]
    other = dict(zip(names, reversed(names), strict=True))
    for key, body in forger.records:
        if who in body:
            key[place] = body[who] = other[body[who]]
    order = {name: number for number, name in enumerate(names)}
    lines = forger.records
    starts = [line for line in lines if who not in line[1]]
    rest = [line for line in lines if who in line[1]]
    if who == "policy":
        tasks = {task["id"]: n for n, task in enumerate(forger.identity["tasks"])}
        rest.sort(key=lambda one: (tasks[one[1]["task"]], order[one[1]["policy"]], one[1]["index"]))
    else:
        cells = {tuple(key[1:]): n for n, (key, _) in enumerate(starts)}
        rest.sort(key=lambda one: (cells[tuple(one[0][1:4])], order[one[1]["solver"]]))
    forger.records = starts + rest
    return names[0]


def reachers_exchanged(forger: Forger) -> Place:
    names = forger.protocol["reachers"]
    other = dict(zip(names, reversed(names), strict=True))
    for key, body in forger.records:
        key[3] = body["reacher"] = other[body["reacher"]]
    order = {name: number for number, name in enumerate(names)}
    tasks = {task["id"]: n for n, task in enumerate(forger.identity["tasks"])}
    solvers = {name: number for number, name in enumerate(forger.protocol["solvers"])}
    forger.records.sort(
        key=lambda one: (
            one[0][0] == "endpoint",
            tasks[one[1]["task"]],
            one[1]["slot"],
            order[one[1]["reacher"]],
            solvers.get(one[1].get("solver", ""), 0),
        )
    )
    return f"reacher {names[0]}"


def model_for_script(policy: str) -> Edit:
    """A language model's decisions are said to be a scripted policy's."""

    def edit(forger: Forger) -> Place:
        forger.policies[policy] = {"spec": "noisy:0.5", "kind": "noisy", "epsilon": 0.5}
        return _spoken_place(forger, policy)

    return edit


def object_for_script(forger: Forger) -> Place:
    """A scripted policy's decisions are said to be those of an object that nobody here has."""
    name = sorted(forger.policies)[0]
    forger.policies[name] = {"spec": "python:theirs.Policy", "kind": "python"}
    return name


def script_for_builtin(forger: Forger) -> Place:
    """A scripted policy's decisions are said to be a shipped checkpoint's."""
    forger.policies[sorted(forger.policies)[0]] = {"spec": "builtin:sft", "kind": "builtin", "checkpoint": "sft"}
    return sorted(forger.policies)[0]


def _spoken_place(forger: Forger, policy: str) -> str:
    who = "policy" if _kind(forger) == "rollout" else "solver"
    return f"{who} {policy}"


def list_for_script(forger: Forger) -> Place:
    """A random policy's decisions are said to be those of a list of actions."""
    forger.policies["y"] = {"spec": "actions:moves.txt", "kind": "actions", "sha256": "0" * 64}
    return "policy y"


def more_policies(forger: Forger) -> Place:
    forger.policies["spare"] = {"spec": "random", "kind": "random"}
    return "spare"


def overflow(forger: Forger) -> Place:
    """A model's last decision becomes a prompt that did not fit, so that its failure is not its own."""
    body = (
        _lost(forger)
        if _kind(forger) == "rollout"
        else _one(
            forger.bodies(
                "endpoint", lambda b: bool(b["steps"]) and not b["won"] and b["steps"][-1]["decision"]["generation"]
            )
        )
    )
    decision = decisions(body)[-1]
    before = decision["generation"]
    decision.update(text="", action=None, status="context_overflow", flags=[])
    decision["generation"] = {**dict.fromkeys(before), "rendered": before["rendered"]}
    if "steps" in body:
        body["steps"][-1]["record"] = deepcopy(body["steps"][-2]["record"])
    forger.settle()
    return ("context overflow", f"policy {body['policy']}" if "policy" in body else f"solver {body['solver']}")


def other_model(forger: Forger) -> Place:
    """Another model of the same server is named, everywhere."""
    facts = forger.policies["a"]
    for key, value in facts.items():
        if value == "m":
            facts[key] = "better"
    facts["spec"] = facts["spec"].replace("#m", "#better")
    return "a"


def no_seal(forger: Forger) -> Place:
    forger.files["seal.json"] = None
    return "owed"


def in_manifest(place: Place, **values: Any) -> Edit:
    def edit(forger: Forger) -> Place:
        forger.manifest.update(values)
        return place

    return edit


def other_key(forger: Forger) -> Place:
    """A record's key says another slot or rollout than its body."""
    key, body = forger.records[1]
    forger.records[1] = ([*key[:-1], key[-1] + "0"], body)
    return "/".join(forger.records[1][0])


def fewer_slots(forger: Forger) -> Place:
    forger.protocol["slots"] = 1
    forger.records = [(key, body) for key, body in forger.records if body["slot"] == 0]
    return ""


def fewer_rollouts(forger: Forger) -> Place:
    forger.protocol["rollouts"] -= 1
    last = forger.protocol["rollouts"]
    forger.records = [(key, body) for key, body in forger.records if body["index"] != last]
    return ""


def favourable_tasks(forger: Forger) -> Place:
    """Half the tasks are kept, and a selection seed is searched that draws them."""
    with forger.world() as world:
        available = world.environment.tasks(forger.protocol["split"])
    ids = {task["id"] for task in forger.identity["tasks"]}
    count = len(ids) // 2
    for seed in range(1_000_000):
        drawn = draw_tasks(available, forger.protocol["split"], count, (), seed)
        if all(task.id in ids for task in drawn):
            break
    kept = [task.id for task in drawn]
    forger.protocol.update(tasks=count, selection_seed=seed)
    by_id = {task["id"]: task for task in forger.identity["tasks"]}
    forger.identity["tasks"] = [by_id[id] for id in kept]
    forger.records = [line for line in forger.records if line[1]["task"] in kept]
    order = {id: number for number, id in enumerate(kept)}
    forger.records.sort(key=lambda one: (one[0][0] == "endpoint", order[one[1]["task"]]))
    return ""


def fewer_policies(forger: Forger) -> Place:
    gone = sorted(forger.policies)[-1]
    del forger.policies[gone]
    return "manifest"


def renamed_policy(forger: Forger) -> Place:
    """A policy gets another name in the manifest, and its records keep the old one."""
    old = sorted(forger.policies)[-1]
    forger.policies["renamed"] = forger.policies.pop(old)
    for role in ("reachers", "solvers", "policies"):
        if role in forger.protocol:
            forger.protocol[role] = ["renamed" if name == old else name for name in forger.protocol[role]]
    return "/".join(next(key for key, _ in forger.records if old in key))


# ------------------------------------------------------------------------------------------- edits of trajectories


def arrival_dropped(forger: Forger) -> Place:
    """An arrival becomes a turn that ran out of actions; its continuations go."""
    body = _arrived(forger)
    body.update(arrival=None, outcome="budget")
    body["steps"][-1]["check"].update(member=False, distance=None, bridges=[], path=[])
    _empty(forger, body)
    return forger.label(body)


def arrival_cut(forger: Forger) -> Place:
    body = _arrived(forger)
    body["steps"].pop()
    body.update(arrival=None, outcome="budget")
    _empty(forger, body)
    return forger.label(body)


def _empty(forger: Forger, start: Body) -> None:
    for end in _ends(forger, start):
        end.update(arrived=False, won=False, bridge=None, clone=None, steps=[])


def arrival_invented(forger: Forger) -> Place:
    """A turn that ran out of actions arrives at its last state, and a solver goes on from there in the world."""
    body = _strayed(forger)
    _arrive(forger, body)
    return forger.label(body)


def _arrive(forger: Forger, body: Body) -> None:
    depth = forger.protocol["depth"]
    last = body["steps"][-1]
    actions = last["record"]["admissible"]
    last["check"] = {
        "depth": depth, "member": True, "distance": depth, "tried": last["check"]["tried"], "bridges": actions[:1],
        "path": actions[:1] * depth,
    }  # fmt: skip
    body.update(arrival=len(body["steps"]), outcome="arrived")
    for end in _ends(forger, body):
        end.update(arrived=True, clone={"records": 0, "digest": "", "input_digest": ""})
        forger.retell(end, lambda world: world.record.admissible[0])


def reacher_invented(forger: Forger) -> Place:
    """A noisy reacher's turn follows the shortest plan; its continuations are told anew from where it leads."""

    def plan(world: World) -> str | None:
        return next(iter(world.environment.plan()), None)  # type: ignore[attr-defined]

    for body in forger.bodies("trajectory", lambda b: b["reacher"] == "a" and b["outcome"] == "budget"):
        forger.retell(body, plan)
        if body["arrival"] is not None:
            break
    assert body["arrival"] is not None
    for end in _ends(forger, body):
        end.update(arrived=True, clone={"records": 0, "digest": "", "input_digest": ""})
        forger.retell(end, plan)
    return forger.label(body)


def other_reset_distance(forger: Forger) -> Place:
    body = _one(forger.bodies("trajectory", lambda b: b["reset_distance"] is not None))
    body["reset_distance"] -= 1
    return forger.label(body)


def other_outcome(forger: Forger) -> Place:
    body = _strayed(forger)
    body["outcome"] = "terminal"
    return forger.label(body)


def in_check(**values: Any) -> Edit:
    """Sets values in the certificate of an arrival."""

    def edit(forger: Forger) -> Place:
        body = _arrived(forger)
        body["steps"][-1]["check"].update(values)
        return forger.label(body)

    return edit


def fewer_tries(forger: Forger) -> Place:
    body = _arrived(forger)
    body["reset_check"]["tried"][-1] -= 1
    return forger.label(body)


def other_bridges(forger: Forger) -> Place:
    """The certificate calls every admissible action a bridge, and the rows follow it."""
    body = _arrived(forger)
    body["steps"][-1]["check"]["bridges"] = list(body["steps"][-1]["record"]["admissible"])
    for end in _ends(forger, body):
        end["bridge"] = True
    return forger.label(body)


def other_distance(forger: Forger) -> Place:
    body = _one(forger.bodies("trajectory", lambda b: any(step["distance"] for step in b["steps"])))
    step = next(step for step in body["steps"] if step["distance"])
    step["distance"] += 1
    return forger.label(body)


def bridge_flipped(forger: Forger) -> Place:
    body = _won(forger)
    body["bridge"] = not body["bridge"]
    return forger.label(body)


def in_clone(**values: Any) -> Edit:
    def edit(forger: Forger) -> Place:
        body = _won(forger)
        body["clone"].update(values)
        return forger.label(body)

    return edit


def in_record(**values: Any) -> Edit:
    """Sets values in the last record of a trajectory that strayed, and settles the rest."""

    def edit(forger: Forger) -> Place:
        body = _strayed(forger)
        body["steps"][-1]["record"].update(values)
        forger.settle()
        return forger.label(body)

    return edit


def in_reset(**values: Any) -> Edit:
    """Sets values in the first record of a trajectory that strayed, and settles the rest."""

    def edit(forger: Forger) -> Place:
        body = _strayed(forger)
        body["reset"].update(values)
        forger.settle()
        return forger.label(body)

    return edit


def trajectory_left_out(forger: Forger) -> Place:
    _, body = forger.records.pop(0)
    return forger.label(body)


def solvers_reversed(forger: Forger) -> Place:
    forger.protocol["solvers"].reverse()
    return "is in the place of"


# ----------------------------------------------------------------------------------------------- edits of rollouts


def pilot_won(forger: Forger) -> Place:
    """A pilot is told as a success, and the temperatures that follow from it too."""
    body = _one(forger.bodies("rollout", lambda b: b["index"] < 2 and not b["won"]))
    body.update(won=True, outcome="won")
    return forger.label(body)


def temperature(index: int, value: float | None) -> Edit:
    def edit(forger: Forger) -> Place:
        body = _one(forger.bodies("rollout", lambda body: body["index"] == index))
        body["temperature"] = value
        forger.settle()
        return (forger.label(body), "")

    return edit


def ptgs(place: str, **values: Any) -> Edit:
    def edit(forger: Forger) -> Place:
        forger.protocol["ptgs"].update(values)
        return place

    return edit


# ----------------------------------------------------------------------------------- edits of a language model's


def other_text(change: Callable[[str], str]) -> Edit:
    def edit(forger: Forger) -> Place:
        body, decision = _spoken(forger)
        decision["text"] = change(decision["text"])
        return forger.label(body)

    return edit


def flags_removed(forger: Forger) -> Place:
    kind = "rollout" if _kind(forger) == "rollout" else "endpoint"
    for body in forger.bodies(kind):
        if decisions(body) and decisions(body)[-1]["flags"]:
            decisions(body)[-1]["flags"] = []
            return forger.label(body)
    raise AssertionError("no last decision has a flag")


def mute(status: str, text: str = "", **values: Any) -> Edit:
    """A model's last decision comes to no action; the flag ``scored`` stays, as far as the status has it."""

    def edit(forger: Forger) -> Place:
        body, decision = _spoken(forger)
        decision.update(text=text, action=None, status=status, flags=[] if status == "refused" else ["scored"])
        decision["generation"].update(values)
        return (forger.label(body), "refusal" if status == "refused" else status)

    return edit


def other_template(forger: Forger) -> Place:
    """The prompts are said to be made by a user's template, which nobody here has."""
    forger.policies["a"]["prompt"].update(template="mine.jinja", source="{{ observation }}")
    return "a"


def other_conversation(forger: Forger) -> Place:
    """A template that nobody here has shows replies as messages, and a chat template is said to rewrite them."""
    source = "{% block first %}{{ observation }}{% endblock %}{% block turn %}{{ observation }}{% endblock %}"
    forger.policies["a"]["prompt"].update(template="mine.jinja", source=source)
    forger.policies["a"]["rewrites"] = {"thinking": [1]}
    return "a"


def revision(forger: Forger) -> Place:
    forger.policies["sft"].update(spec="builtin:sft@main", revision="main")
    return "sft"


def no_policy(forger: Forger) -> Place:
    name = sorted(forger.policies)[0]
    forger.policies[name] = None
    return name


def arrival(value: int, **values: Any) -> Edit:
    """Sets when a reacher arrived, which a reader refuses with the record's key."""

    def edit(forger: Forger) -> Place:
        body = _one(forger.bodies("trajectory", lambda body: body["arrival"]))
        at = next(n for n, (_, one) in enumerate(forger.records) if one is body)
        body.update(arrival=value, **values)
        return f"line {at + 1}" if abs(value) > 10**300 else "/".join(forger.records[at][0])

    return edit


def every_clone(**values: Any) -> Edit:
    """Sets values in the first decisions of all solvers of one clone, so that they agree."""

    def edit(forger: Forger) -> Place:
        body, _ = _spoken(forger)
        for end in _ends(forger, body):
            end["steps"][0]["decision"].update(values)
        return forger.label(body).rpartition(", solver")[0]

    return edit


def other_words(forger: Forger) -> Place:
    """A model's answer is another action, with a text that says so, told to the end with true records."""
    body, _ = _spoken(forger)
    before = deepcopy(decisions(body))
    turn = 0

    def choose(world: World) -> str | None:
        nonlocal turn
        turn += 1
        return world.record.admissible[-turn % len(world.record.admissible)]

    forger.retell(body, choose)
    assert decisions(body) != before
    return forger.label(body)


def checkpoints_exchanged(forger: Forger) -> Place:
    one, other = forger.policies["base"], forger.policies["sft"]
    one["digests"], other["digests"] = other["digests"], one["digests"]
    return "base"
