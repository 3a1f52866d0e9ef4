"""The exact log-probabilities of given replies to a prompt: all replies of many prompts in one forward pass.

Actions share their beginnings ("go to desk 1", "go to desk 2"), so a prompt's replies make a tree whose nodes stand
after the prompt in one sequence; a mask lets each node see the prompt and its own ancestors, and its position is its
depth.  What a node sees is what it would see in its reply alone.

Rows share a pass only where they have the same shape on their own (:func:`shape`), and every pass has the same number
of rows: the sums of a row, and their order, do not depend on its neighbours.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any

import attrs

#: Rows are filled up in front to a multiple of so many columns, and logits are kept of a multiple of so many.
STEP, KEPT = 32, 16
#: Logits that are held in float64 at a time.
MOST = 1 << 24


@attrs.frozen
class Tree:
    """``replies`` (token ids, an end token last) as a tree.

    Node ``n`` is a token that some reply has before its last one: ``tokens[n]`` after ``parents[n]`` (-1: the prompt),
    at ``depths[n]``.  ``steps`` are the pairs (node, token) that replies are made of (node 0 is the prompt, node n + 1
    the n-th node), each once; ``paths[r]`` are the steps of reply r.
    """

    replies: tuple[tuple[int, ...], ...]
    tokens: tuple[int, ...]
    parents: tuple[int, ...]
    depths: tuple[int, ...]
    steps: tuple[tuple[int, int], ...]
    paths: tuple[tuple[int, ...], ...]

    @classmethod
    def of(cls, replies: Sequence[tuple[int, ...]]) -> Tree:
        nodes: dict[tuple[int, int], int] = {}
        steps: dict[tuple[int, int], int] = {}
        parents, depths, paths = list[int](), list[int](), list[tuple[int, ...]]()
        for reply in replies:
            here, path = -1, []
            for depth, token in enumerate(reply):
                path.append(steps.setdefault((here + 1, token), len(steps)))
                if depth + 1 < len(reply):
                    if (here, token) not in nodes:
                        nodes[here, token] = len(nodes)
                        parents.append(here)
                        depths.append(depth)
                    here = nodes[here, token]
            paths.append(tuple(path))
        tokens = tuple(token for _, token in nodes)
        return cls(tuple(replies), tokens, tuple(parents), tuple(depths), tuple(steps), tuple(paths))

    @cached_property
    def seen(self) -> Any:
        """Shape (nodes, nodes): whether a node sees another one, itself included."""
        import torch

        seen = torch.eye(len(self.tokens), dtype=torch.bool)
        for node, parent in enumerate(self.parents):
            if parent >= 0:
                seen[node] |= seen[parent]
        return seen


Row = tuple[tuple[int, ...], Tree]


def shape(row: Row) -> tuple[int, int]:
    """The columns of a row in its pass, and how many of them, at its end, need logits."""
    prompt, tree = row
    kept = 1 + len(tree.tokens)
    kept += -kept % KEPT
    columns = max(len(prompt) + len(tree.tokens), kept)
    return columns + -columns % STEP, kept


def tree_scores(model: Any, rows: Sequence[Row], size: int) -> list[list[float]]:
    """Log-probabilities of every reply of each row (a prompt with a tree), by one pass of ``size`` rows.

    All ``rows`` have one :func:`shape`.
    """
    import torch

    width, kept = shape(rows[0])
    ids = torch.zeros((size, width), dtype=torch.int64)
    places = torch.zeros((size, width), dtype=torch.int64)
    seen = torch.eye(width, dtype=torch.bool).repeat(size, 1, 1)
    causal = torch.ones((width, width), dtype=torch.bool).tril()
    for row, (prompt, tree) in enumerate([*rows, *[rows[0]] * (size - len(rows))]):
        start, fork = width - len(prompt) - len(tree.tokens), width - len(tree.tokens)
        ids[row, start:] = torch.tensor([*prompt, *tree.tokens])
        places[row, start:] = torch.tensor([*range(len(prompt)), *(len(prompt) + depth for depth in tree.depths)])
        seen[row, start:fork, start:fork] = causal[: len(prompt), : len(prompt)]
        if tree.tokens:
            seen[row, fork:, start:fork] = True
            seen[row, fork:, fork:] = tree.seen
    device, dtype = model.device, model.dtype
    mask = torch.zeros((size, 1, width, width), dtype=dtype).masked_fill_(~seen.unsqueeze(1), torch.finfo(dtype).min)
    with torch.inference_mode():
        logits = model(
            input_ids=ids.to(device),
            attention_mask=mask.to(device),
            position_ids=places.to(device),
            use_cache=False,
            logits_to_keep=kept,
        ).logits
        return [_along(tree, logits[row, kept - 1 - len(tree.tokens) :]) for row, (_, tree) in enumerate(rows)]


def plain_scores(model: Any, rows: Sequence[Row], size: int) -> list[list[float]]:
    """What :func:`tree_scores` gives, reply by reply: for models that take no custom mask."""
    import torch

    scores_by_row = []
    with torch.inference_mode():
        for prompt, tree in rows:
            scores = []
            for reply in tree.replies:
                ids = torch.tensor([[*prompt, *reply[:-1]]], dtype=torch.int64, device=model.device)
                logits = model(input_ids=ids, use_cache=False, logits_to_keep=len(reply)).logits[0].double()
                tokens = torch.tensor(reply, device=model.device).unsqueeze(1)
                scores.append(float(logits.log_softmax(dim=-1).gather(-1, tokens).sum()))
            scores_by_row.append(scores)
    return scores_by_row


def _along(tree: Tree, logits: Any) -> list[float]:
    """The score of every reply from ``logits`` of shape (1 + nodes, vocabulary)."""
    import torch

    many = max(1, MOST // logits.shape[-1])
    total = torch.cat([part.double().logsumexp(dim=-1) for part in logits.split(many)])
    nodes, tokens = torch.tensor(tree.steps, device=logits.device).unbind(dim=1)
    each = (logits[nodes, tokens].double() - total[nodes]).tolist()
    return [sum(each[step] for step in path) for path in tree.paths]


def takes_trees(model: Any) -> bool:
    """Whether :func:`tree_scores` is right for ``model``: it sees all of its context in every layer, and a small tree
    scores as its replies do one by one."""
    config = model.config
    kinds = set(getattr(config, "layer_types", None) or ["full_attention"])
    slides = getattr(config, "sliding_window", None) is not None and getattr(config, "use_sliding_window", True)
    if kinds != {"full_attention"} or slides:
        return False
    few = min(8, int(config.vocab_size))
    prompt = tuple(token % few for token in (1, 5, 2, 7))
    tree = Tree.of([(3 % few, 4 % few, 0), (3 % few, 6 % few, 1 % few, 0), (2 % few, 0)])
    rows = [(prompt, tree), (prompt[:2], tree)]  # of one shape
    try:
        scores = tree_scores(model, rows, 2)
    except (ValueError, TypeError, RuntimeError, IndexError):
        return False
    slack = 1e-3 if str(model.dtype) == "torch.float32" else 0.5
    expected = plain_scores(model, rows, 2)
    return all(
        abs(a - b) < slack for one, two in zip(scores, expected, strict=True) for a, b in zip(one, two, strict=True)
    )
