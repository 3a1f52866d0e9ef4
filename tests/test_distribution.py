"""What is published: a wheel that builds in silence with all its data, and a source distribution whose tests run."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest
from kit.installed import ROOT, require_wheels

#: Folders of the source tree and where a wheel has them.
PLACES = {
    "handoff": "handoff",
    "envs": "handoff/envs",
    "protocols": "handoff/protocols",
    "artifacts": "handoff/artifacts",
}
BUILD = "import sys; from setuptools import build_meta; getattr(build_meta, sys.argv[1])(sys.argv[2])"


def copied(folder: Path) -> Path:
    """The source tree without what is built and found in it."""
    everywhere = shutil.ignore_patterns("__pycache__", "*.egg-info", ".*")

    def ignored(place: str, names: list[str]) -> set[str]:
        at_root = {"build", "dist", "shared", "runs"} if Path(place) == ROOT else set()
        return everywhere(place, names) | at_root

    shutil.copytree(ROOT, folder, ignore=ignored)
    return folder


def build(kind: str, tree: Path, out: Path) -> tuple[Path, str]:
    """The file that setuptools builds, and all that it prints."""
    require_wheels()
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONDONTWRITEBYTECODE"}
    done = subprocess.run(
        [sys.executable, "-c", BUILD, f"build_{kind}", str(out)],
        cwd=tree,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stdout
    (file,) = out.iterdir()
    return file, done.stdout


@pytest.fixture(scope="module")
def sdist(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The unpacked source distribution."""
    folder = tmp_path_factory.mktemp("sdist")
    file, log = build("sdist", copied(folder / "tree"), folder / "out")
    assert "warning: no files found" not in log
    with tarfile.open(file) as archive:
        archive.extractall(folder / "unpacked", filter="data")
    (root,) = (folder / "unpacked").iterdir()
    return root


def test_a_wheel_built_from_the_source_distribution_is_silent_and_holds_every_file_of_the_packages(
    sdist: Path, tmp_path: Path
) -> None:
    wheel, log = build("wheel", copied_from(sdist, tmp_path / "tree"), tmp_path / "out")
    assert "absent from" not in log
    warnings = [line for line in log.splitlines() if "warning" in line.lower()]
    # An exclusion that has nothing to exclude.
    assert [line for line in warnings if "no previously-included files" not in line] == []
    names = set(zipfile.ZipFile(wheel).namelist())
    wanted = {
        f"{place}/{path.relative_to(ROOT / folder).as_posix()}"
        for folder, place in PLACES.items()
        for path in (ROOT / folder).rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    assert wanted - names == set()
    assert {name for name in names if ".dist-info/" not in name} - wanted == set()


def copied_from(tree: Path, folder: Path) -> Path:
    shutil.copytree(tree, folder)
    return folder


def test_the_source_distribution_holds_tests_with_their_helpers_documents_and_examples(sdist: Path) -> None:
    for folder in ("benchmarks", "docs", "examples", "tests"):
        ours = {
            path.relative_to(ROOT).as_posix()
            for path in (ROOT / folder).rglob("*")
            if path.is_file() and not {"__pycache__", "build"} & {*path.parts} and ".egg-info" not in path.as_posix()
        }
        theirs = {path.relative_to(sdist).as_posix() for path in (sdist / folder).rglob("*") if path.is_file()}
        assert ours - theirs == set()
    assert (sdist / "CHANGELOG.md").is_file()


def test_tests_of_the_unpacked_source_distribution_run_and_pass(sdist: Path) -> None:
    files = ["tests/test_text.py", "tests/runs/test_store.py"]
    environment = {key: value for key, value in os.environ.items() if not key.startswith("PYTEST")}
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *files],
        cwd=sdist,
        env={**environment, "PYTHONPATH": str(sdist)},
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert " passed" in done.stdout
