"""Expressions of a grammar, for textworld on Python 3.13 and later.

textworld writes a rule's variables into ``locals()`` and calls ``eval``.  Since Python 3.13 ``locals()`` of a function
is a copy (PEP 667), so the expression would not see the variables.  The method here names them to ``eval``, which gives
what textworld gives on earlier versions.
"""

from __future__ import annotations

import functools
from typing import Any


@functools.cache
def install() -> None:
    """Replace the method in the textworld of this process.  Further calls do nothing."""
    from textworld.envs.pddl import textgen

    def derive(symbol: Any, context: Any = None) -> list[Any]:
        context = context or symbol.context
        # The method's own names win over variables, as they did in locals().
        names = {**context["variables"], "self": symbol, "context": context}
        return [textgen.TerminalSymbol(eval(symbol.expression, vars(textgen), names))]

    textgen.EvalSymbol.derive = derive
