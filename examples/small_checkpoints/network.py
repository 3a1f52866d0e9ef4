"""The model: a word-level tokenizer, a small Llama, and the log-probabilities of replies and of admissible actions."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

import attrs
import torch
from arguments import refuse
from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import AutoModelForCausalLM, AutoTokenizer, LlamaConfig, PreTrainedTokenizerFast

from handoff.envs.alfworld.generator.scenes import pickupable_types, receptacle_types
from handoff.policies.hf.scoring import Tree

PAD, UNKNOWN, END = "<pad>", "<unk>", "</s>"
PASS = 16  # rows of a forward pass: as many as stay in a core's cache
LONGEST = 512  # tokens of prompt and reply

#: Words of actions that no demonstration holds.
_COMMANDS = "close examine inventory look help nothing failed start closed use with heat cool clean on from to"


def make_tokenizer(texts: Iterable[str]) -> PreTrainedTokenizerFast:
    """One token a word: those of ``texts``, the names of all things, and the numbers to 99."""
    words = set(_COMMANDS.split()) | {str(number) for number in range(100)}
    words |= {kind.lower() for kind in pickupable_types() | receptacle_types()}
    for text in texts:
        words.update(text.split())
    vocabulary = {word: place for place, word in enumerate([PAD, UNKNOWN, END, *sorted(words)])}
    tokenizer = Tokenizer(models.WordLevel(vocabulary, unk_token=UNKNOWN))
    tokenizer.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        pad_token=PAD,
        unk_token=UNKNOWN,
        eos_token=END,
        model_max_length=LONGEST,
        clean_up_tokenization_spaces=False,
    )


def make_model(vocabulary: int, seed: int, width: int = 128, layers: int = 3) -> torch.nn.Module:
    """A Llama of 0.6 million parameters with weights drawn by ``seed``."""
    torch.manual_seed(seed)
    config = LlamaConfig(
        vocab_size=vocabulary,
        hidden_size=width,
        intermediate_size=width * 11 // 4,
        num_hidden_layers=layers,
        num_attention_heads=4,
        num_key_value_heads=4,
        max_position_embeddings=LONGEST,
        tie_word_embeddings=True,
        bos_token_id=None,
        eos_token_id=2,
        pad_token_id=0,
        initializer_range=0.05,
    )
    return AutoModelForCausalLM.from_config(config, dtype=torch.float32, attn_implementation="eager")


def load(folder: Path) -> tuple[torch.nn.Module, Words]:
    """A checkpoint and its words.  Ends the script if there is none."""
    if not (folder / "model.safetensors").is_file():
        refuse(f"{folder} holds no finished checkpoint; the earlier steps make it (see docs/small_checkpoints.md)")
    model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32, attn_implementation="eager")
    return model, Words(AutoTokenizer.from_pretrained(folder))


def save(folder: Path, model: torch.nn.Module, words: Words) -> None:
    """As ``AutoModelForCausalLM`` and ``AutoTokenizer`` load it.  Raises ``ValueError`` if the tokenizer does not come
    back as it went."""
    model.save_pretrained(folder)
    words.tokenizer.save_pretrained(folder)
    # The class by the name that transformers 4 and 5 both know.
    path = folder / "tokenizer_config.json"
    path.write_text(path.read_text("utf-8").replace("TokenizersBackend", "PreTrainedTokenizerFast"), "utf-8")
    again = AutoTokenizer.from_pretrained(folder)
    text = " ".join(words.tokens[3:])
    if again(text)["input_ids"] != words.ids(text) or len(again) != len(words.tokens):
        raise ValueError(f"the tokenizer in {folder} gives other ids than the one that was saved")


class Words:
    """A tokenizer of this module as a table: the same ids, without its overhead."""

    def __init__(self, tokenizer: PreTrainedTokenizerFast) -> None:
        self.tokenizer = tokenizer
        table = tokenizer.get_vocab()
        self.tokens = [word for word, _ in sorted(table.items(), key=lambda item: item[1])]
        self._table, self.pad, self._unknown, self.end = table, table[PAD], table[UNKNOWN], table[END]

    def ids(self, text: str) -> list[int]:
        return [self._table.get(word, self._unknown) for word in text.split()]

    def row(self, prompt: str, actions: Sequence[str]) -> Row:
        """A prompt with its admissible actions."""
        return self.ids(prompt), Tree.of([(*self.ids(action), self.end) for action in actions])


Row = tuple[Sequence[int], Tree]  # a prompt, and its admissible actions as a tree


def scores(model: torch.nn.Module, rows: Sequence[Row]) -> list[torch.Tensor]:
    """For each row the log-probability of every action as a whole reply, by one pass over the trees.

    The computation of ``hf:`` policies with ``--constrain`` (:mod:`handoff.policies.hf.scoring`), in a trainable form.
    """
    width = max(len(prompt) + len(tree.tokens) for prompt, tree in rows)
    ids = torch.zeros((len(rows), width), dtype=torch.int64)
    places = torch.zeros((len(rows), width), dtype=torch.int64)
    seen = torch.eye(width, dtype=torch.bool).repeat(len(rows), 1, 1)
    causal = torch.ones((width, width), dtype=torch.bool).tril()
    nodes: list[int] = []  # where in the batch each node stands, of all rows one after the other
    steps: list[tuple[int, int]] = []
    paths: list[int] = []
    owners: list[int] = []  # the action that each entry of ``paths`` belongs to
    counts = []
    for number, (prompt, tree) in enumerate(rows):
        fork, end = len(prompt), len(prompt) + len(tree.tokens)
        ids[number, :end] = torch.tensor([*prompt, *tree.tokens])
        places[number, :end] = torch.tensor([*range(fork), *(fork + depth for depth in tree.depths)])
        seen[number, :fork, :fork] = causal[:fork, :fork]
        seen[number, fork:end, :fork] = True
        seen[number, fork:end, fork:end] = tree.seen
        first, step, command = len(nodes), len(steps), sum(counts)
        nodes += range(number * width + fork - 1, number * width + end)
        steps += [(first + node, token) for node, token in tree.steps]
        for place, path in enumerate(tree.paths):
            paths += [step + entry for entry in path]
            owners += [command + place] * len(path)
        counts.append(len(tree.paths))
    mask = torch.zeros((len(rows), 1, width, width)).masked_fill_(~seen.unsqueeze(1), torch.finfo(torch.float32).min)
    hidden = model.model(input_ids=ids, attention_mask=mask, position_ids=places, use_cache=False).last_hidden_state
    logits = model.lm_head(hidden.flatten(0, 1)[torch.tensor(nodes)]).log_softmax(-1)
    at, token = torch.tensor(steps).unbind(1)
    each = logits[at, token]
    total = torch.zeros(sum(counts)).index_add(0, torch.tensor(owners), each[torch.tensor(paths)])
    return list(total.split(counts))


def in_passes(rows: Sequence[Row]) -> list[list[int]]:
    """Places of ``rows`` in groups of ``PASS``, the short ones together."""
    order = sorted(range(len(rows)), key=lambda place: len(rows[place][0]) + len(rows[place][1].tokens))
    return [order[start : start + PASS] for start in range(0, len(order), PASS)]


@attrs.define
class Chosen:
    """A sampled action: its place among the admissible ones and its log-probability among them."""

    place: int
    log_prob: float


@torch.inference_mode()
def sample(
    model: torch.nn.Module, rows: Sequence[Row], temperatures: Sequence[float], generator: torch.Generator
) -> list[Chosen]:
    """One action for each row, with probability proportional to exp(score / temperature)."""
    samples: list[Chosen | None] = [None] * len(rows)
    draws = torch.rand(len(rows), generator=generator, dtype=torch.float64).tolist()
    for group in in_passes(rows):
        for place, values in zip(group, scores(model, [rows[place] for place in group]), strict=True):
            logs = (values.double() / temperatures[place]).log_softmax(-1)
            chosen = min(int((logs.exp().cumsum(-1) <= draws[place]).sum()), len(logs) - 1)
            samples[place] = Chosen(chosen, float(logs[chosen]))
    return [chosen for chosen in samples if chosen is not None]


@attrs.define
class Batch:
    """Prompts with replies, padded on the right (causal attention never sees the padding).

    ``tokens`` (rows, width); ``replies`` (rows, width - 1) is true where the *next* token belongs to the reply.
    """

    tokens: torch.Tensor
    replies: torch.Tensor
    real: torch.Tensor

    @classmethod
    def of(cls, pairs: Sequence[tuple[Sequence[int], Sequence[int]]]) -> Batch:
        width = max(len(prompt) + len(reply) for prompt, reply in pairs)
        tokens = torch.zeros((len(pairs), width), dtype=torch.int64)
        replies = torch.zeros((len(pairs), width - 1), dtype=torch.bool)
        real = torch.zeros((len(pairs), width - 1), dtype=torch.bool)
        for row, (prompt, reply) in enumerate(pairs):
            whole = len(prompt) + len(reply)
            tokens[row, :whole] = torch.tensor([*prompt, *reply])
            replies[row, len(prompt) - 1 : whole - 1] = True
            real[row, : whole - 1] = True
        return cls(tokens, replies, real)


def log_probs(model: torch.nn.Module, batch: Batch) -> torch.Tensor:
    """(rows, width - 1): the log-probability of each next token."""
    logits = model(input_ids=batch.tokens[:, :-1], use_cache=False).logits
    return logits.log_softmax(-1).gather(-1, batch.tokens[:, 1:].unsqueeze(-1)).squeeze(-1)
