"""Checkpoint handoff: where does an agent checkpoint's gain come from?

One checkpoint (the *reacher*) acts until the environment verifies that the state lies on the frontier F_D,
exactly D admissible actions from success.  That state is cloned, and every *solver* checkpoint goes on from the
same clone.  See ``README.md``.
"""

from __future__ import annotations

from pathlib import Path as _Path

__version__ = "0.1.0"

# In a source tree ``envs/``, ``protocols/`` and ``artifacts/`` stand beside this package, and an installation puts
# them inside it.  Without this, code run from the root of an uninstalled tree would find the package but not them.
_root = _Path(__file__).resolve().parent.parent
if (_root / "pyproject.toml").is_file() and (_root / "envs" / "alfworld").is_dir():
    __path__.append(str(_root))
del _root
