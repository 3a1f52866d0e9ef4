"""From PDDL to SAS: the planner's own translation, cached on disk and parsed into plain data.

It is the translation that textworld's engine makes for its state (no pruning of operators or facts), so a state of this
task *is* a state of the native engine.  Every variable has two values, a fact and its negation; axioms derive the goal
(and, in other domains, conditions).
"""

from __future__ import annotations

import sys
import threading
from functools import lru_cache
from importlib import metadata
from typing import Any

import attrs

from handoff.canonical import digest
from handoff.envs.alfworld.compiled import cache
from handoff.errors import DataError

#: To be increased when the shape of the cached data changes.
FORMAT = 2

#: A condition: (variable, whether its fact must hold).
Literal = tuple[int, bool]
#: A fact: predicate and arguments, in the lower case of the planner.
Fact = tuple[str, ...]

# The translator keeps its options in a module, and its wrapper swaps sys.argv and sys.stdout.
TRANSLATOR = threading.RLock()


class NotTranslated(DataError):
    """The planner does not accept a game, so no engine does."""


def reason(error: BaseException) -> str:
    """The error of the planner's parser, in words."""
    if isinstance(error, StopIteration) or isinstance(error.__cause__, StopIteration):
        return "a part of it is missing, or ends too early"
    return " ".join(str(error).split())[:200] or type(error).__name__


@attrs.frozen
class Effect:
    """After the operator, ``variable`` has ``value`` if all ``conditions`` held before it."""

    conditions: tuple[Literal, ...]
    variable: int
    value: bool


@attrs.frozen
class Operator:
    """A ground action."""

    #: The action's name and its arguments, separated by spaces.
    name: str
    #: The preconditions on variables that the action does not change.
    prevail: tuple[Literal, ...]
    #: All preconditions.
    pre: tuple[Literal, ...]
    #: In the planner's order, in which a later effect overrides an earlier one.
    effects: tuple[Effect, ...]


@attrs.frozen
class Axiom:
    """The derived ``variable`` has ``value`` (else the opposite) if all ``conditions`` hold."""

    conditions: tuple[Literal, ...]
    variable: int
    value: bool


@attrs.frozen
class Problem:
    """A translated task.  All declarations are in lower case."""

    #: The fact of each variable.
    facts: tuple[Fact, ...]
    #: Whether it holds at first.
    initial: tuple[bool, ...]
    #: Its axiom layer (-1: not derived).
    layers: tuple[int, ...]
    operators: tuple[Operator, ...]
    axioms: tuple[Axiom, ...]
    goal: tuple[Literal, ...]
    #: The facts of the problem file, static ones included, in its order.
    given: tuple[Fact, ...]
    #: Each object with its type.
    objects: tuple[tuple[str, str], ...]
    #: Each type with its supertypes.
    types: tuple[tuple[str, tuple[str, ...]], ...]
    #: Each action with its parameters: (name, type).
    parameters: tuple[tuple[str, tuple[tuple[str, str], ...]], ...]


@lru_cache(maxsize=1)
def versions() -> dict[str, str]:
    """Versions of everything that the translation depends on."""
    names = ("textworld", "fast-downward-textworld")
    return {"format": str(FORMAT), **{name: metadata.version(name) for name in names}}


_PAIR = (int, int)
#: What :func:`_parse` returns.
_SHAPE = {
    "given": [[str]],
    "objects": [(str, str)],
    "types": [(str, [str])],
    "parameters": [(str, [(str, str)])],
    "facts": [[str]],
    "initial": [bool],
    "layers": [int],
    "operators": [(str, [_PAIR], [_PAIR], [([_PAIR], int, int)])],
    "axioms": [([_PAIR], int, int)],
    "goal": [_PAIR],
}


def translate(domain: str, problem: str, cached: bool = True) -> Problem:
    """The translated task, from the cache (unless ``cached`` is false) or from the planner.

    Raises :class:`~handoff.errors.DataError` if the planner does not accept the texts, or if a variable of the task is
    not a fact with its negation.
    """
    if not cached:
        return _structure(_parse(*_planner(domain, problem)))
    key = digest({"domain": domain, "problem": problem, "versions": versions()})
    task = cache.load("sas", key, _SHAPE, _checked)
    if task is None:
        data = _parse(*_planner(domain, problem))
        cache.store("sas", key, data)
        task = _structure(data)
    return task


def sas_text(domain: str, problem: str) -> str:
    """The planner's own text of the translation, without the cache.  Raises as :func:`translate`."""
    return _planner(domain, problem)[0]


def _planner(domain: str, problem: str) -> tuple[str, dict[str, Any]]:
    """The SAS text and the declarations, with ``sys.argv`` and ``sys.stdout`` left as they were."""
    import fast_downward

    with TRANSLATOR:
        argv, stdout = sys.argv, sys.stdout
        try:
            task, text = fast_downward.pddl2sas(domain, problem, verbose=False)
            atom = fast_downward.translate.pddl.conditions.Atom
            assign = fast_downward.translate.pddl.f_expression.Assign
            given = []
            for item in task.init:
                if isinstance(item, atom):
                    if item.predicate != "=":
                        given.append([item.predicate, *item.args])
                elif isinstance(item, assign) and item.fluent.symbol != "total-cost":
                    value = str(item.expression.value)
                    if not value.isdigit():  # a number (a distance, say) is no part of the state
                        given.append([value, *item.fluent.args])
            declarations = {
                "given": given,
                "objects": [[item.name, item.type_name] for item in task.objects],
                "types": [[kind.name, list(kind.supertype_names)] for kind in task.types],
                "parameters": [[a.name, [[p.name, p.type_name] for p in a.parameters]] for a in task.actions],
            }
        except (Exception, SystemExit) as error:
            raise NotTranslated(f"the game's PDDL is not accepted by the planner: {reason(error)}") from error
        finally:
            sys.argv, sys.stdout = argv, stdout
    return text, declarations


class _Lines:
    """The lines of a SAS file, one section after the other."""

    def __init__(self, text: str) -> None:
        self._lines = iter(text.splitlines())

    def next(self) -> str:
        return next(self._lines)

    def number(self) -> int:
        return int(next(self._lines))

    def expect(self, word: str) -> None:
        line = next(self._lines)
        if line != word:
            raise DataError(f"the planner's output is malformed: {line[:80]!r} instead of {word!r}")

    def literals(self) -> list[list[int]]:
        return [[int(part) for part in self.next().split()] for _ in range(self.number())]


def _fact(text: str, word: str) -> list[str]:
    kind, _, rest = text.partition(" ")
    if rest.startswith("dummy("):  # the translator's output for a task without a solution
        raise DataError("the goal of the game can be reached by no action")
    predicate, _, arguments = rest.partition("(")
    if kind != word or not arguments.endswith(")"):
        raise DataError(f"the planner's output is malformed: {text[:80]!r} is not a fact or its negation")
    return [predicate, *(part for part in arguments[:-1].split(", ") if part)]


def _parse(text: str, declarations: dict[str, Any]) -> dict[str, Any]:
    """The SAS file format, version 3 (documented with Fast Downward), as JSON-safe lists."""
    lines = _Lines(text)
    lines.expect("begin_version")
    if lines.next() != "3":
        raise DataError("the planner's format is not version 3; install textworld 1.7")
    lines.expect("end_version")
    lines.expect("begin_metric")
    lines.next()
    lines.expect("end_metric")
    facts, layers = [], []
    for _ in range(lines.number()):
        lines.expect("begin_variable")
        lines.next()
        layers.append(lines.number())
        if lines.number() != 2:
            raise DataError("the game's PDDL gives variables with more than two values, which is not supported")
        fact = _fact(lines.next(), "Atom")
        if _fact(lines.next(), "NegatedAtom") != fact:
            raise DataError("the game's PDDL gives variables that are not facts, which is not supported")
        facts.append(fact)
        lines.expect("end_variable")
    for _ in range(lines.number()):  # mutex groups: not needed
        while lines.next() != "end_mutex_group":
            pass
    lines.expect("begin_state")
    initial = [lines.number() == 0 for _ in facts]
    lines.expect("end_state")
    lines.expect("begin_goal")
    goal = lines.literals()
    lines.expect("end_goal")
    operators = []
    for _ in range(lines.number()):
        lines.expect("begin_operator")
        name = lines.next()
        prevail = lines.literals()
        pre, effects = list(prevail), []
        for _ in range(lines.number()):
            numbers = [int(part) for part in lines.next().split()]
            count = numbers[0]
            conditions = [numbers[1 + 2 * i : 3 + 2 * i] for i in range(count)]
            variable, before, after = numbers[1 + 2 * count :]
            if before != -1 and [variable, before] not in pre:
                pre.append([variable, before])
            effects.append([conditions, variable, after])
        lines.next()  # the cost: here every action costs one
        lines.expect("end_operator")
        operators.append([name, prevail, pre, effects])
    axioms = []
    for _ in range(lines.number()):
        lines.expect("begin_rule")
        conditions = lines.literals()
        variable, _before, after = (int(part) for part in lines.next().split())
        axioms.append([conditions, variable, after])
        lines.expect("end_rule")
    return {
        **declarations,
        "facts": facts,
        "initial": initial,
        "layers": layers,
        "operators": operators,
        "axioms": axioms,
        "goal": goal,
    }


def _literals(pairs: list[list[int]]) -> tuple[Literal, ...]:
    return tuple([(variable, value == 0) for variable, value in pairs])


def _checked(data: dict[str, Any]) -> Problem:
    """:func:`_structure` of data from outside.  Raises ``ValueError`` if they name a variable that is not there."""
    task = _structure(data)
    literals = [*task.goal]
    for operator in task.operators:
        literals += operator.pre
        for effect in operator.effects:
            literals += [*effect.conditions, (effect.variable, effect.value)]
    for axiom in task.axioms:
        literals += [*axiom.conditions, (axiom.variable, axiom.value)]
    if not len(task.facts) == len(task.initial) == len(task.layers):
        raise ValueError("facts, initial values and layers differ in number")
    if not all(0 <= variable < len(task.facts) for variable, _ in literals):
        raise ValueError("a variable is not there")
    return task


def _structure(data: dict[str, Any]) -> Problem:
    return Problem(
        facts=tuple(map(tuple, data["facts"])),
        initial=tuple(data["initial"]),
        layers=tuple(data["layers"]),
        operators=tuple(
            Operator(
                name, _literals(prevail), _literals(pre), tuple([Effect(_literals(c), v, x == 0) for c, v, x in eff])
            )
            for name, prevail, pre, eff in data["operators"]
        ),
        axioms=tuple(Axiom(_literals(conditions), v, x == 0) for conditions, v, x in data["axioms"]),
        goal=_literals(data["goal"]),
        given=tuple(map(tuple, data["given"])),
        objects=tuple((name, kind) for name, kind in data["objects"]),
        types=tuple((name, tuple(supertypes)) for name, supertypes in data["types"]),
        parameters=tuple((name, tuple((p, t) for p, t in parameters)) for name, parameters in data["parameters"]),
    )
