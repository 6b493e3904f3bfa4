"""Makes the pictures of the docs: pages and terminal screens of real runs, and Prometheus' own page.

`make gallery` writes them; look at them before you commit them.
"""

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from contextlib import ExitStack, closing
from functools import partial
from pathlib import Path
from typing import Final, NamedTuple

from tests.support.browser import Browser
from tests.support.chat_example import talk
from tests.support.eventually import eventually
from tests.support.gallery_prometheus import draw
from tests.support.gallery_terminal import Screen, photograph
from tests.support.processes import Processes, mark_this_session
from tests.support.tools import require_tool
from tests.support.tree import ROOT

PICTURES: Final = ROOT / "docs" / "gallery"
WIDTH: Final = 1280
CHAT_WIDTH: Final = 960
CHAT_HEIGHT: Final = 440
PORT: Final = 3000
"""Of the sample API: the packaged benches have it as the address of their judge."""
LIVE_S: Final = 10.0
"""How long a page may take to be live."""
BENCH: Final = "examples/bench.config.yaml"
BASELINES: Final = "examples/copilot/data/evaluation_baselines.json"


class Page(NamedTuple):
    """A page of a report, and what is shown of it."""

    name: str
    """Of the file below the folder of pages."""
    height: int
    """Pixels."""
    state: str = ""
    """After the `#` of the address."""
    picture: str = ""
    """Its name, if it is not that of the page."""


PREPARATION: Final = f"""
set -e
proctor demo -q -o pages
proctor run examples/prompts.yaml --api-base $MODELS -q -o pages/prompts.html || true
proctor run {BENCH} --api-base $MODELS -m mistral/mistral-large-latest -q
proctor run {BENCH} --api-base $MODELS -m openai/gpt-4o-mini -q -o before.json || true
proctor run {BENCH} --api-base $MODELS -m anthropic/claude-haiku-4-5 -q -o after.json
proctor compare before.json after.json -q -o pages/compare.html
proctor run {BASELINES} --api-url $API --concurrency 8 -q || true
proctor run examples/turns.jsonl -q
"""
"""What the pages and screens show; runs in the folder of the pictures' files."""

PAGES: Final = (
    Page("bench", 796),
    Page("prompts", 940, "open=c2.2"),
    Page("compare", 900),
    Page("freeform", 1016),
    Page("evaluation_baselines", 866),
    Page("turns", 934),
)
"""Each ends below a row or a chart, so that no text is cut through."""

SERVED: Final = (
    Page("/", 640, picture="view-runs"),
    Page("/?name=Everyday+checks&", 800, picture="view-history"),
    Page("/run/RUN", 900, "#panel h2", "view-run"),
    Page("/compare?RUNS&view=cases&", 900, picture="view-grid"),
    Page("/run/RUN/review?by=ann&sample=20&", 640, picture="view-review"),
)
"""Pages of `proctor view`; RUN is the newest run of cases but one, whose first failure is opened, RUNS the
newest three."""

SCREENS: Final = (
    Screen("cases", f"proctor run {BENCH} --api-base $MODELS", 100),
    Screen("queries", f"proctor run {BASELINES} --api-url $API --concurrency 8"),
    Screen("turns", "proctor run examples/turns.jsonl"),
    Screen("prompts", "proctor run examples/prompts.yaml --api-base $MODELS", 100),
    Screen("compare", "proctor compare before.json after.json", 100),
    Screen("runs", "proctor runs list", 100),
)


def main() -> None:
    """Writes the pictures."""
    targets = [Path(name) for name in sys.argv[1:]] or [PICTURES]
    with tempfile.TemporaryDirectory(prefix="proctor-gallery-") as name, ExitStack() as stack:
        folder = Path(name)
        shutil.copytree(ROOT / "examples", folder / "examples")
        env = _environment(folder)
        command = ["proctor", "sample-api", "--port", str(PORT)]
        api = subprocess.Popen(command, env=env, stderr=subprocess.DEVNULL)
        stack.callback(api.wait)
        stack.callback(api.terminate)
        subprocess.run(["bash", "-c", PREPARATION], check=True, env=env, cwd=folder)
        for page in PAGES:
            _photograph_page(page, folder, targets[0])
        _photograph_served(folder, env, targets[0])
        _photograph_chat(folder, env, targets[0])
        for screen in SCREENS:
            photograph(screen, folder, env, targets[0] / f"terminal-{screen.name}.svg")
    if targets == [PICTURES]:
        draw(PICTURES / "prometheus.png")


def _environment(folder: Path) -> Mapping[str, str]:
    """Returns the environment of somebody at a terminal with colours, with a data folder of their own."""
    plain = {name: value for name, value in os.environ.items() if name not in {"CI", "NO_COLOR"}}
    own = {
        "PATH": f"{Path(sys.executable).parent}:{plain['PATH']}",
        "PROCTOR_CACHE_TTL_S": "1",  # screens show how long answers took, as those of a first run do
        "PROCTOR_DATA_DIR": str(folder / "data"),
        "TERM": "xterm-256color",
        "API": f"http://localhost:{PORT}",
        "MODELS": f"http://localhost:{PORT}/v1",
    }
    return plain | own


def _photograph_served(folder: Path, env: Mapping[str, str], target: Path) -> None:
    """Writes pictures of what `proctor view` serves, once the pages are live."""
    words = ["proctor", "runs", "list", "--kind", "cases", "--first", "3", "--json"]
    listed = subprocess.run(words, check=True, env=env, capture_output=True)
    runs = [each["run_id"] for each in json.loads(listed.stdout)["runs"]]
    marked = "&".join(f"run={run}" for run in runs)
    mark_this_session()
    processes, command = Processes(folder, os.environ), ["proctor", "view", "--no-open", "--port", "0"]
    with (
        subprocess.Popen(command, env=env, stdout=subprocess.PIPE, text=True) as server,
        closing(processes),
        closing(Browser(processes, folder / "served")) as browser,
    ):
        base, _, token = (server.stdout.readline() if server.stdout else "").strip().partition("/?")
        for page in SERVED:
            browser.look(width=WIDTH, height=page.height)
            place = page.name.replace("RUNS", marked).replace("RUN", runs[1])
            browser.open(f"{base}{place}{'' if '?' in place else '?'}{token}")
            eventually(partial(_is_there, browser), LIVE_S)
            if page.state:
                browser.click("a.item.is-f")
                eventually(partial(_has, browser, page.state), LIVE_S)
            picture = browser.screenshot(target / f"{page.picture}.png")
            sys.stdout.write(f"{picture}: {picture.stat().st_size >> 10} kB\n")
        server.terminate()


def _photograph_chat(folder: Path, env: Mapping[str, str], target: Path) -> None:
    """Writes the picture of a chat whose turns `proctor serve` decides."""
    place = f"http://localhost:{PORT}/v1"
    serve = ["proctor", "serve", "--port", "0", "--json", "--model", "sample", "--api-base", place]
    with (
        subprocess.Popen(serve, env=env, stdout=subprocess.PIPE) as service,
        subprocess.Popen(
            [sys.executable, "examples/chat_server.py", "0"],
            cwd=folder,
            stdin=service.stdout,
            stdout=subprocess.PIPE,
            text=True,
        ) as chat,
        closing(Processes(folder, os.environ)) as processes,
        closing(Browser(processes, folder / "chat")) as browser,
    ):
        browser.look(width=CHAT_WIDTH, height=CHAT_HEIGHT)
        talk(browser, (chat.stdout.readline() if chat.stdout else "").split()[2])
        browser.screenshot(target / "chat.png")
        chat.terminate()
        service.terminate()


def _is_there(browser: Browser) -> None:
    assert browser.texts("[data-link]") in ([], ["live"])
    assert not browser.texts("[data-unfinished]")


def _has(browser: Browser, selector: str) -> None:
    assert browser.texts(selector)


def _photograph_page(page: Page, folder: Path, target: Path) -> None:
    """Writes a picture of what a page shows first."""
    picture = target / f"{page.picture or page.name}.png"
    options = ["--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars"]
    options += [f"--window-size={WIDTH},{page.height}", f"--user-data-dir={folder / 'profile'}"]
    address = f"file://{folder / 'pages' / page.name}.html{'#' * bool(page.state)}{page.state}"
    chromium = require_tool("chromium", "google-chrome")
    subprocess.run(
        [chromium, *options, f"--screenshot={picture}", address], check=True, stderr=subprocess.DEVNULL
    )
    sys.stdout.write(f"{picture}: {picture.stat().st_size >> 10} kB\n")


if __name__ == "__main__":
    main()
