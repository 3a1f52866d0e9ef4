"""Calls as text and as JSON: parsed to literals, written again, and nothing evaluated on the way."""

from __future__ import annotations

import ast
import json
import math
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from handoff.envs.bfcl.calls import BenchmarkCall, NotACall, call_of, parse_call, parse_calls

HOSTILE = [
    "__import__('os').system('touch /tmp/harm')",
    "os.system('touch /tmp/harm')",
    "cd.__class__('x')",
    "cd.__func__.__globals__['os']",
    "GorillaFileSystem.cd(folder='a')",
    "__class__()",
    "cd(folder=__import__('os').getcwd())",
    "cd(folder=open('/etc/passwd').read())",
    "cd(folder=[x for x in ().__class__.__bases__])",
    "cd(folder=(lambda: 1)())",
    "cd(folder=f'{1 + 1}')",
    "cd(folder='a' * 10**9)",
    "cd(folder=10**10**10)",
    "cd(**{'folder': 'a'})",
    "cd(*['a'])",
    "cd(folder='a', folder='b')",
    "cd(folder='a') or cd(folder='b')",
    "cd(folder='a'); ls()",
    "(cd)(folder='a')(1)",
    "cd(folder=b'a')",
    "cd(folder={'a', 'b'})",
    "cd(folder={1j: 2})",
    "cd(folder={(1, 2): 3})",
    "cd(folder=1e999)",
    "cd(folder=-1e999)",
    "cd(folder=nan)",
    "cd(folder=...)",
    "cd(folder=" + "9" * 301 + ")",
    "cd(folder=" + "9" * 5000 + ")",
    "cd(folder=" + "[" * 30 + "]" * 30 + ")",
    "cd(folder=" + "[" * 5000 + "]" * 5000 + ")",
    "cd(folder=" + "-" * 20000 + "1)",
    "cd(folder=1" + "+1" * 20000 + ")",
    "a" + ".a" * 20000 + "()",
    "cd(folder='" + "a" * 100_001 + "')",
    "cd(_folder='a')",
    "power(base=2, exponent=10**9)",
    "power(2, 1000000000)",
    "power(exponent=1000000000, base=2)",
    "power(True + 1, 1000000000)",
    "round_number(5, -1000000000)",
    "round_number(decimal_places=-1000000000, number=5)",
    "logarithm(2, 10, 1000000000)",
    "logarithm(value=2, base=10, precision=1e9)",
    "logarithm(value=2, base=10, precision='1000000000')",
    "logarithm(value='1e1000000000', base=10, precision=5)",
    "square_root(number=2, precision=1000000000)",
    "",
    "Done.",
    "cd",
    "cd(",
    "cd(folder='a\x00')",
    "\ud800()",
]


@pytest.mark.parametrize("text", HOSTILE, ids=range(len(HOSTILE)))
def test_a_text_that_is_no_literal_call_is_refused_with_words(text: str) -> None:
    with pytest.raises(NotACall) as error:
        parse_call(text)
    assert str(error.value)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("__init__", {}),
        ("cd.x", {"folder": "a"}),
        ("cd(folder='a') or cd", {"folder": "a"}),
        ("class", {}),
        ("ﬁnd", {}),
        ("", {}),
        ("cd", {"folder='a', x": 1}),
        ("cd", {"class": 1}),
        ("cd", {"__self__": 1}),
        ("cd", {"ﬁle": 1}),
        ("cd", {"folder": math.nan}),
        ("cd", {"folder": math.inf}),
        ("cd", {"folder": object()}),
        ("power", {"exponent": 10**9, "base": 2}),
    ],
)
def test_json_that_python_would_read_otherwise_is_refused(name: str, arguments: dict[str, object]) -> None:
    with pytest.raises(NotACall):
        call_of(name, arguments)


def test_results_of_usual_size_are_allowed() -> None:
    for text in (
        "power(base=2, exponent=100)",
        "power(base=2.5, exponent=1000)",
        "round_number(number=3.14159, decimal_places=2)",
        "logarithm(value='8', base=2, precision=10)",
        "square_root(number=2, precision=50)",
    ):
        assert parse_call(text).text() == text


values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(10**299), 10**299)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


@given(st.dictionaries(st.from_regex(r"[a-z]{1,6}[0-9]", fullmatch=True), values, max_size=3))
def test_a_written_call_reads_back_as_the_same_call(arguments: dict[str, object]) -> None:
    text = call_of("tool", arguments).text()
    assert parse_call(text) == BenchmarkCall("tool", (), arguments)
    # Python reads it in the same way, without the parser under test.
    tree = ast.parse(text, mode="eval").body
    assert isinstance(tree, ast.Call)
    assert {one.arg: ast.literal_eval(one.value) for one in tree.keywords} == arguments


@given(values)
def test_the_benchmark_finds_one_name_before_a_parenthesis(value: object) -> None:
    # The pattern by which the benchmark rewrites names, as its source states it.
    assert re.findall(r"\b([a-zA-Z_]\w*)\s*(?=\()", call_of("tool", {"text": value}).text()) == ["tool"]


def test_positional_arguments_and_tuples_are_written_as_literals() -> None:
    assert parse_call("mean( [1,2.0] )").text() == "mean([1, 2.0])"
    assert parse_call("f((1,), ())") == parse_call(parse_call("f((1,), ())").text())
    assert parse_call("f((1, 2), x={'a (b)': (3,)})") == BenchmarkCall("f", ((1, 2),), {"x": {"a (b)": (3,)}})


def test_a_list_of_calls_is_read_call_by_call() -> None:
    first, second, third = parse_calls("[cd(folder='a'), ls(), os.system('x')]")
    assert (first, second) == (BenchmarkCall("cd", (), {"folder": "a"}), BenchmarkCall("ls"))
    assert isinstance(third, NotACall)
    assert parse_calls("I have moved the file.") == parse_calls("['a']") == parse_calls("[]") == []


def test_json_and_text_of_one_call_are_equal() -> None:
    arguments = json.loads('{"a": 1, "b": [1.5, null, true], "c": {"d": "x(y) \\\\ \\" \\n"}}')
    assert parse_call(call_of("tool", arguments).text()) == call_of("tool", arguments)
