"""Make the picture of a run's page that the README shows.

    handoff run alfworld --cross base,rl --depth 4 --out runs/picture
    python docs/make_picture.py runs/picture            # writes docs/page.png

Needs ``chromium`` on PATH.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

from handoff.protocols.registry import protocol_of_run
from handoff.report.report import Options

#: Width, and the height at which the headline cards and the first figure are in the picture.
SIZE = (1200, 648)
FLAGS = ("--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--log-level=3")


def make_picture(run: Path, picture: Path) -> None:
    """Render the page of ``run`` and photograph its top."""
    protocol = protocol_of_run(run)
    report, loaded = protocol.report(), protocol.load(run)
    with tempfile.TemporaryDirectory() as folder:
        page, _ = report.write(loaded, report.document(loaded, Options()), Path(folder) / report.page_name)
        size = f"--window-size={SIZE[0]},{SIZE[1]}"
        subprocess.run(["chromium", *FLAGS, size, f"--screenshot={picture}", page.as_uri()], check=True, timeout=120)


if __name__ == "__main__":
    make_picture(Path(sys.argv[1]), Path(__file__).with_name("page.png"))
