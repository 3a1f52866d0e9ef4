"""The model: a word-level tokenizer, a small Llama, sampling replies in batches, and the log-probability of replies."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

import attrs
import torch
from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import AutoModelForCausalLM, AutoTokenizer, DynamicCache, LlamaConfig, PreTrainedTokenizerFast

from handoff.envs.alfworld.scenes import pickupable_types, receptacle_types

PAD, UNKNOWN, END = "<pad>", "<unk>", "</s>"
LONGEST_REPLY = 7  # tokens, with the end
LONGEST = 512  # tokens of prompt and reply

#: Words of commands that no demonstration holds.
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
    """A checkpoint and its words."""
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

    def text(self, ids: Sequence[int]) -> str:
        return " ".join(self.tokens[place] for place in ids if place != self.end)


@attrs.define
class Reply:
    """Sampled tokens with the end token, and the log-probability of each at the temperature of the sampling."""

    ids: list[int]
    log_probs: list[float]


@torch.inference_mode()
def sample(
    model: torch.nn.Module,
    prompts: Sequence[Sequence[int]],
    temperatures: Sequence[float],
    generator: torch.Generator,
) -> list[Reply]:
    """One reply to each prompt, all in one batch."""
    width = max(len(prompt) for prompt in prompts)
    tokens = torch.zeros((len(prompts), width), dtype=torch.int64)
    mask = torch.zeros((len(prompts), width), dtype=torch.int64)
    for row, prompt in enumerate(prompts):
        tokens[row, width - len(prompt) :] = torch.tensor(prompt)
        mask[row, width - len(prompt) :] = 1
    positions = (mask.cumsum(-1) - 1).clamp(min=0)
    scale = torch.tensor(temperatures).unsqueeze(1)
    cache = DynamicCache()
    replies = [Reply([], []) for _ in prompts]
    going = torch.ones(len(prompts), dtype=torch.bool)
    for _ in range(LONGEST_REPLY):
        logits = model(
            input_ids=tokens,
            attention_mask=mask,
            position_ids=positions,
            past_key_values=cache,
            use_cache=True,
            logits_to_keep=1,
        ).logits[:, -1]
        log_probs = (logits / scale).log_softmax(-1)
        drawn = torch.multinomial(log_probs.exp(), 1, generator=generator)
        found = log_probs.gather(-1, drawn).squeeze(1).tolist()
        tokens = drawn
        for row in going.nonzero().squeeze(1).tolist():
            token = int(drawn[row, 0])
            replies[row].ids.append(token)
            replies[row].log_probs.append(found[row])
            going[row] = token != 2
        if not going.any():
            break
        mask = torch.cat([mask, torch.ones((len(prompts), 1), dtype=torch.int64)], dim=1)
        positions = positions[:, -1:] + 1
    return replies


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


def log_probs(model: torch.nn.Module, batch: Batch, temperatures: torch.Tensor | None = None) -> torch.Tensor:
    """(rows, width - 1): the log-probability of each next token, at a temperature for each row."""
    logits = model(input_ids=batch.tokens[:, :-1], use_cache=False).logits
    if temperatures is not None:
        logits = logits / temperatures[:, None, None]
    return logits.log_softmax(-1).gather(-1, batch.tokens[:, 1:].unsqueeze(-1)).squeeze(-1)
