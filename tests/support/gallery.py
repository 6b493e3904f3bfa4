"""Makes the pictures of the docs: photographs the demo's pages, and Prometheus' own, in headless Chromium.

`make gallery` writes them; look at them before you commit them.
"""

import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Final

from tests.support.gallery_prometheus import draw
from tests.support.tools import require_tool
from tests.support.tree import ROOT

PAGES: Final = {"turns": 1050, "evaluation_baselines": 1000, "bench": 1500, "freeform": 1250}
"""Pages of the demo, and how much of each is shown, in pixels."""
WIDTH: Final = 1100
PICTURES: Final = ROOT / "docs" / "gallery"


def main() -> None:
    """Writes the pictures."""
    chromium = require_tool("chromium", "google-chrome")
    with tempfile.TemporaryDirectory(prefix="proctor-gallery-") as name:
        folder = Path(name)
        subprocess.run([sys.executable, "-P", "-m", "producer", "demo", "-q", "-o", folder], check=True)
        for page, height in PAGES.items():
            target = PICTURES / f"{page}.png"
            options = ["--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars"]
            options += [f"--window-size={WIDTH},{height}", f"--user-data-dir={folder / 'profile'}"]
            subprocess.run(
                [chromium, *options, f"--screenshot={target}", f"file://{folder / page}.html"],
                check=True,
                stderr=subprocess.DEVNULL,
            )
            sys.stdout.write(f"{target}: {target.stat().st_size >> 10} kB\n")
    draw(PICTURES / "prometheus.png")


if __name__ == "__main__":
    main()
