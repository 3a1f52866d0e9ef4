"""Sampling from logits, one generator per row: tokens that do not depend on the rest of the batch.

The rule is Gumbel-max in float64 with noise that is a pure function of (step seed, token): SplitMix64, of which the top
53 bits make a uniform number in (0, 1).  The step seeds come from the row's own ``torch.Generator``.  It is the rule of
vLLM's CPU sampler (``fused_gumbel_argmax``), so equal logits give equal tokens there; and it is the same on every
device.
"""

from __future__ import annotations

from typing import Any

from handoff.policies.language.options import GREEDY, ModelOptions, is_greedy

_GAMMA, _FIRST, _SECOND = 0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB


def _signed(value: int) -> int:
    return value - 2**64 if value >= 2**63 else value


def _mix(z: Any) -> Any:
    """SplitMix64's finaliser on an int64 tensor, whose products wrap as unsigned ones do."""
    z = (z ^ _shift(z, 30)) * _signed(_FIRST)
    z = (z ^ _shift(z, 27)) * _signed(_SECOND)
    return z ^ _shift(z, 31)


def _shift(z: Any, bits: int) -> Any:
    """Logical shift to the right (``>>`` on int64 carries the sign along)."""
    return (z >> bits) & ((1 << (64 - bits)) - 1)


def gumbel(seeds: Any, vocabulary: int) -> Any:
    """Gumbel(0, 1) noise of shape (rows, vocabulary) in float64 for int64 ``seeds`` of shape (rows,)."""
    import torch

    places = torch.arange(1, vocabulary + 1, dtype=torch.int64, device=seeds.device)
    bits = _shift(_mix(_mix(seeds).unsqueeze(1) + (places * _signed(_GAMMA)).unsqueeze(0)), 11)
    uniform = (bits.double() + 0.5) * 2.0**-53
    return -torch.log(-torch.log(uniform))


class RowSampler:
    """The sampler of one row (one request), seeded once; ``temperature`` replaces the options' one."""

    def __init__(self, seed: int, options: ModelOptions, temperature: float | None = None) -> None:
        import torch

        self._generator = torch.Generator(device="cpu")
        self._generator.manual_seed(seed)
        self.temperature = options.temperature if temperature is None else temperature
        self.greedy = is_greedy(self.temperature)

    def next_seed(self) -> int:
        """The seed of this row's next token."""
        import torch

        return int(torch.randint(0, 2**31, (1,), generator=self._generator, dtype=torch.int64).item())


def sample(logits: Any, rows: list[RowSampler], options: ModelOptions) -> list[int]:
    """One token for each row of ``logits`` (rows, vocabulary)."""
    import torch

    logits = logits.float()
    likeliest = [int(token) for token in logits.argmax(dim=-1).tolist()]
    if all(row.greedy for row in rows):
        return likeliest
    temperatures = torch.tensor([[max(row.temperature, GREEDY)] for row in rows], device=logits.device)
    logits = filtered(logits / temperatures, options.top_k, options.top_p)
    seeds = torch.tensor([row.next_seed() for row in rows], dtype=torch.int64, device=logits.device)
    scores = logits.double() + gumbel(seeds, logits.shape[-1])
    draws = [int(token) for token in scores.argmax(dim=-1).tolist()]
    return [likeliest[place] if row.greedy else draws[place] for place, row in enumerate(rows)]


def filtered(logits: Any, top_k: int, top_p: float) -> Any:
    """``logits`` with minus infinity wherever top-k or top-p (in this order) leaves a token out."""
    import torch

    if not (0 < top_k < logits.shape[-1]) and top_p >= 1:
        return logits
    ordered, places = logits.sort(dim=-1, descending=False)
    if 0 < top_k < logits.shape[-1]:
        least = ordered[:, -top_k].unsqueeze(1)
        ordered = ordered.masked_fill(ordered < least, -torch.inf)
    if top_p < 1:
        below = ordered.softmax(dim=-1).cumsum(dim=-1) <= 1 - top_p
        below[:, -1] = False  # at least one token stays
        ordered = ordered.masked_fill(below, -torch.inf)
    return torch.empty_like(logits).scatter_(-1, places, ordered)
