"""``handoff rollout``: N independent rollouts per task."""

from __future__ import annotations

from handoff.cli.study_command import study_command
from handoff.protocols.rollouts import ROLLOUTS

rollout = study_command(
    ROLLOUTS,
    "rollout",
    "Roll policies out on ENVIRONMENT, many times per task, and count successes per task.",
    """
  handoff rollout sokoban -p base=noisy:0.6 -n 32
  handoff rollout alfworld -p sft=noisy:0.4 -p rl=noisy:0.2 --tasks 30 -n 16
  handoff tax runs/sokoban-0123456789#base runs/sokoban-0123456789#post
  handoff rollout sokoban -p base=tempered:0.2:3 -n 32 --ptgs --pilot 16 --tau 2
  handoff rollout --config study.toml --dry-run
  handoff rollout sokoban -p base=noisy:0.6 --register plan.json      # plan.json is there before the first episode

With --ptgs the first --pilot rollouts of a task are sampled at the policy's own temperature, and the rest at one that
follows from them: hotter where the pilots failed, cooler where they succeeded.  Only the rest is scored.

Typing the same command again resumes the run, or shows its result if it is complete.
Exit code: 0 complete, 2 the request was wrong, 3 interrupted with rollouts owed (resume by typing it again).""",
)
