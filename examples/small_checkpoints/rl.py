"""Step 3: reinforcement learning from the SFT checkpoint, by group-relative policy optimisation (GRPO).

    python rl.py --data work --start work/sft --out work/rl --seed 1 --iterations 60
    python rl.py --data work --start work/sft --out work/rl-ptgs --seed 1 --iterations 60 --ptgs

The only reward is the environment's own: 1 for success within the episode's actions, else 0.  In an iteration 16 starts
are drawn and each is played 8 times; the advantage of an episode is its reward less its group's mean, in units of the
group's deviation.  Half of the starts lie K actions before the end of a demonstration; K grows while these succeed and
shrinks while they fail.  ``--ptgs`` draws each group's temperature from a posterior of its difficulty.  Typed again it
goes on from the last save.
"""

from __future__ import annotations

import argparse
import random
import statistics
from collections.abc import Sequence
from pathlib import Path

import attrs
import torch
from network import Row, Words, in_passes, load, sample, scores
from rooms import Room, compiled, demonstrate, shuffled
from trainer import Clock, Journal, digest, finish, resume, suspend

from handoff.passk.ptgs import Sampler, Schedule

STARTS, GROUP = 16, 8
CLIP = 0.2
MINIBATCHES = 4
FAILURE_WEIGHT = 0.5  # of negative advantages
NEAREST, FARTHEST = 2, 11  # bounds of K
SAVE_EVERY = 5
MOVED = 0.3  # share of rooms in which things were moved about


@attrs.define
class Start:
    """Where a group begins: a room, a numbering (``seed``), and the actions of a demonstration taken before."""

    game: int
    state: int
    seed: str
    taken: tuple[str, ...]
    prompt: str  # what PTGS counts successes by
    curriculum: bool
    temperature: float = 1.0

    def room(self, games: int) -> Room:
        room = Room(compiled(self.game, games), self.state, random.Random(self.seed))
        room.follow(self.taken)
        return room


@attrs.define
class Decision:
    """What was shown, which of the admissible actions was taken, and its log-probability then."""

    row: Row
    place: int
    log_prob: float


@attrs.define
class Play:
    """An episode as it is played."""

    room: Room
    start: Start
    decisions: list[Decision] = attrs.Factory(list)


def draw_starts(rng: random.Random, games: int, nearness: int, label: str) -> list[Start]:
    """16 starts, half of them ``nearness`` actions or fewer before success."""
    starts = []
    for place in range(STARTS):
        game = rng.randrange(games)
        form = compiled(game, games)
        state = shuffled(form, rng) if rng.random() < MOVED else form.initial
        taken: tuple[str, ...] = ()
        curriculum = place % 2 == 1
        if curriculum:
            plan = [action for action, _ in demonstrate(form, state).steps]
            taken = tuple(plan[: max(0, len(plan) - rng.randint(NEAREST, nearness))])
        kind = f"{form.reset_record.observation.split('Your task is to: ')[1].split()[0]} {bool(taken)}"
        starts.append(Start(game, state, f"{label} {place}", taken, kind, curriculum))
    return starts


def play(
    model: torch.nn.Module, words: Words, starts: Sequence[Start], games: int, budget: int, generator: torch.Generator
) -> list[Play]:
    """``GROUP`` episodes from each start, all in step."""
    plays = [Play(start.room(games), start) for start in starts for _ in range(GROUP)]
    for _ in range(budget):
        going = [p for p in plays if not p.room.won]
        if not going:
            break
        menus = [p.room.admissible() for p in going]
        rows = [words.row(p.room.prompt(), menu) for p, menu in zip(going, menus, strict=True)]
        taken = sample(model, rows, [p.start.temperature for p in going], generator)
        for p, menu, row, chosen in zip(going, menus, rows, taken, strict=True):
            p.decisions.append(Decision(row, chosen.place, chosen.log_prob))
            p.room.step(menu[chosen.place])
    return plays


def advantages(plays: Sequence[Play]) -> list[float]:
    """Per episode; 0 where all of a group have the same reward."""
    normalized = []
    for start in range(0, len(plays), GROUP):
        rewards = [float(p.room.won) for p in plays[start : start + GROUP]]
        mean, deviation = statistics.fmean(rewards), statistics.pstdev(rewards)
        normalized += [(reward - mean) / deviation if deviation else 0.0 for reward in rewards]
    return [value * (FAILURE_WEIGHT if value < 0 else 1.0) for value in normalized]


def update(
    model: torch.nn.Module,
    optimizer: torch.optim.Optimizer,
    plays: Sequence[Play],
    rng: random.Random,
) -> dict[str, float]:
    """One pass over the decisions: the clipped surrogate, each episode with equal weight."""
    decisions = [
        (decision, value / len(p.decisions), p.start.temperature)
        for p, value in zip(plays, advantages(plays), strict=True)
        for decision in p.decisions
        if value
    ]
    if not decisions:
        return {"clipped": 0.0, "kept": 0}
    episodes = sum(1 for value in advantages(plays) if value)
    rng.shuffle(decisions)
    size = -(-len(decisions) // MINIBATCHES)
    clipped = 0
    for start in range(0, len(decisions), size):
        minibatch = decisions[start : start + size]
        optimizer.zero_grad(set_to_none=True)
        for group in in_passes([decision.row for decision, _, _ in minibatch]):
            entries = [minibatch[place] for place in group]
            scored = scores(model, [decision.row for decision, _, _ in entries])
            now = torch.stack(
                [
                    (values / temperature).log_softmax(-1)[decision.place]
                    for values, (decision, _, temperature) in zip(scored, entries, strict=True)
                ]
            )
            ratio = (now - torch.tensor([decision.log_prob for decision, _, _ in entries])).exp()
            weight = torch.tensor([value for _, value, _ in entries])
            surrogate = torch.minimum(ratio * weight, ratio.clamp(1 - CLIP, 1 + CLIP) * weight)
            (-surrogate.sum() / (episodes / MINIBATCHES)).backward()
            clipped += int(((ratio - 1).abs() > CLIP).sum())
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
    return {"clipped": clipped / len(decisions), "kept": len(decisions)}


def summary(plays: Sequence[Play]) -> dict[str, float]:
    """What the journal says of an iteration's episodes."""
    whole = [p for p in plays if not p.start.curriculum]
    wins = [
        sum(p.room.won for p in plays[start : start + GROUP])
        for start in range(0, len(plays), GROUP)
        if not plays[start].start.curriculum
    ]
    steps = [d for p in plays for d in p.decisions]
    return {
        "success": statistics.fmean(p.room.won for p in whole),
        "near": statistics.fmean(p.room.won for p in plays if p.start.curriculum),
        "zero_groups": sum(win == 0 for win in wins) / len(wins),
        "full_groups": sum(win == GROUP for win in wins) / len(wins),
        "entropy": statistics.fmean(-d.log_prob for d in steps),
        "steps": len(steps) / len(plays),
    }


def main(words_given: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=Path("work"))
    parser.add_argument("--start", type=Path, required=True, help="the SFT checkpoint")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--iterations", type=int, default=60)
    parser.add_argument("--games", type=int, default=1000, help="as many as demonstrate.py made")
    parser.add_argument("--budget", type=int, default=30, help="actions of a training episode")
    parser.add_argument("--rate", type=float, default=5e-4, help="of the updates")
    parser.add_argument("--ptgs", action="store_true", help="temperatures by posterior-tempered group sampling")
    given = parser.parse_args(words_given)
    torch.set_num_threads(1)
    data = digest(given.data / "demonstrations.jsonl")
    origin = digest(given.start / "model.safetensors")
    model, words = load(given.start)
    optimizer = torch.optim.AdamW(model.parameters(), lr=given.rate, betas=(0.9, 0.95), weight_decay=0.0)
    clock, journal = Clock(), Journal(given.out)
    ptgs = Sampler(seed=given.seed, schedule=Schedule(steps=given.iterations)) if given.ptgs else None
    more = resume(given.out, given, model, optimizer, clock)
    done, nearness = more.get("step", 0), more.get("nearness", 4)
    if ptgs is not None and "ptgs" in more:
        ptgs = Sampler.from_json(more["ptgs"])
    model.train()
    episodes = more.get("episodes", 0)
    while done < given.iterations:
        label = f"rl {given.seed} {done}"
        rng = random.Random(label)
        generator = torch.Generator().manual_seed(rng.getrandbits(62))
        starts = draw_starts(rng, given.games, nearness, label)
        if ptgs is not None:
            for start in starts:
                start.temperature = ptgs.temperature(start.prompt).temperature
        plays = play(model, words, starts, given.games, given.budget, generator)
        noted = summary(plays)
        noted.update(update(model, optimizer, plays, rng))
        if ptgs is not None:
            for place, start in enumerate(starts):
                ptgs.update(start.prompt, sum(p.room.won for p in plays[place * GROUP : (place + 1) * GROUP]), GROUP)
            ptgs.advance()
        done += 1
        episodes += len(plays)
        nearness = min(max(nearness + (noted["near"] > 0.7) - (noted["near"] < 0.5), NEAREST), FARTHEST)
        temperature = statistics.fmean(start.temperature for start in starts)
        journal.note(
            step=done, episodes=episodes, **noted, nearness=nearness, temperature=temperature, cpu_s=clock.cpu()
        )
        if done % SAVE_EVERY == 0 and done < given.iterations:
            state = {} if ptgs is None else {"ptgs": ptgs.to_json()}
            suspend(given.out, given, model, optimizer, clock, done, nearness=nearness, episodes=episodes, **state)
    finish(given.out, model, words, given, done, clock, data, episodes=episodes, start_sha256=origin)


if __name__ == "__main__":
    main()
