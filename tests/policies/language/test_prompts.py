"""Prompts are data: templates, windows, conversations, the sandbox."""

from __future__ import annotations

from pathlib import Path

import pytest

from handoff.canonical import digest
from handoff.errors import DataError, HandoffError, UsageError
from handoff.policies import Request, Turn
from handoff.policies.language import sandbox
from handoff.policies.language.chat import ChatTemplate
from handoff.policies.language.prompts import BUILTIN, Template
from handoff.records import Record, Task

TASK = Task("0" * 64, "clean a mug", "clean", "test")


def record(n: int, *more: str) -> Record:
    return Record(f"You see thing {n}.", ("look", *more), 0.0, False, False)


def request(count: int, remaining: int = 7) -> Request:
    turns = tuple(
        Turn(f"do {n}", record(n), f"<think>t{n}</think><action>do {n}</action>") for n in range(1, count + 1)
    )
    return Request(TASK, 5, Record("Your task is to: clean a mug.", ("look",), 0.0, False, False), turns, remaining)


def test_a_plain_template_is_one_user_message_with_every_variable() -> None:
    source = (
        "{{ task.name }}|{{ reset }}|{{ observation }}|{{ admissible | join(',') }}|{{ step }}|{{ remaining }}|"
        "{{ skipped }}|{% for turn in history %}{{ turn.number }}:{{ turn.before }}>{{ turn.action }}>"
        "{{ turn.observation }};{% endfor %}"
    )
    prompt = Template("mine", source, history=1).render(request(2))
    shown = (
        "clean a mug|Your task is to: clean a mug.|You see thing 2.|look|2|7|1|"
        "2:You see thing 1.>do 2>You see thing 2.;"
    )
    assert prompt.messages == (("user", shown),)


def test_a_template_can_be_written_exactly_as_a_checkpoint_was_trained() -> None:
    source = (
        "\nTask: {{ reset.split('Your task is to: ')[1] }}\nPrior to this step, {{ step }} step(s). "
        "[{% for turn in history %}Observation {{ turn.number }}: '{{ turn.before }}', "
        "Action {{ turn.number }}: '{{ turn.action }}'{{ '' if loop.last else '\n' }}{% endfor %}]\n"
        "Now: {{ observation }} Admissible: [{% for c in admissible if c != 'help' %}'{{ c }}'"
        "{{ '' if loop.last else ',\n ' }}{% endfor %}].\n\n"
    )
    prompt = Template("mine", source, history=2).render(request(3))
    assert prompt.messages[0][1] == (
        "\nTask: clean a mug.\nPrior to this step, 3 step(s). "
        "[Observation 2: 'You see thing 1.', Action 2: 'do 2'\nObservation 3: 'You see thing 2.', Action 3: 'do 3']\n"
        "Now: You see thing 3. Admissible: ['look'].\n"
    ), "only the newline at the end of the file is not part of the prompt"


def test_the_built_in_template_shows_the_window_the_commands_and_how_to_answer() -> None:
    text = Template.named("default", history=2).render(request(5)).messages[-1][1]
    assert "Your task is to: clean a mug." in text
    assert "The first 3 steps are left out" in text
    assert "do 3" not in text
    assert "[step 4] You: do 4\nYou see thing 4." in text
    assert "You have taken 5 steps" in text
    assert "\n- look\n" in text
    assert "<action>" in text
    for format, sign in (("last_line", "last line"), ("json", '{"action": "..."}'), ("choice", "nothing else")):
        other = Template.named("default", format=format).render(request(0)).messages[-1][1]
        assert sign in other
        assert "<action>" not in other


def test_a_spent_step_is_shown_as_such() -> None:
    spent = Request(TASK, 0, record(0), (Turn("", record(0), "hm"),), 3)
    assert "(no usable command)" in Template.named("default").render(spent).messages[-1][1]
    assert "held no usable command" in Template.named("turns").render(spent).messages[-1][1]


def test_a_conversation_is_appended_to_and_never_rendered_differently() -> None:
    template = Template.named("turns", history=None)
    before: tuple[tuple[str, str], ...] = ()
    for count in range(5):
        messages = template.render(request(count)).messages
        assert messages[: len(before)] == before
        assert [role for role, _ in messages] == ["system", "user"] + ["assistant", "user"] * count
        before = messages
    assert before[2] == ("assistant", "<think>t1</think><action>do 1</action>")


def test_the_system_prompt_can_be_replaced_or_left_out() -> None:
    assert Template.named("turns", system="Be brief.").render(request(0)).messages[0] == ("system", "Be brief.")
    assert Template.named("turns", system="").render(request(0)).messages[0][0] == "user"
    assert Template.named("default", system="Be brief.").render(request(0)).messages[0] == ("system", "Be brief.")


def test_the_text_form_joins_messages_and_has_a_digest_of_its_own() -> None:
    chat = Template.named("turns").render(request(1))
    text = Template.named("turns", form="text").render(request(1))
    assert text.text == "\n".join(content for _, content in chat.messages)
    assert text.digest() == digest({"text": text.text})
    assert chat.digest() == digest({"messages": [list(message) for message in chat.messages]})
    assert chat.digest() != text.digest()


def test_observations_are_data_and_never_template_code() -> None:
    hostile = Record("{{ 6 * 7 }} {% block system %}x{% endblock %}", ("look",), 0.0, False, False)
    prompt = Template.named("default").render(Request(TASK, 0, hostile, (), 1))
    assert "{{ 6 * 7 }} {% block system %}x{% endblock %}" in prompt.messages[-1][1]
    assert len(prompt.messages) == 1


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("{{ obsrvation }}", "'obsrvation' is undefined"),
        ("{% if %}", "line 1"),
        ("{% include 'other' %}", "no loader"),
        ("{{ ''.__class__.__mro__[1].__subclasses__() }}", "unsafe"),
        ("{{ history.append(1) }}", "unsafe"),
        ("{% for i in range(10000000) %}{% endfor %}", "Range too big"),
        ("{{ 1 / 0 }}", "ZeroDivisionError"),
        ("{% block question %}{% endblock %}", "its blocks are question"),
        ("{% block first %}{% endblock %}", "its blocks are first"),
        ("{% macro f() %}{{ f() }}{% endmacro %}{{ f() }}", "RecursionError"),
        ("{{ admissible | map('upper') }}", "generator is no text"),
        ("{{ [admissible | map('upper')] }}", "list is no text"),
        ("{% for a in [1] %}" * 30 + "{% endfor %}" * 30, "nested"),
        ("{{ '\\ud800' }} {{ observation }}", "surrogates not allowed"),
    ],
)
def test_a_template_that_cannot_work_is_refused_before_the_run_in_one_sentence(source: str, message: str) -> None:
    with pytest.raises(DataError, match=message) as caught:
        Template("mine", source)
    assert "\n" not in str(caught.value)


SHARED = (
    "{% set n = namespace(a=(1,), b=(1,)) %}{% for i in range(60) %}{% set n.a = [n.a, n.a] %}"
    "{% set n.b = [n.b, n.b] %}{% endfor %}"
)
BOUNDLESS = {
    "nested loops": "{% for i in range(99999) %}{% for j in range(99999) %}{% endfor %}{% endfor %}",
    "macros": "{% macro f(n) %}{% if n %}{{ f(n - 1) }}{{ f(n - 1) }}{% endif %}{% endmacro %}{{ f(60) }}",
    "a loop that calls itself": "{% for i in [1, 2] recursive %}{{ loop([1, 2]) if loop.depth < 60 }}{% endfor %}",
    "a power": "{{ 9 ** 9 ** 9 ** 9 }}",
    "repetition": "{{ 'x' * 10 ** 12 }}",
    "a width": "{{ 'x' | center(10 ** 12) }}",
    "a method's width": "{{ 'x'.ljust(1000000000000) }}",
    "a format": "{{ '%1000000000000d' % 1 }}",
    "another format": "{{ '{:1000000000000}'.format(1) }}",
    "doubling": "{% set n = namespace(a='xxxx') %}{% for i in range(60) %}{% set n.a = n.a ~ n.a %}{% endfor %}",
    "doubled sums": "{% set n = namespace(a=[1]) %}{% for i in range(60) %}{% set n.a = n.a + n.a %}{% endfor %}",
    "doubled output": "{% set n = namespace(a='xxxx') %}{% for i in range(60) %}{% set n.a %}{{ n.a }}{{ n.a }}"
    "{% endset %}{% endfor %}",
    "replacing": "{{ ('a' * 1000000).replace('a', 'b' * 1000000) }}",
    "printing a list of shared lists": SHARED + "{{ n.a }}",
    "joining a list of shared lists": SHARED + "{{ n.a ~ '' }}",
    "comparing shared lists": SHARED + "{{ n.a == n.b }}",
    "a test of shared lists": SHARED + "{{ n.a is eq(n.b) }}",
    "selecting by shared lists": SHARED + "{{ [n.a] | select('equalto', n.b) | list | length }}",
    "sorting shared lists": SHARED + "{{ [n.a, n.b] | sort | length }}",
    "a shared key": SHARED.replace("[n.a, n.a]", "(n.a, n.a)") + "{{ {n.a: 1} | length }}",
    "looking a shared key up": SHARED.replace("[n.a, n.a]", "(n.a, n.a)") + "{{ {}[n.a] }}",
    "many fields": "{{ ('{0}' * 15000).format('x' * 100000) }}",
    "many widths": "{{ ('%(a)999s' * 15000) % {'a': 1} }}",
    "many joints": "{{ ['x'] * 15000 | join('x' * 100000) }}".replace("['x'] * 15000", "(['x'] * 15000)"),
    "many tabs": "{{ ('\t' * 15000).expandtabs(99999) }}",
    "a filter that replaces": "{{ ('a' * 30000) | replace('a', 'b' * 50000) }}",
    "filters": "{% for i in range(99999) %}{{ range(99999) | map('string') | join | length }}{% endfor %}",
}


@pytest.mark.parametrize("source", BOUNDLESS.values(), ids=BOUNDLESS.keys())
def test_a_template_that_would_never_end_is_refused_in_one_sentence(
    source: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sandbox, "MOST_STEPS", 200_000)
    for make in (lambda: Template("mine", source), lambda: ChatTemplate(source).render([], NOW)):
        with pytest.raises((DataError, sandbox.Endless), match="does not end within") as caught:
            make()
        assert "\n" not in str(caught.value)


def test_the_bound_leaves_a_hundred_turns_of_long_observations_alone() -> None:
    source = (
        "{% for turn in history %}{% for word in turn.observation.split(' ') %}{{ word ~ ' ' }}{% endfor %}{% endfor %}"
    )
    view = Record("word " * 2000, ("look",), 0.0, False, False)
    turns = tuple(Turn("look", view, "") for _ in range(100))
    text = Template("mine", source, history=None).render(Request(TASK, 0, view, turns, 1)).messages[0][1]
    assert text.count("word") == 200_000


def test_loops_under_the_bound_have_every_property_that_they_had() -> None:
    source = (
        "{% for a in 'xyz' %}{{ loop.index }}/{{ loop.length }}{{ loop.cycle('a', 'b') }}"
        "{{ '.' if loop.last else loop.nextitem }} {% else %}none{% endfor %}"
        "{% for a in [] %}{% else %}none{% endfor %}{% for k, v in {'p': 1, 'q': 0}.items() if v %}{{ k }}{% endfor %}"
    )
    assert Template("mine", source).render(request(0)).messages[0][1] == "1/3ay 2/3bz 3/3a. nonep"


NOW, LATER = "2026-07-30T12:00:00", "2026-08-01T12:00:00"


def test_the_clock_of_a_template_stands_still_at_the_stated_time() -> None:
    source = "{{ strftime_now('%d %b %Y %H:%M:%S') }}"
    texts = [Template("mine", source, now=now).render(request(0)).messages[0][1] for now in (NOW, LATER)]
    assert texts == ["30 Jul 2026 12:00:00", "01 Aug 2026 12:00:00"]
    chat = ChatTemplate("{{ strftime_now('%A') }} {{ messages[0].content }}")
    said = [{"role": "user", "content": "hi"}]
    assert [chat.render(said, now) for now in (NOW, LATER)] == ["Thursday hi", "Saturday hi"]
    assert chat.reads_clock
    assert Template("mine", source).reads_clock


def test_a_template_that_names_the_clock_in_a_comment_does_not_read_it() -> None:
    assert not Template("mine", "{# strftime_now #}now").reads_clock
    assert not ChatTemplate("{% set strftime_now = 1 %}{{ strftime_now }}").reads_clock
    assert not any(Template.named(name).reads_clock for name in BUILTIN)


@pytest.mark.parametrize("source", ["{{ [1, 2, 3] | random }}", "{{ lipsum() }}"])
def test_a_template_that_draws_lots_is_refused(source: str) -> None:
    with pytest.raises(DataError, match=r"makes another prompt each time|is undefined"):
        Template("mine", source)


def test_template_files_are_read_or_refused(tmp_path: Path) -> None:
    good = tmp_path / "mine.jinja"
    good.write_text("now {{ observation }}\n")
    template = Template.named(str(good))
    assert template.name == "mine.jinja"
    assert template.render(request(0)).messages == (("user", "now Your task is to: clean a mug."),)
    assert Template.from_json(template.to_json()) == template
    bad = tmp_path / "bad.jinja"
    bad.write_bytes(b"\xff\xfe")
    for name in (str(bad), str(tmp_path), str(tmp_path / "none")):
        with pytest.raises(HandoffError):
            Template.named(name)
    namesake = tmp_path / "turns"
    namesake.write_text("now {{ observation }}")
    with pytest.raises(UsageError, match="own template turns has this name; rename the file"):
        Template.named(str(namesake))
    namesake.write_text(Template.named("turns").source)
    assert Template.named(str(namesake)) == Template.named("turns")
    with pytest.raises(UsageError, match="0 turns or more"):
        Template.named("default", history=-1)
    with pytest.raises(UsageError, match="known: chat, text"):
        Template.named("default", form="html")
