"""``handoff run``: verified-frontier handoff from one command."""

from __future__ import annotations

from handoff.cli.study_command import study_command
from handoff.protocols.frontier import FRONTIER

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
