"""Chat templates: rendered as transformers renders them, and probed for what they take from earlier replies."""

from __future__ import annotations

import pytest
from kit.checkpoints import CHAT

from handoff.policies.language.chat import ChatTemplate, in_words, probes, rewritten

NOW = "2026-07-30T12:00:00"
MESSAGES = [
    {"role": "system", "content": "Be brief."},
    {"role": "user", "content": " What is there?\n"},
    {"role": "assistant", "content": "<think>so</think>\n<action>look</action>"},
    {"role": "user", "content": 'A "mug" & a désk.'},
]
#: Templates in the manner of well-known ones.
TEMPLATES = {
    "plain": CHAT,
    "trimmed": "{{ bos_token }}{% for m in messages %}[{{ m['role'] }}]{{ m['content'] | trim }}{% endfor %}",
    "without thinking": "{% for m in messages %}{% set c = m.content %}{% if '</think>' in c %}"
    "{% set c = c.split('</think>')[-1].lstrip('\\n') %}{% endif %}[{{ m.role }}]{{ c }}{% endfor %}",
    "last thinking kept": "{% for m in messages %}{% set c = m.content %}{% if '</think>' in c and loop.revindex > 2 %}"
    "{% set c = c.split('</think>')[-1] %}{% endif %}[{{ m.role }}]{{ c }}{% endfor %}",
    "jumps": "{% for m in messages %}{% if m.role == 'system' %}{% continue %}{% endif %}{% generation %}"
    "{{ m | tojson }}{% endgeneration %}{% endfor %}",
    "spaces": "{%- for m in messages %}\n  {%- if loop.first %}\n    first\n  {% endif %}\n{{ m.content }}\n"
    "{%- endfor %}",
    "counting": "{% set ns = namespace(n=0) %}{% for m in messages %}{% set ns.n = ns.n + 1 %}{{ ns.n }}{% endfor %}"
    "{{ messages[::-1][0].content }}{{ tools is none }}{{ missing is defined }}{{ missing }}",
}


@pytest.mark.parametrize("source", TEMPLATES.values(), ids=TEMPLATES.keys())
def test_a_chat_template_gives_the_text_that_transformers_gives(source: str) -> None:
    from tokenizers import Tokenizer, models
    from transformers import PreTrainedTokenizerFast

    tokenizer = PreTrainedTokenizerFast(tokenizer_object=Tokenizer(models.BPE()), bos_token="<s>", chat_template=source)
    theirs = tokenizer.apply_chat_template(MESSAGES, add_generation_prompt=True, tokenize=False)
    assert ChatTemplate(source, tokenizer.special_tokens_map).render(MESSAGES, NOW) == theirs


@pytest.mark.parametrize(
    ("name", "lost", "words"),
    [
        ("plain", {}, "shows every earlier reply unchanged"),
        ("trimmed", {"white space": [1, 2, 3]}, "changes the white space of every earlier reply"),
        ("without thinking", {"thinking": [1, 2, 3]}, "leaves out the thinking of every earlier reply"),
        ("last thinking kept", {"thinking": [1, 2]}, "leaves out the thinking of replies 1 and 2 of 3 earlier ones"),
    ],
)
def test_a_probe_says_which_parts_of_which_replies_a_template_rewrites(
    name: str, lost: dict[str, list[int]], words: str
) -> None:
    template = ChatTemplate(TEMPLATES[name], {"bos_token": "<s>"})
    found = rewritten([template.render(messages, NOW) for messages in probes()])
    assert found == lost
    assert in_words(found) == words


def test_a_template_that_shows_no_replies_loses_their_actions() -> None:
    texts = ["view-0 view-1 view-2 view-3" for _ in probes()]
    assert rewritten(texts) == {"action": [1, 2, 3], "thinking": [1, 2, 3]}
