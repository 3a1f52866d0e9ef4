"""The packages of the toolkit: who imports whom, what a wheel holds, and names that occur once.

Imports are read from the source, those inside functions included and those for type checkers left out.  Every test
compares with an empty list, so a failure names each offence.
"""

from __future__ import annotations

import ast
import sys
import tomllib
from collections import Counter, defaultdict
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import attrs
import pytest

ROOT = Path(__file__).resolve().parents[1]
CONFIGURATION = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["setuptools"]
#: Folder of each package that is not below another one, as the wheel is built.
FOLDERS: dict[str, str] = CONFIGURATION["package-dir"]

#: From top to bottom: a module imports modules of its own layer and of the layers below.  The parts of one layer are
#: packages, or modules of the root.
LAYERS = (
    {"__main__"},
    {"cli"},
    {"report"},
    {"protocols", "testing"},
    {"auditing", "conformance"},
    {"runs"},
    {"episodes"},
    {"policies", "guard", "registry", "frontier", "replay", "plugin"},
    {"environment", "messages"},
    {"records"},
    {"seeds", "settings", "text", "files", "progress", "signals", "children"},
    {"canonical", "errors"},
)
#: All that the packages of statistics import: they work on any table.
STATISTICS = {
    "estimation": {"errors", "canonical", "files", "text", "seeds", "settings"},
    "passk": {"errors", "canonical", "files", "text", "seeds", "settings", "estimation"},
    "planning": {"errors", "canonical", "files", "text", "seeds", "settings", "estimation"},
}
#: These layers may import the packages of statistics.
USERS_OF_STATISTICS = {"cli", "report", "protocols"}
#: All that an environment imports: the vocabulary of the root.  ``plugin`` holds the parts of a plug-in's commands.
VOCABULARY = {
    "canonical", "children", "environment", "errors", "files", "frontier", "messages", "plugin", "progress", "records",
    "replay", "seeds", "settings", "text",
}  # fmt: skip
#: All that each of these parts imports of the others: less than its layer may.
ONLY = {
    **STATISTICS,
    "envs": VOCABULARY,
    "conformance": (VOCABULARY - {"plugin"}) | {"guard", "registry", "signals"},
    "testing": {"conformance", "environment"},
    "plugin": {"children", "progress", "text", "errors"},
    **{part: {"environment", "records", "seeds", "canonical", "errors"} for part in ("frontier", "replay")},
}
#: The libraries that a part of the root may import beside the standard library.
LIBRARIES: dict[str, set[str]] = {"plugin": {"click"}, "testing": set()}

#: Offences that are not mended yet.
KNOWN: set[str] = set()


@attrs.frozen
class Import:
    """One name that a module imports from another module of the toolkit."""

    importer: str
    module: str
    #: The imported name, or "" for the module.
    name: str = ""

    def __str__(self) -> str:
        return f"{self.importer} imports {self.module}{f': {self.name}' if self.name else ''}"


@cache
def modules() -> dict[str, Path]:
    """Every module of the toolkit by its name in an installation."""
    paths = {}
    for package, folder in FOLDERS.items():
        for path in (ROOT / folder).rglob("*.py"):
            parts = path.relative_to(ROOT / folder).with_suffix("").parts
            paths[".".join((package, *(part for part in parts if part != "__init__")))] = path
    return paths


@cache
def tree(module: str) -> ast.Module:
    return ast.parse(modules()[module].read_text(encoding="utf-8"))


def without_types(node: ast.AST) -> Iterator[ast.AST]:
    """All nodes below, without the blocks that only a type checker reads."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.If) and "TYPE_CHECKING" in ast.unparse(child.test):
            continue
        yield child
        yield from without_types(child)


@cache
def imports() -> list[Import]:
    every = []
    for importer in modules():
        for node in without_types(tree(importer)):
            if isinstance(node, ast.Import):
                every += [Import(importer, alias.name) for alias in node.names if alias.name in modules()]
            elif isinstance(node, ast.ImportFrom):
                assert node.level == 0, f"{importer} has a relative import"
                for alias in node.names:
                    if f"{node.module}.{alias.name}" in modules():
                        every.append(Import(importer, f"{node.module}.{alias.name}"))
                    elif node.module in modules():
                        every.append(Import(importer, str(node.module), alias.name))
    return every


def part(module: str) -> str:
    """The package below ``handoff``, or the module of the root; "handoff" itself for its version and its path."""
    names = module.split(".")
    return names[1] if len(names) > 1 else names[0]


def offences(*found: str) -> list[str]:
    return sorted(set(found) - KNOWN)


def test_the_source_is_read() -> None:
    assert {part(module) for module in modules()} > {"cli", "envs", "errors", "handoff", "protocols"}
    assert len(imports()) > 500


def test_every_part_has_its_place() -> None:
    placed = Counter(name for layer in LAYERS for name in layer) + Counter(STATISTICS.keys())
    assert set(placed.values()) == {1}
    assert {part(module) for module in modules()} - {"handoff", "envs", "artifacts"} == set(placed)


def test_imports_lead_down() -> None:
    level = {name: number for number, layer in enumerate(LAYERS) for name in layer}
    wrong = []
    for one in imports():
        importer, module = part(one.importer), part(one.module)
        if importer == module or module == "handoff" or importer == "handoff":
            continue
        if importer in ONLY:
            allowed = module in ONLY[importer]
        elif module in STATISTICS:
            allowed = importer in USERS_OF_STATISTICS
        else:
            allowed = module != "envs" and level[importer] <= level[module]
        if not allowed:
            wrong.append(f"{one.importer} imports {one.module}")
    assert offences(*wrong) == []


@pytest.mark.parametrize("name", sorted(LIBRARIES))
def test_a_part_that_plug_ins_use_imports_no_heavy_library(name: str) -> None:
    wrong = []
    for node in without_types(tree(f"handoff.{name}")):
        names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
        names += [str(node.module)] if isinstance(node, ast.ImportFrom) else []
        tops = {name.split(".")[0] for name in names} - sys.stdlib_module_names - {"handoff"}
        wrong += [f"handoff.{name} imports {top}" for top in tops - LIBRARIES[name]]
    assert offences(*wrong) == []


def test_an_environment_imports_no_other_environment() -> None:
    wrong = []
    for one in imports():
        ours, theirs = one.importer.split(".")[1:3], one.module.split(".")[1:3]
        is_package = modules().get(".".join(("handoff", *theirs)), Path()).name == "__init__.py"
        if ours[:1] == theirs[:1] == ["envs"] and ours != theirs and is_package:
            wrong.append(str(one))
    assert offences(*wrong) == []


def test_the_root_module_imports_nothing_of_the_toolkit() -> None:
    assert offences(*(str(one) for one in imports() if one.importer == "handoff")) == []


def test_no_modules_import_each_other_in_a_circle() -> None:
    arrows = {(one.importer, one.module) for one in imports()}
    while True:  # an arrow on a circle starts where another one ends, and ends where another one starts
        starts, ends = ({arrow[side] for arrow in arrows} for side in (0, 1))
        inner = {(start, end) for start, end in arrows if start in ends and end in starts}
        if inner == arrows:
            break
        arrows = inner
    assert offences(*(f"{start} and {end} are on a circle" for start, end in arrows)) == []


@pytest.mark.parametrize("package", sorted(FOLDERS))
def test_the_wheel_holds_every_package(package: str) -> None:
    listed = {name for name in CONFIGURATION["packages"] if owner(name) == package}
    folder = ROOT / FOLDERS[package]
    packages = {".".join((package, *path.parent.relative_to(folder).parts)) for path in folder.rglob("__init__.py")} | (
        {package} if package == "handoff.artifacts" else set()
    )
    assert sorted(listed ^ packages) == []


def owner(package: str) -> str:
    """The longest listed folder that the package lies in."""
    return max((name for name in FOLDERS if f"{package}.".startswith(f"{name}.")), key=len)


def test_no_private_name_is_imported_from_another_module() -> None:
    private = [str(one) for one in imports() for name in (*one.module.split("."), one.name) if is_private(name)]
    for module in modules():
        known = {one.module.rpartition(".")[2] for one in imports() if one.importer == module and not one.name}
        for node in ast.walk(tree(module)):
            if isinstance(node, ast.Attribute) and is_private(node.attr) and ast.unparse(node.value) in known:
                private.append(f"{module} uses {ast.unparse(node)}")
    assert offences(*private) == []


def is_private(name: str) -> bool:
    return name.startswith("_") and not name.endswith("__")


def test_no_two_classes_have_one_name() -> None:
    homes = defaultdict(list)
    for module in modules():
        for node in ast.walk(tree(module)):
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                homes[node.name].append(module)
    twice = [f"{name} is in {' and '.join(sorted(places))}" for name, places in homes.items() if len(places) > 1]
    assert offences(*twice) == []


def test_the_root_stays_small() -> None:
    root = sorted(path.stem for path in (ROOT / "handoff").glob("*.py"))
    assert offences(*([f"the root holds {len(root)} modules"] if len(root) > 18 else [])) == [], root
