"""Tiny checkpoints of real architecture, made on the spot: Qwen2 with random weights and a tokenizer of its own."""

from __future__ import annotations

from pathlib import Path
from typing import Any

CHAT = (
    "{% for message in messages %}{{ '<|im_start|>' + message['role'] + '\n' + message['content'] + '<|im_end|>\n' }}"
    "{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}"
)
CORPUS = [
    "You are in the middle of a room. Looking quickly around you, you see a cabinet 1, a desk 1, a bed 1.",
    "Your task is to: put a clean mug in cabinet. go to desk 1. take mug 1 from desk 1. open drawer 2.",
    "Think about what to do next between <think> and </think>. Then give one of the commands <action>look</action>",
    "You push the box. left right up down wait # . @ $ * + You have taken 3 steps. Commands that you can use now:",
] * 8


def make(folder: Path, seed: int, hidden: int = 128, layers: int = 2, vocabulary: int = 440) -> Path:
    """A Qwen2 checkpoint with random weights from ``seed`` in ``folder``; its tokenizer does not depend on the seed."""
    import torch
    from tokenizers import Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, trainers
    from transformers import PreTrainedTokenizerFast, Qwen2Config, Qwen2ForCausalLM

    tokenizer = Tokenizer(models.BPE())
    # The pre-tokenizer and normalizer that AutoTokenizer gives every qwen2 checkpoint: ids must survive a reload.
    words = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}"
    pattern = words + r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
    tokenizer.normalizer = normalizers.NFC()
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex(pattern), behavior="isolated", invert=False),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )
    tokenizer.decoder = decoders.ByteLevel()
    special = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]
    trainer = trainers.BpeTrainer(
        vocab_size=vocabulary, special_tokens=special, initial_alphabet=pre_tokenizers.ByteLevel.alphabet()
    )
    tokenizer.train_from_iterator(CORPUS, trainer)
    fast = PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, eos_token="<|im_end|>", pad_token="<|endoftext|>", chat_template=CHAT
    )
    generator_state = torch.random.get_rng_state()
    torch.manual_seed(seed)
    config = Qwen2Config(
        vocab_size=len(fast),
        hidden_size=hidden,
        intermediate_size=2 * hidden,
        num_hidden_layers=layers,
        num_attention_heads=4,
        num_key_value_heads=2,
        max_position_embeddings=8192,
        eos_token_id=fast.eos_token_id,
        bos_token_id=None,
        pad_token_id=fast.pad_token_id,
        initializer_range=0.3,  # far from uniform, so that a reply is more than noise
    )
    model = Qwen2ForCausalLM(config).float()
    torch.random.set_rng_state(generator_state)
    model.save_pretrained(folder)
    fast.save_pretrained(folder)
    return folder


def make_pair(folder: Path) -> Path:
    """Two checkpoints with different weights, ``sft`` and ``rl``."""
    for seed, name in ((1, "sft"), (2, "rl")):
        make(folder / name, seed)
    return folder


def make_with(tokenizer: Any, folder: Path, seed: int) -> Path:
    """A Llama checkpoint with random weights from ``seed`` in ``folder``, under a tokenizer of :data:`TOKENIZERS`."""
    import torch
    from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

    fast = PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, bos_token="<s>", eos_token="</s>", unk_token="<unk>", chat_template=PLAIN_CHAT
    )
    generator_state = torch.random.get_rng_state()
    torch.manual_seed(seed)
    config = LlamaConfig(
        vocab_size=len(fast),
        hidden_size=128,
        intermediate_size=128,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        max_position_embeddings=4096,
        bos_token_id=fast.bos_token_id,
        eos_token_id=fast.eos_token_id,
        initializer_range=0.3,
    )
    model = LlamaForCausalLM(config).float()
    torch.random.set_rng_state(generator_state)
    model.save_pretrained(folder)
    fast.save_pretrained(folder)
    return folder


PLAIN_CHAT = (
    "{% for message in messages %}{{ message['role'] + ' : ' + message['content'] + ' ; ' }}{% endfor %}"
    "{% if add_generation_prompt %}{{ 'assistant :' }}{% endif %}"
)
_SPECIAL = ["<unk>", "<s>", "</s>"]


def _metaspace() -> Any:
    """As Llama's: a space is a part of the word after it, and the first one of a text is dropped."""
    from tokenizers import Tokenizer, decoders, models, normalizers, trainers

    tokenizer = Tokenizer(models.BPE(byte_fallback=True, unk_token="<unk>", fuse_unk=True))
    tokenizer.normalizer = normalizers.Sequence([normalizers.Prepend("\u2581"), normalizers.Replace(" ", "\u2581")])
    tokenizer.decoder = decoders.Sequence(
        [decoders.Replace("\u2581", " "), decoders.ByteFallback(), decoders.Fuse(), decoders.Strip(" ", 1, 0)]
    )
    bytes_ = [f"<0x{number:02X}>" for number in range(256)]
    tokenizer.train_from_iterator(CORPUS, trainers.BpeTrainer(vocab_size=700, special_tokens=[*_SPECIAL, *bytes_]))
    return tokenizer


def _words() -> Any:
    """Whole words, without spaces: a text is its words with one space between them."""
    from tokenizers import Tokenizer, models, pre_tokenizers, trainers

    tokenizer = Tokenizer(models.WordLevel(unk_token="<unk>"))
    tokenizer.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    tokenizer.train_from_iterator(CORPUS, trainers.WordLevelTrainer(special_tokens=_SPECIAL))
    return tokenizer


def _bytes() -> Any:
    """As GPT-2's: every byte is a character, and a space is a part of the word after it."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(vocab_size=440, special_tokens=_SPECIAL, initial_alphabet=alphabet)
    tokenizer.train_from_iterator(CORPUS, trainer)
    return tokenizer


#: Kinds of tokenizers, by name.
TOKENIZERS = {"metaspace": _metaspace, "words": _words, "bytes": _bytes}
