"""Step 2: supervised fine-tuning on demonstrations, from random weights or on from a checkpoint.

    python sft.py --data work --out work/sft --seed 1 --steps 1500 --keep 300
    python sft.py --data work --out work/control --seed 1 --start work/sft --steps 9000 --decay 3000

``--keep N`` also saves the checkpoint after N steps, as ``OUT-N``.  Typed again it goes on from the last save.
"""

from __future__ import annotations

import argparse
import random
from collections.abc import Iterator, Sequence
from pathlib import Path

import torch
from arguments import refuse
from network import Batch, Words, load, log_probs, make_model, make_tokenizer
from rooms import Demonstration, read_demonstrations
from trainer import Clock, Journal, digest, finish, resume, suspend

PROMPT_WEIGHT = 0.3  # of a prompt's tokens in the loss: what stands where in a room is worth learning too
BATCH = 16
RATE = 2e-3
WARM_UP = 100
HELD_OUT = 100  # demonstrations that are never trained on
SAVE_EVERY = 500


def examples(
    demonstrations: Sequence[Demonstration], words: Words, rng: random.Random
) -> Iterator[tuple[list[int], list[int]]]:
    """For ever: steps of demonstrations under fresh numberings, shuffled over 64 demonstrations."""
    while True:
        order = rng.sample(range(len(demonstrations)), len(demonstrations))
        for start in range(0, len(order), 64):
            examples = []
            for place in order[start : start + 64]:
                for prompt, action in demonstrations[place].renamed(rng).examples():
                    examples.append((words.ids(prompt), [*words.ids(action), words.end]))
            rng.shuffle(examples)
            yield from examples


def loss(model: torch.nn.Module, batch: Batch) -> tuple[torch.Tensor, torch.Tensor]:
    """The training loss, and the mean negative log-likelihood of a whole action."""
    losses = -log_probs(model, batch)
    replies = (losses * batch.replies).sum()
    prompts = (losses * (batch.real & ~batch.replies)).sum()
    return (replies + PROMPT_WEIGHT * prompts) / batch.real.sum(), replies / len(losses)


def main(words_given: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=Path("work"))
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--start", type=Path, help="a checkpoint to go on from")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--steps", type=int, default=1500, help="updates of 16 examples")
    parser.add_argument("--decay", type=int, default=0, help="the last updates, over which the rate falls to zero")
    parser.add_argument("--keep", type=int, action="append", default=[], help="also save after so many updates")
    given = parser.parse_args(words_given)
    torch.set_num_threads(1)
    data = given.data / "demonstrations.jsonl"
    demonstrations = read_demonstrations(data)
    if len(demonstrations) <= HELD_OUT:
        refuse(f"{data} holds {len(demonstrations)} demonstrations, of which {HELD_OUT} are held out; make more")
    held_out, demonstrations = demonstrations[:HELD_OUT], demonstrations[HELD_OUT:]
    if given.start:
        model, words = load(given.start)
    else:
        texts = [text for shown in demonstrations for example in shown.examples() for text in example]
        words = Words(make_tokenizer(texts))
        model = make_model(len(words.tokens), given.seed)
    optimizer = torch.optim.AdamW(model.parameters(), lr=RATE, betas=(0.9, 0.95), weight_decay=0.01)
    rng = random.Random(f"sft {given.seed} {given.start is not None}")
    clock, journal = Clock(), Journal(given.out)
    step = resume(given.out, given, model, optimizer, clock).get("step", 0)
    stream = examples(demonstrations, words, rng)
    tokens = 0
    for _ in range(step * BATCH):  # to where the stream was
        prompt, reply = next(stream)
        tokens += len(prompt) + len(reply) - 1
    checks = [
        (words.ids(p), [*words.ids(c), words.end])
        for shown in held_out
        for p, c in shown.renamed(random.Random(0)).examples()
    ]
    model.train()
    while step < given.steps:
        batch = Batch.of([next(stream) for _ in range(BATCH)])
        rate = RATE * min(1.0, (step + 1) / WARM_UP)
        if given.decay:
            rate *= min(1.0, (given.steps - step) / given.decay)
        for group in optimizer.param_groups:
            group["lr"] = rate
        value, command = loss(model, batch)
        optimizer.zero_grad(set_to_none=True)
        value.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        step += 1
        tokens += int(batch.real.sum())
        if step % 100 == 0 or step == given.steps:
            with torch.no_grad():
                parts = [Batch.of(checks[start : start + 64]) for start in range(0, len(checks), 64)]
                nll = sum(float(loss(model, part)[1]) * len(part.tokens) for part in parts) / len(checks)
            journal.note(
                step=step, loss=value.item(), command=command.item(), held_out=nll, tokens=tokens, cpu_s=clock.cpu()
            )
        if step in given.keep and step < given.steps:
            finish(given.out.with_name(f"{given.out.name}-{step}"), model, words, given, step, clock, digest(data))
        if step % SAVE_EVERY == 0 and step < given.steps:
            suspend(given.out, given, model, optimizer, clock, step)
    finish(given.out, model, words, given, step, clock, digest(data))


if __name__ == "__main__":
    main()
