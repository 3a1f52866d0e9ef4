"""Model text to action: one declared rule per format, the same for every policy of a run.

A reply is never repaired silently.  What the rule read is the action; how it came to it is a status and flags, which
stand beside the raw text in the record.  An unusable reply costs its step.

Where the environment's state is a conversation the action is the whole reply, whatever the format.

Every format first sets the thinking aside and reads the text after the last ``</think>``.  Then

``tagged``
    the *first* complete ``<action>...</action>`` block.  First, not last: a reply that runs on and invents the
    environment's next observation must not have its later actions executed.
``last_line``
    the last line that is not blank.
``json``
    the first JSON object: its ``"action"``, or that of its ``"arguments"`` (an object, or a string that holds one).
``choice``
    the whole reply, which must be one of the admissible actions; leniently, the admissible action that is named last.

``strict`` refuses a reply with anything else in it; lenient takes the action and flags the surplus.  Letter case and
white space inside an action that are not as in the admissible one are flagged; ``choice`` is strict about white space,
too, for the reply is to be the action.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from typing import Any

import attrs

from handoff.errors import UsageError
from handoff.records import BLANK, Offer, fills

FORMATS = ("tagged", "last_line", "json", "choice")

#: What flags mean; every flag that a parse can set is here.
FLAGS = {
    "case_folded": "the action differed from an admissible action in letter case only",
    "spaced": "white space inside the action was not as in the admissible action",
    "multi": "there were several actions; the declared one was taken",
    "surplus": "text stood beside the action",
    "tags_in_think": "an action block stood inside the thinking and was passed over",
    "think_unclosed": "the thinking was opened and never closed",
    "cjk": "the reply holds Chinese, Japanese or Korean characters",
    "closed_by_stop": "the closing tag is missing because it was the stop string that ended the reply",
    "cut_after_action": "the reply hit its token limit after a complete action",
    "decorated": "quotes, a list mark or a label round the action were taken off",
    "fenced": "the JSON stood in a code fence",
    "tool_call": "the action came as a tool call",
    "malformed": "what stood there was not valid JSON of the expected form",
    "cut": "the reply hit its token limit; it counts as it is",
    "unparsed_markup": "the text holds calls that the server should have read",
}


@attrs.frozen
class Reply:
    """What a model said."""

    text: str
    #: ``stop``, ``length``, or a server's own word.
    finish: str = "stop"
    #: The stop string that ended it, if one did.
    stop: str | None = None
    #: Thinking that a server gave apart from the text.
    reasoning: str | None = None


@attrs.frozen
class Parsed:
    """What a rule read."""

    #: What the environment gets; ``None``: nothing usable.
    action: str | None
    status: str
    flags: tuple[str, ...] = ()


@attrs.frozen
class ActionRule:
    """A format, strict or lenient."""

    format: str = "tagged"
    strict: bool = False
    #: Whether calls come apart from the text, by a server's own interface.
    native: bool = False

    def __attrs_post_init__(self) -> None:
        if self.format not in FORMATS:
            raise UsageError(f"no action format is named {self.format!r} (known: {', '.join(FORMATS)})")

    def parse(self, reply: Reply, admissible: Sequence[str]) -> Parsed:
        """The action of ``reply`` under this rule, given the admissible actions of the state."""
        flags = _Flags()
        flags.add("cjk", _CJK.search(reply.text) is not None)
        if not reply.text.strip():
            return Parsed(None, "truncated" if reply.finish == "length" else "empty", flags.sorted())
        if isinstance(admissible, Offer) and admissible.free:
            flags.add("cut", reply.finish == "length")
            if self.native and _has_markup(reply):
                flags.add("unparsed_markup")
                return Parsed(None, "no_action", flags.sorted())
            return Parsed(reply.text, "parsed", flags.sorted())
        text = _FORMATS[self.format](reply, admissible, self.strict, flags)
        if text is None:
            return Parsed(None, "truncated" if reply.finish == "length" else "no_action", flags.sorted())
        action, status = _admit(text, admissible, flags)
        return Parsed(action, status, flags.sorted())


class _Flags(set[str]):
    def add(self, flag: str, condition: bool = True) -> None:
        if condition:
            super().add(flag)

    def sorted(self) -> tuple[str, ...]:
        return tuple(sorted(self))


_CJK = re.compile(r"[\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff]|[\U00020000-\U0003ffff]")
_THINK_OPEN = re.compile(r"<think>", re.IGNORECASE)
_THINK_CLOSE = re.compile(r"</think>", re.IGNORECASE)
_BLOCK = re.compile(r"<action>((?:(?!</?action>).)*)</action>", re.IGNORECASE | re.DOTALL)
_OPEN = re.compile(r"<action>((?:(?!</?action>).)*)\Z", re.IGNORECASE | re.DOTALL)


def _after_thinking(text: str, strict: bool, flags: _Flags) -> tuple[str, bool]:
    """The part of ``text`` after the thinking, and whether everything before it is thinking."""
    closes = list(_THINK_CLOSE.finditer(text))
    start = closes[-1].end() if closes else 0
    opened = _THINK_OPEN.search(text)
    # A template may have opened the thinking in the prompt: then the reply holds only its end.
    clean = not closes or opened is None or not text[: opened.start()].strip()
    flags.add("tags_in_think", _BLOCK.search(text[:start]) is not None)
    rest = text[start:]
    unclosed = _THINK_OPEN.search(rest)
    if unclosed is not None:
        flags.add("think_unclosed")
        if strict:  # what was opened and not closed is thinking to the end
            rest = rest[: unclosed.start()]
            clean = clean and not rest.strip()
    return rest, clean


def _tagged(reply: Reply, admissible: Sequence[str], strict: bool, flags: _Flags) -> str | None:
    rest, clean = _after_thinking(reply.text, strict, flags)
    blocks = list(_BLOCK.finditer(rest))
    if blocks:
        action, before, after = blocks[0].group(1), rest[: blocks[0].start()], rest[blocks[0].end() :]
        flags.add("cut_after_action", reply.finish == "length")
    else:
        opened = _OPEN.search(rest)
        named = reply.stop is not None and reply.stop.strip().lower() == "</action>" and reply.finish == "stop"
        if opened is None or not named:
            return None
        flags.add("closed_by_stop")
        action, before, after = opened.group(1), rest[: opened.start()], ""
    flags.add("multi", len(blocks) > 1)
    surplus = bool(before.strip() or after.strip()) or not clean
    flags.add("surplus", surplus)
    if strict and (surplus or len(blocks) > 1):
        return None
    return action.strip() or None


_DECORATION = re.compile(r"\A(?:[-*>•]\s+|action\s*:\s*)+", re.IGNORECASE)


def _last_line(reply: Reply, admissible: Sequence[str], strict: bool, flags: _Flags) -> str | None:
    rest, clean = _after_thinking(reply.text, strict, flags)
    lines = [line.strip() for line in rest.splitlines() if line.strip()]
    if not lines or reply.finish == "length":  # the last line may be half an action
        return None
    flags.add("surplus", len(lines) > 1 or not clean)
    if strict:
        return lines[-1] if len(lines) == 1 and clean else None
    if lines[-1] in admissible:
        return lines[-1]
    bare = _DECORATION.sub("", lines[-1]).strip("`\"'*").strip()
    flags.add("decorated", bare != lines[-1])
    return bare or None


_FENCE = re.compile(r"\A\s*```(?:json)?\s*(.*?)\s*```\s*\Z", re.IGNORECASE | re.DOTALL)
_CALL = re.compile(r"<tool_call>\s*(.*?)\s*(?:</tool_call>|\Z)", re.IGNORECASE | re.DOTALL)


def _json(reply: Reply, admissible: Sequence[str], strict: bool, flags: _Flags) -> str | None:
    rest, clean = _after_thinking(reply.text, strict, flags)
    surplus = not clean
    fence = _FENCE.match(rest)
    if fence:
        flags.add("fenced")
        rest = fence.group(1)
    calls = list(_CALL.finditer(rest))
    if calls:
        flags.add("tool_call")
        flags.add("multi", len(calls) > 1)
        surplus = surplus or bool(_CALL.sub("", rest).strip())
        rest = calls[0].group(1)
    value, before, after = _first_object(rest)
    if value is None:
        flags.add("malformed", "{" in rest and reply.finish != "length")
        return None
    flags.add("multi", _first_object(after)[0] is not None)
    surplus = surplus or bool(before.strip() or after.strip())
    flags.add("surplus", surplus)
    if strict and (surplus or fence or "multi" in flags):
        return None
    action = _action_of(value, flags)
    flags.add("malformed", action is None)
    return action


def _first_object(text: str) -> tuple[dict[str, Any] | None, str, str]:
    """The first JSON object in ``text``, and the text before and after it."""
    decoder = json.JSONDecoder()
    for match in list(re.finditer(r"\{", text))[:64]:
        try:
            value, end = decoder.raw_decode(text, match.start())
        except (ValueError, RecursionError):
            continue
        return value, text[: match.start()], text[end:]
    return None, text, ""


def _action_of(value: dict[str, Any], flags: _Flags) -> str | None:
    action = value.get("action")
    if action is None and "arguments" in value:
        flags.add("tool_call")
        arguments = value["arguments"]
        if isinstance(arguments, str):
            try:
                arguments = json.loads(arguments) if arguments.strip() else {}
            except (ValueError, RecursionError):
                return None
        action = arguments.get("action") if isinstance(arguments, dict) else None
    return action.strip() or None if isinstance(action, str) else None


def _choice(reply: Reply, admissible: Sequence[str], strict: bool, flags: _Flags) -> str | None:
    rest, clean = _after_thinking(reply.text, strict, flags)
    text = rest.strip()
    whole = " ".join(text.split())
    actions = {action.lower(): action for action in admissible}
    if clean and whole.lower() in actions:
        # With the token limit hit, "go to desk 1" may be the beginning of "go to desk 10".
        longer = any(action != whole.lower() and action.startswith(whole.lower()) for action in actions)
        if (reply.finish == "length" and longer) or (strict and text != whole):
            return None
        return text
    if reply.finish == "length":
        return None
    if not strict:
        named = _named(whole.lower(), list(actions))
        if named:
            flags.add("surplus")
            flags.add("multi", len(set(named)) > 1)
            return actions[named[-1]]
    single = len([line for line in rest.splitlines() if line.strip()]) == 1
    return text if single and clean and len(whole) <= 200 else None


def _named(text: str, actions: Sequence[str]) -> list[str]:
    """The actions that ``text`` names as whole words, in order, the longest where several start at one place."""
    if not actions:
        return []
    alternatives = "|".join(re.escape(action) for action in sorted(actions, key=len, reverse=True))
    return [match.group(0) for match in re.finditer(rf"(?<!\w)(?:{alternatives})(?!\w)", text)]


_FORMATS: dict[str, Callable[[Reply, Sequence[str], bool, _Flags], str | None]] = {
    "tagged": _tagged,
    "last_line": _last_line,
    "json": _json,
    "choice": _choice,
}


#: How models of several families write calls.
_MARKUP = re.compile(r"<tool_call>|\[TOOL_CALLS\]|<\|tool_call|<function=|<\|python_tag\|>", re.IGNORECASE)
#: A call that was read, as a policy writes it behind the text (:func:`handoff.policies.openai.schema.native`).
_READ_CALL = re.compile(r"\s*<tool_call>\n\{\"arguments\":.*?\n</tool_call>\Z", re.DOTALL)


def _has_markup(reply: Reply) -> bool:
    """Whether the text holds calls, beside those that the server has read."""
    text = reply.text
    while (match := _READ_CALL.search(text, max(text.rfind("<tool_call>\n"), 0))) is not None:
        text = text[: match.start()].rstrip()
    return _MARKUP.search(text) is not None


def _filled(text: str, opens: Sequence[str], flags: _Flags) -> str | None:
    """The open action that ``text`` fills, up to the case of its fixed parts and blanks round the text."""
    for pattern in opens:
        before, _, after = pattern.partition(BLANK)
        inner = text[len(before) : len(text) - len(after)]
        fixed = text[: len(before)] + text[len(text) - len(after) :]
        filled = f"{before}{inner.strip()}{after}"
        if fixed.lower() == (before + after).lower() and fills(filled, pattern):
            flags.add("case_folded", fixed != before + after)
            flags.add("spaced", inner != inner.strip())
            return filled
    return None


def _admit(text: str, admissible: Sequence[str], flags: _Flags) -> tuple[str, str]:
    """The admissible action that equals ``text`` up to case and white space; else ``text`` itself, inadmissible."""
    if text in admissible:
        return text, "parsed"
    bare = " ".join(text.split())
    for action in admissible:
        if bare == " ".join(action.split()):
            flags.add("spaced")
            return action, "parsed"
    for action in admissible:
        if bare.lower() == " ".join(action.split()).lower():
            flags.add("case_folded")
            flags.add("spaced", bare != text)
            return action, "parsed"
    filled = _filled(text.strip(), admissible.opens, flags) if isinstance(admissible, Offer) else None
    if filled is not None:
        return filled, "parsed"
    flags.add("spaced", bare != text)
    return bare, "inadmissible"
