"""The data model: frozen wire data, apart from all behaviour.

A run can be read with this module alone, without the environment or the policies that made it.  Every class is
JSON-safe through :func:`to_json` and :func:`from_json`; nothing here is mutable and nothing imports the rest of the
toolkit but :mod:`handoff.canonical` and :mod:`handoff.errors`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cached_property
from typing import Any, TypeVar, get_args, get_origin

import attrs
import cattrs
from cattrs.gen import make_dict_structure_fn, make_dict_unstructure_fn, override

from handoff.canonical import digest
from handoff.errors import DataError, HandoffError

T = TypeVar("T")


@attrs.frozen
class Task:
    """One task of an environment.

    ``id`` is the digest of what the task *is* (for a game: its content), never of where it lies.
    ``source`` is the adapter's own locator below its data root; it takes no part in identity.
    """

    id: str
    name: str
    type: str
    split: str
    source: str = ""


@attrs.frozen
class Message:
    """One message of a conversation.

    ``role`` is one of ``ROLES``; ``name`` is the tool whose answer a message of the role ``tool`` is.
    """

    role: str
    content: str
    name: str = ""


#: Roles of messages, as chat models know them.
ROLES = ("system", "user", "assistant", "tool")


@attrs.frozen
class Tool:
    """A tool that an agent may call.

    ``parameters`` is the JSON Schema of its arguments (an object), as canonical JSON.
    """

    name: str
    description: str
    parameters: str


#: The blank of an open action.
BLANK = "<...>"


class Offer(tuple[str, ...]):
    """The actions that a state admits: the listed ones, and what else ``in`` accepts.

    An open action, such as ``search[<...>]``, accepts every text of one line in the place of its blank.  Where the
    state is a conversation every reply is accepted.
    """

    opens: tuple[str, ...]
    #: Whether every reply is accepted.
    free: bool

    @classmethod
    def of(cls, admissible: Iterable[str], opens: tuple[str, ...] = (), free: bool = False) -> Offer:
        offer = cls(admissible)
        offer.opens, offer.free = opens, free
        return offer

    def __contains__(self, action: object) -> bool:
        if not isinstance(action, str):
            return False
        return self.free or super().__contains__(action) or any(fills(action, pattern) for pattern in self.opens)


def fills(action: str, pattern: str) -> bool:
    """Whether ``action`` is the open action ``pattern`` with a text of one line in the place of its blank."""
    before, _, after = pattern.partition(BLANK)
    text = action[len(before) : len(action) - len(after)]
    whole = action.startswith(before) and action.endswith(after) and len(action) > len(before) + len(after)
    return whole and bool(text.strip()) and "\n" not in text


@attrs.frozen
class Record:
    """What an environment shows after reset or after one action.  Complete and JSON-safe.

    ``won`` is success *now*; an environment need not latch it.  ``score`` is 0 and ``done`` false at reset where
    the engine leaves them unset.

    The other fields are empty where an environment has no use for them.  ``open_actions`` are actions with one blank
    (``BLANK``).  ``messages`` are what the environment adds to a conversation after the reply; where there are none, a
    non-empty observation after a reply is the one message of a tool.  The record of the reset has the messages
    before the first reply, and ``tools`` are what may be called.  ``problem`` says why the action was not a valid one,
    and ``flags`` are remarks that no policy is shown.  ``state`` is the digest of what the environment holds beyond
    what it shows: clones must have it equal.
    """

    observation: str
    admissible: tuple[str, ...]
    score: float
    done: bool
    won: bool
    open_actions: tuple[str, ...] = ()
    messages: tuple[Message, ...] = ()
    tools: tuple[Tool, ...] = ()
    problem: str = ""
    flags: tuple[str, ...] = ()
    state: str = ""

    def offer(self, free: bool = False) -> Offer:
        """The actions that are accepted here; ``free``: in a conversation, whose replies are all accepted."""
        return Offer.of(self.admissible, self.open_actions, free)

    def digest(self) -> str:
        return self._digest

    @cached_property
    def _digest(self) -> str:
        # A record is digested for every decision that it is shown to.
        return digest(to_json(self))


@attrs.frozen
class Generation:
    """How a language model came to a decision's text.

    ``rendered`` is the digest of the rendered prompt, before any tokenizer.  ``finish`` is why generation ended
    (``stop``, ``length``, ...; ``None``: the model was not asked), ``stop`` the stop string that ended it.  ``tokens``
    counts generated tokens and ``digest`` is that of their ids (``None`` where a server does not give them).
    ``max_tokens`` is the limit that was asked for, after it was cut to the room in the context.  ``reasoning`` is
    thinking and ``refusal`` a refusal that a server gave apart from the text; ``refusal`` is also what a filter of the
    server says in place of a reply.
    """

    rendered: str
    finish: str | None = None
    stop: str | None = None
    tokens: int | None = None
    digest: str | None = None
    max_tokens: int | None = None
    reasoning: str | None = None
    refusal: str | None = None

    @property
    def is_refusal(self) -> bool:
        """Whether the model declined to answer, or a content filter took its reply or stopped its prompt."""
        return self.refusal is not None or self.finish == "content_filter"


@attrs.frozen
class Decision:
    """One decision of a policy.

    ``text`` is what the policy said, ``action`` what it came to (``None``: nothing usable; the step is spent).
    ``status`` is one of ``STATUSES``; ``flags`` are remarks on the parse.  ``seed`` is the decision's paired seed.
    ``prompt_digest`` and ``prompt_tokens`` describe the input token ids where the policy has such; ``input_digest``
    is the digest of everything that the policy was shown.  ``generation`` is there for language models.
    """

    text: str
    action: str | None
    status: str
    seed: int
    input_digest: str
    flags: tuple[str, ...] = ()
    prompt_digest: str | None = None
    prompt_tokens: int | None = None
    generation: Generation | None = None


#: ``refused``: the model declined to answer, or a content filter took its reply or stopped its prompt.
STATUSES = ("parsed", "no_action", "inadmissible", "truncated", "empty", "context_overflow", "refused")
#: The statuses of a decision that has an action.
ACTING = ("parsed", "inadmissible")


@attrs.frozen
class Certificate:
    """The answer of an exhaustive depth-``depth`` search from one state (frontier F_D, section 3.1 of the paper).

    ``tried[d]`` counts the action sequences of length ``d + 1`` that were tried; a level is always completed, and the
    search stops after the first level with a win.  ``distance`` is the least number of actions that wins, if it is
    at most ``depth``.  ``member`` says that the state is non-terminal and ``distance == depth``.  ``bridges`` are
    *all* first actions on a shortest path (in admissible order), ``path`` is the first shortest path in admissible
    order.  Both are empty when no win was found.
    """

    depth: int
    member: bool
    distance: int | None
    tried: tuple[int, ...]
    bridges: tuple[str, ...] = ()
    path: tuple[str, ...] = ()


@attrs.frozen
class NamedCheck:
    """One check of a verdict; ``passed`` is ``None`` where it does not apply."""

    name: str
    passed: bool | None


@attrs.frozen
class AnswerVerdict:
    """How an answer was scored: the checks by name, in order, and whether it passes as a whole.

    ``flags`` are remarks on how it was read and scored.
    """

    passed: bool
    checks: tuple[NamedCheck, ...] = ()
    flags: tuple[str, ...] = ()


@attrs.frozen
class Step:
    """One decision, the record after it, and (for a reacher) the frontier check of the state that it led to.

    ``distance`` is the least number of actions to success from there, where the run records distances and it is within
    their limit; else ``None``.
    """

    decision: Decision
    record: Record
    check: Certificate | None = None
    distance: int | None = None


_converter = cattrs.Converter(forbid_extra_keys=True)


def _strict(kind: type) -> Any:
    def structure(value: Any, _: Any) -> Any:
        # bool is an int and cattrs would coerce "3" or 1.5: untrusted records get no such leniency.
        if kind is float and type(value) is int:
            return float(value)
        if type(value) is not kind:
            raise ValueError(f"expected {kind.__name__}, found {value!r:.80}")
        return value

    return structure


def _is_tuple(kind: Any) -> bool:
    return get_origin(kind) is tuple


def _strict_tuple(kind: Any, converter: cattrs.BaseConverter) -> Any:
    item = get_args(kind)[0]

    def structure(value: Any, _: Any) -> Any:
        if type(value) not in (list, tuple):  # a string would pass for a sequence of strings
            raise ValueError(f"expected an array, found {value!r:.80}")
        return tuple(converter.structure(element, item) for element in value)

    return structure


for _kind in (int, float, bool, str):
    _converter.register_structure_hook(_kind, _strict(_kind))
_converter.register_structure_hook_factory(_is_tuple, _strict_tuple)
_converter.register_structure_hook_factory(
    attrs.has, lambda kind: make_dict_structure_fn(kind, _converter, _cattrs_forbid_extra_keys=True)
)
# Records without what came later keep the form that they had before.
_LATER: Mapping[type, tuple[str, ...]] = {
    Generation: ("refusal",),
    Message: ("name",),
    Record: ("open_actions", "messages", "tools", "problem", "flags", "state"),
}
for _class, _names in _LATER.items():
    _omitted: dict[str, Any] = {name: override(omit_if_default=True) for name in _names}
    _converter.register_unstructure_hook(_class, make_dict_unstructure_fn(_class, _converter, **_omitted))


def to_json(value: Any) -> Any:
    """JSON-safe form (dicts, lists, numbers, strings, ``None``) of any record class."""
    return _converter.unstructure(value)


def _reason(error: BaseException, kind: type | None) -> str:
    """One error in words: a refusal of the class's own in its own words."""
    return str(error) if isinstance(error, HandoffError) else cattrs.v.format_exception(error, kind)


def from_json(kind: type[T], data: Mapping[str, Any], where: str = "record") -> T:
    """Rebuild a ``kind`` from untrusted JSON.

    Raises :class:`~handoff.errors.DataError` that starts with ``where`` if a field is missing, unknown or of
    another type.
    """
    try:
        return _converter.structure(data, kind)
    except Exception as error:
        deep = isinstance(error, RecursionError)
        reasons = "too deep" if deep else "; ".join(cattrs.transform_error(error, format_exception=_reason))
        raise DataError(f"{where} is not a valid {kind.__name__}: {reasons}") from error
