"""A game's text grammar in a restricted form: data, never code.

textworld evaluates the text in braces as Python.  Here an expression is a sum of quoted strings and of ``variable``,
``variable.attribute`` or ``a or b`` over those; anything else is refused by name.  textworld's own parsers (which only
parse) split the texts, so spaces, comments and unclosed braces mean the same as there.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

import attrs

from handoff.envs.alfworld.compiled.cache import has_shape
from handoff.envs.alfworld.games.files import PLACEHOLDER, PLAIN, mask_sentence
from handoff.errors import DataError

#: Attributes of an entity that a text may use.
ATTRIBUTES = ("name", "id", "type", "definite", "indefinite")


@attrs.frozen
class Text:
    """Literal text."""

    text: str


@attrs.frozen
class Nonterminal:
    """Expands to the first rule of that name whose condition has a match."""

    name: str


@attrs.frozen
class Value:
    """Concatenated terms; each term is the first non-empty of its alternatives: a quoted string, or the
    ``attribute`` of a ``variable``."""

    terms: tuple[tuple[str | tuple[str, str], ...], ...]

    def evaluate(self, entities: Mapping[str, tuple[str, str]], names: Mapping[str, str]) -> str:
        """The text where ``entities[variable]`` is (identifier, type) and ``names[identifier]`` is the entity's name.

        Raises :class:`~handoff.errors.DataError` for an unbound variable.
        """
        parts = []
        for term in self.terms:
            texts = (a if isinstance(a, str) else _attribute(*a, entities, names) for a in term)
            parts.append(next((text for text in texts if text), ""))
        return "".join(parts)


def _attribute(variable: str, attribute: str, entities: Mapping[str, tuple[str, str]], names: Mapping[str, str]) -> str:
    if variable not in entities or entities[variable][0] not in names:
        raise DataError(f"the game's grammar uses the variable {variable!r} where it is not bound")
    identifier, kind = entities[variable]
    articles = {"definite": "the", "indefinite": "a"}
    return {"name": names[identifier], "id": identifier, "type": kind, **articles}[attribute]


@attrs.frozen
class Each:
    """``body`` for every match of ``query``, in order; as an enumeration ("a, b, and c") if ``listed``."""

    body: Nonterminal | Value
    query: tuple[Predicate, ...]
    listed: bool


@attrs.frozen
class Predicate:
    """A predicate over placeholders, each with its type."""

    name: str
    parameters: tuple[tuple[str, str], ...]


Symbol = Text | Nonterminal | Value | Each


@attrs.frozen
class Production:
    """The expansion of a rule if ``condition`` has a match (always, if it is empty)."""

    condition: tuple[Predicate, ...]
    body: tuple[Symbol, ...]


@attrs.frozen
class ActionText:
    """The text of an action, and the feedback to it."""

    template: tuple[Symbol, ...]
    feedback: tuple[Symbol, ...]


@attrs.frozen
class Grammar:
    """``actions`` by lower-case name, ``rules`` by name."""

    actions: dict[str, ActionText]
    rules: dict[str, tuple[Production, ...]]


@lru_cache(maxsize=8)
def parse(text: str) -> Grammar:
    """The restricted form of a grammar.

    Raises :class:`~handoff.errors.DataError` that names the construct if the text is no grammar or uses something
    outside the restricted form.
    """
    # The games of one release differ only in their task sentence, and parsing takes a third of a second.
    masked, sentence = mask_sentence(text)
    if sentence is None or not PLAIN.fullmatch(sentence):
        return parse_whole(text)
    return _with_sentence(parse_whole(masked), sentence) or parse_whole(text)


def _with_sentence(grammar: Grammar, sentence: str) -> Grammar | None:
    """The ``grammar`` of a masked text with the sentence put in; ``None`` unless exactly one text has the mark."""
    mark = f"{PLACEHOLDER}."
    marked = [
        (name, place, position)
        for name, productions in grammar.rules.items()
        for place, production in enumerate(productions)
        for position, symbol in enumerate(production.body)
        if isinstance(symbol, Text) and mark in symbol.text
    ]
    if len(marked) != 1:
        return None
    [(name, place, position)] = marked
    productions = list(grammar.rules[name])
    body = list(productions[place].body)
    symbol = body[position]
    assert isinstance(symbol, Text)
    body[position] = Text(symbol.text.replace(mark, sentence))
    productions[place] = Production(productions[place].condition, tuple(body))
    return Grammar(grammar.actions, {**grammar.rules, name: tuple(productions)})


@lru_cache(maxsize=8)
def parse_whole(text: str) -> Grammar:
    """As :func:`parse`, without sharing work between games."""
    from textworld.envs.pddl import logic

    try:
        actions, grammar = logic._parse_and_convert(text, rule_name="pddlStart")
        texts = {a.name.lower(): (a.template, a.feedback_rule) for a in actions.values()}
        rules = {
            name: tuple(Production(query(rule.condition), _symbols(rule.rhs)) for rule in alternatives)
            for name, alternatives in grammar._rules.items()
        }
    except DataError:
        raise
    except Exception as error:
        reason = " ".join(str(error).split())[:200] or type(error).__name__
        raise DataError(f"the game's grammar cannot be parsed: {reason}") from error
    return Grammar({name: ActionText(symbols(t), symbols(f)) for name, (t, f) in texts.items()}, rules)


@lru_cache(maxsize=4096)
def symbols(text: str) -> tuple[Symbol, ...]:
    """The symbols of one text.  Raises :class:`~handoff.errors.DataError` as :func:`parse`."""
    from textworld.envs.pddl import textgen

    try:
        return _symbols(textgen._parse_and_convert(text, rule_name="symbols"))
    except DataError:
        raise
    except Exception as error:
        raise DataError(f"the game's grammar has a text that cannot be parsed: {text[:80]!r}") from error


@lru_cache(maxsize=4096)
def query(text: str | None) -> tuple[Predicate, ...]:
    """The predicates of a condition, in order."""
    if not text:
        return ()
    from textworld.logic import Rule as Conjunction

    try:
        predicates = Conjunction.parse_conjunctive_query(text).preconditions
    except Exception as error:
        raise DataError(f"the game's grammar has a condition that cannot be parsed: {text[:80]!r}") from error
    return tuple(Predicate(p.name, tuple((ph.name, ph.type) for ph in p.parameters)) for p in predicates)


def _symbols(items: list[Any]) -> tuple[Symbol, ...]:
    return tuple(_symbol(item) for item in items)


def _symbol(item: Any) -> Symbol:
    from textworld.envs.pddl import textgen

    if isinstance(item, textgen.TerminalSymbol):
        return Text(str(item.symbol))
    if isinstance(item, textgen.NonterminalSymbol):
        return Nonterminal(str(item.symbol))
    if isinstance(item, textgen.EvalSymbol):
        return expression(item.expression)
    if isinstance(item, textgen.ConditionalSymbol):
        body = _symbol(item.expression)
        assert isinstance(body, (Nonterminal, Value))
        condition = query(item.given)
        return Each(body, condition, listed=False) if condition else body
    if isinstance(item, textgen.ListSymbol):
        inner = _symbol(item.symbol)
        if isinstance(inner, Each):
            return Each(inner.body, inner.query, listed=True)
        assert isinstance(inner, (Nonterminal, Value))
        return inner  # an enumeration of one
    raise DataError(f"the game's grammar uses {type(item).__name__}, which the compiled engine does not know")


def expression(text: str) -> Value:
    """The restricted form of a Python expression.  Nothing is evaluated.  Raises
    :class:`~handoff.errors.DataError` that quotes the construct that is not allowed."""
    try:
        tree = ast.parse(text.strip(), mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise DataError(f"the game's grammar has an expression that is not allowed: {text[:80]!r}") from error
    return Value(tuple(_term(node, text) for node in _summands(tree)))


def _summands(node: ast.expr) -> list[ast.expr]:
    right: list[ast.expr] = []
    while isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        right.append(node.right)
        node = node.left
    return [node, *reversed(right)]


def _term(node: ast.expr, text: str) -> tuple[str | tuple[str, str], ...]:
    if isinstance(node, ast.BoolOp) and isinstance(node.op, ast.Or):
        return tuple(_atom(value, text) for value in node.values)
    return (_atom(node, text),)


def _atom(node: ast.expr, text: str) -> str | tuple[str, str]:
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value
    if isinstance(node, ast.Name):
        return (node.id, "name")
    if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.attr in ATTRIBUTES:
        return (node.value.id, node.attr)
    raise DataError(
        f"the game's grammar has an expression that is not allowed: {type(node).__name__} in {text[:80]!r} "
        "(only names, their attributes, quoted text, + and `or` are)"
    )


_QUERY = [(str, [(str, str)])]
#: The shape of :func:`to_json`, but for its symbols (:func:`~handoff.envs.alfworld.compiled.cache.has_shape`).
SHAPE = {"actions": {str: ([list], [list])}, "rules": {str: [(_QUERY, [list])]}}


def to_json(grammar: Grammar) -> dict[str, Any]:
    """JSON-safe form of a grammar."""
    return {
        "actions": {
            name: [[_pack(s) for s in action.template], [_pack(s) for s in action.feedback]]
            for name, action in grammar.actions.items()
        },
        "rules": {
            name: [[_pack_query(p.condition), [_pack(s) for s in p.body]] for p in productions]
            for name, productions in grammar.rules.items()
        },
    }


def from_json(data: dict[str, Any]) -> Grammar:
    """The grammar that :func:`to_json` wrote, from data of :data:`SHAPE`.

    Raises ``ValueError`` for what is no symbol.
    """
    return Grammar(
        {
            name: ActionText(tuple(map(_unpack, template)), tuple(map(_unpack, feedback)))
            for name, (template, feedback) in data["actions"].items()
        },
        {
            name: tuple([Production(_unpack_query(query), tuple(map(_unpack, body))) for query, body in productions])
            for name, productions in data["rules"].items()
        },
    )


def _pack(symbol: Symbol) -> Any:
    if isinstance(symbol, Text):
        return ["text", symbol.text]
    if isinstance(symbol, Nonterminal):
        return ["rule", symbol.name]
    if isinstance(symbol, Value):
        return ["value", [[a if isinstance(a, str) else list(a) for a in term] for term in symbol.terms]]
    return ["each", _pack(symbol.body), _pack_query(symbol.query), symbol.listed]


def _pack_query(predicates: tuple[Predicate, ...]) -> list[Any]:
    return [[p.name, [list(pair) for pair in p.parameters]] for p in predicates]


def _unpack(data: Any) -> Symbol:
    if has_shape(data, (str, str)) and data[0] in ("text", "rule"):
        return Text(data[1]) if data[0] == "text" else Nonterminal(data[1])
    if has_shape(data, (str, [list])) and data[0] == "value":
        return Value(tuple([tuple([_unpack_atom(atom) for atom in term]) for term in data[1]]))
    if has_shape(data, (str, list, _QUERY, bool)) and data[0] == "each":
        body = _unpack(data[1])
        if isinstance(body, (Nonterminal, Value)):
            return Each(body, _unpack_query(data[2]), data[3])
    raise ValueError("it is no symbol of a grammar")


def _unpack_atom(data: Any) -> str | tuple[str, str]:
    if isinstance(data, str):
        return data
    if not has_shape(data, (str, str)) or data[1] not in ATTRIBUTES:
        raise ValueError("it is no term of a grammar")
    return data[0], data[1]


def _unpack_query(data: list[Any]) -> tuple[Predicate, ...]:
    return tuple([Predicate(name, tuple([(ph, kind) for ph, kind in pairs])) for name, pairs in data])
