"""Options, study files and classes have one statement of each setting."""

from __future__ import annotations

from typing import Any

import attrs
import click
import pytest
from click.testing import CliRunner

from handoff.cli import group
from handoff.cli.settings import Command, options_of
from handoff.cli.study_command import study_command
from handoff.errors import UsageError
from handoff.protocols.frontier import FRONTIER
from handoff.protocols.rollouts import ROLLOUTS
from handoff.settings import setting, settings


@attrs.frozen(kw_only=True)
class Toy:
    count: int = setting("How many.", kind=int, default=3, least=1, most=9, word="all", short="c")
    share: float = setting("How much.", kind=float, default=0.5, least=0, most=1, open=True, group="models")
    names: tuple[str, ...] = setting("Who.", kind=str, default=(), repeats=True, singular="name", group="policies")
    mode: str = setting("Which way.", kind=str, default="fast", choices=("fast", "slow"))
    strict: bool = setting("Whether to be strict.", kind=bool, default=False, negative="lenient")
    any_size: int = setting("Any whole number.", kind=int, default=0)
    hidden: int = setting("For files.", kind=int, default=0, on_command_line=False)


def given(*arguments: str) -> dict[str, Any]:
    """The values that a command with the options of ``Toy`` gets."""
    seen: list[dict[str, Any]] = []

    @click.command(cls=Command)
    @options_of(Toy)
    def command(toy: dict[str, Any]) -> None:
        seen.append(toy)

    result = CliRunner().invoke(command, arguments)
    assert result.exit_code == 0, result.output
    return seen[0]


def test_only_what_is_typed_is_given_by_field_name() -> None:
    assert given() == {}
    assert given("-c", "4", "--share", "0.25", "--name", "a", "--name", "b", "--lenient") == {
        "count": 4, "share": 0.25, "names": ("a", "b"), "strict": False,
    }  # fmt: skip
    assert given("--count", "all") == {"count": None}


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ({"count": 0}, "count must be at least 1 and at most 9, not 0"),
        ({"count": True}, "count must be a whole number, not True"),
        ({"share": 1.0}, "share must be more than 0 and less than 1, not 1.0"),
        ({"share": float("nan")}, "share must be more than 0 and less than 1, not nan"),
        ({"mode": "fsat"}, "mode is one of fast, slow, not 'fsat'"),
    ],
)
def test_the_class_refuses_what_the_command_line_refuses(value: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        Toy(**value)
    ((name, wrong),) = value.items()

    @click.command(cls=Command)
    @options_of(Toy)
    def command(toy: dict[str, Any]) -> None:
        raise AssertionError("a wrong value reached the command")

    assert CliRunner().invoke(command, [f"--{name}", str(wrong)]).exit_code == 2


def test_help_lists_options_under_headings_with_defaults() -> None:
    @click.command(cls=Command)
    @options_of(Toy)
    def command(toy: dict[str, Any]) -> None: ...

    shown = CliRunner().invoke(command, ["--help"]).output
    positions = [shown.index(part) for part in ("Study:", "--count", "Policies:", "--name", "Models:", "--share")]
    assert positions == sorted(positions)
    assert "[default: 3]" in shown
    assert "hidden" not in shown


@pytest.mark.parametrize(("name", "protocol"), [("run", FRONTIER), ("rollout", ROLLOUTS)])
def test_every_setting_of_a_protocol_is_an_option_of_its_command(name: str, protocol: Any) -> None:
    shown = CliRunner().invoke(group, [name, "--help"]).output
    for heading in ("Study:", "Policies:", "Models:", "Execution:", "Output:"):
        assert heading in shown
    for one in protocol.settings():
        flag = f"--{(one.singular or one.name).replace('_', '-')} "
        assert (flag in shown) == one.on_command_line, one


def test_a_setting_without_bounds_takes_any_whole_number() -> None:
    assert given("--any-size", "-7") == {"any_size": -7}


def test_a_setting_that_takes_an_option_of_all_protocols_is_refused() -> None:
    @attrs.frozen(kw_only=True)
    class Clashing(ROLLOUTS.config):  # type: ignore[misc, name-defined]
        workers: int = setting("How many.", kind=int, default=1)

    class Clash(type(ROLLOUTS)):  # type: ignore[misc]
        name = "clash"
        config = Clashing

    with pytest.raises(UsageError, match="'clash' has a setting whose option --workers is taken"):
        study_command(Clash())


def test_a_default_is_within_its_own_range() -> None:
    for protocol in (FRONTIER, ROLLOUTS):
        for cls in (protocol.config, *protocol.more_settings):
            for one in settings(cls):
                assert one.problem(one.default) is None, one
