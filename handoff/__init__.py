"""Checkpoint handoff: where does an agent checkpoint's gain come from?

One checkpoint (the *reacher*) acts until the environment verifies that the state lies on the frontier F_D,
exactly D admissible actions from success.  That state is cloned, and every *solver* checkpoint goes on from the
same clone.  See ``README.md``.

The public names below are imported when they are used, so ``import handoff`` takes a few milliseconds.
"""

from importlib import import_module as _import_module
from pathlib import Path as _Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from handoff.environment import Environment
    from handoff.policies.policy import Policy, Request
    from handoff.protocols.api import audit, estimate, load, run
    from handoff.records import Decision, Record, Task

__version__ = "0.1.0"

# In a source tree ``envs/``, ``protocols/`` and ``artifacts/`` lie beside this package, and an installation puts
# them inside it.  Without this, code run from the root of an uninstalled tree would find the package but not them.
_root = _Path(__file__).resolve().parent.parent
if (_root / "pyproject.toml").is_file() and (_root / "envs" / "alfworld").is_dir():
    __path__.append(str(_root))
del _root

#: Public name -> the module that defines it.
_PUBLIC = {
    "Environment": "handoff.environment",
    "Task": "handoff.records",
    "Record": "handoff.records",
    "Decision": "handoff.records",
    "Policy": "handoff.policies.policy",
    "Request": "handoff.policies.policy",
    "run": "handoff.protocols.api",
    "load": "handoff.protocols.api",
    "estimate": "handoff.protocols.api",
    "audit": "handoff.protocols.api",
}

__all__ = ["Decision", "Environment", "Policy", "Record", "Request", "Task", "audit", "estimate", "load", "run"]


def __getattr__(name: str) -> object:
    if name not in _PUBLIC:
        raise AttributeError(f"module 'handoff' has no attribute {name!r}")
    value: object = getattr(_import_module(_PUBLIC[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_PUBLIC})
