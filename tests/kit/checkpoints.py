"""Tiny checkpoints of real architecture, made on the spot: Qwen2 with random weights and a tokenizer of its own."""

from __future__ import annotations

from pathlib import Path

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
