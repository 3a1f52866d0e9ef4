"""``handoff run``: a handoff study from one command, of the protocol ``frontier`` unless ``--protocol`` names another.

The options are those of the protocol, which the command line names before anything else of it is read.
"""

from __future__ import annotations

from typing import Any

import click

from handoff.cli.settings import Command, Option
from handoff.cli.study_command import study_command
from handoff.protocols.frontier import FRONTIER

FLAG = "--protocol"
_RECORDED = """
  handoff run travelplanner --protocol recorded -p sft=noisy-gold:0.5 -p rl=gold --cross sft,rl
  handoff run travelplanner --protocol recorded -p sft=hf:./sft -p rl=hf:./rl --cross sft,rl \\
      --formatter judge=openai:http://127.0.0.1:8000/v1#chat
  handoff run bfcl --protocol recorded -p a=gold -p b=noisy-gold:0.2 --cross a,b --cut turn:last

Further policies of conversations: gold (the environment's plan), noisy-gold:EPS, calls:FILE (replies from a file), and
plan (a formatter that asks no model).

Whole episodes are played, cut before the final model call (or --cut call:K, turn:K), rebuilt byte for byte, and handed
to every solver. Typing the same command again resumes the run, or shows its result if it is complete.
Exit code: 0 complete, 2 the request was wrong, 3 interrupted with records owed (resume by typing it again)."""


class _ByProtocol(Command):
    """The command of the protocol ``frontier``, which makes room for that of another protocol."""

    def make_context(
        self, info_name: str | None, args: list[str], parent: click.Context | None = None, **extra: Any
    ) -> click.Context:
        name, rest = _protocol(args)
        if name in (None, FRONTIER.name):
            return super().make_context(info_name, rest, parent, **extra)
        from handoff.protocols.registry import load_protocol

        protocol = load_protocol(str(name))
        own = study_command(protocol, info_name or "run", examples=_RECORDED if name == "recorded" else "")
        own.params.append(_option())
        return own.make_context(info_name, rest, parent, **extra)


def _option() -> click.Option:
    return Option(
        [FLAG],
        group="study",
        metavar="NAME",
        expose_value=False,
        help="Which protocol: frontier or recorded; --help after it shows its options.  [default: frontier]",
    )


def _protocol(args: list[str]) -> tuple[str | None, list[str]]:
    """The protocol that the command line names, and the rest of the line.

    Raises ``click.UsageError`` if it names two, or none after the option.
    """
    names, rest, words = [], [], iter(args)
    for word in words:
        if word == "--":
            rest += [word, *words]
        elif word == FLAG:
            following = next(words, None)
            if following is None:
                raise click.UsageError(f"Option '{FLAG}' requires an argument.")
            names.append(following)
        elif word.startswith(f"{FLAG}="):
            names.append(word.partition("=")[2])
        else:
            rest.append(word)
    if len(set(names)) > 1:
        raise click.UsageError(f"{FLAG} names two protocols: {' and '.join(names)}")
    return (names[0] if names else None), rest


run = study_command(
    FRONTIER,
    "run",
    "Run a handoff study on ENVIRONMENT: reachers act until the state is D actions from success, solvers go on from\n"
    "exact clones.",
    """
  handoff run alfworld --reacher rl --solver sft
  handoff run alfworld -p rl=expert -p sft=noisy:0.3 --reacher rl --solver sft
  handoff run alfworld -p rl=expert -p sft=noisy:0.3 --cross sft,rl --split valid_seen
  handoff run alfworld --reacher expert --solver random --data ~/alfworld --dry-run
  handoff run alfworld -p sft=hf:./sft -p rl=openai:http://127.0.0.1:8000/v1#rl --cross sft,rl
  handoff run --config study.toml
  handoff run --config study.toml --register plan.json --dry-run      # publish plan.json, then run without --dry-run

A policy is a name bound by -p NAME=SPEC, or a SPEC itself: random, expert, noisy:EPS, tempered:T,
actions:FILE, and for language models openai:URL#MODEL, hf:CHECKPOINT, vllm:CHECKPOINT (a folder or
OWNER/NAME[/SUBFOLDER][@REVISION]).
In alfworld base, sft, rl and control mean small checkpoints that ship (builtin:NAME) unless they are bound.
Typing the same command again resumes the run, or shows its result if it is complete.
Exit code: 0 complete, 2 the request was wrong, 3 interrupted with records owed (resume by typing it again).""",
)
run.__class__ = _ByProtocol
run.params.append(_option())
