"""What all language-model policies share: options, prompts, actions, tokens, checkpoints."""
