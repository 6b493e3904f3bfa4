"""Drives a real headless Chromium through ChromeDriver's HTTP interface with the standard library alone.

The browser keeps a record of every message on its console and of every address that its pages asked for, so
that a test can say: no error, and nothing left this machine.
"""

import base64
import json
from collections.abc import Mapping
from functools import partial
from http.client import HTTPConnection
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

from tests.support.eventually import eventually
from tests.support.processes import Process, Processes
from tests.support.tools import require_tool

STARTED: Final = "was started successfully on port "
TAKEN: Final = "port not available"
"""It asks for a port of one protocol first, and may find that number taken in the other."""
TRIES: Final = 5
START_S: Final = 60.0
"""For a program of 300 MB that may have to be read from disk first."""
ELEMENT: Final = "element-6066-11e4-a52e-4f735466cecf"
"""The key under which WebDriver hands out a reference to an element."""
LOOPBACK: Final = frozenset({"127.0.0.1", "localhost", "[::1]", "::1"})
LOCAL_SCHEMES: Final = frozenset({"data", "blob", "about", "chrome", "file"})
"""Addresses that need no network."""

ARGUMENTS: Final = (
    "--headless",
    "--no-sandbox",  # tests run as root in CI, where Chromium's own sandbox refuses to start
    "--disable-gpu",
    "--disable-quic",
    "--disable-dev-shm-usage",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--window-size=1600,1000",
    # Even a page that asks for a stranger's host gets no further than this machine.
    "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1, EXCLUDE localhost",
)

CLICK_BUDGET_S: Final = 5.0
"""How long an element that moves away is looked for."""


class BrowserError(Exception):
    """ChromeDriver refused what was asked; the message is its own."""


def started(processes: Processes, driver: str) -> Process:
    """Starts ChromeDriver on a free port; again where somebody has that number for the other protocol."""
    process = processes.start(driver, "--port=0")
    for _ in range(TRIES):
        if eventually(partial(_listens, process), START_S):
            break
        process = processes.start(driver, "--port=0")
    process.wait_for(STARTED, START_S)
    return process


def _listens(process: Process) -> bool:
    """Whether it listens, or else has ended for want of a port; an assertion fails while neither is known."""
    if STARTED in process.output:
        return True
    assert TAKEN in process.output, process.said()
    return False


class Browser:
    """One Chromium with one page, gone when the test's processes end.

    Args:
        processes: starts ChromeDriver, and with it Chromium.
        profile: an empty folder for the browser's own files.
    """

    def __init__(self, processes: Processes, profile: Path) -> None:
        chromium = require_tool("chromium", "google-chrome")
        driver = require_tool("chromedriver", package="chromium-driver")
        self._process = started(processes, driver)
        port = self._process.output.split(STARTED)[1].split(".", maxsplit=1)[0]
        self._driver = HTTPConnection("127.0.0.1", int(port), timeout=60)
        self._requests: list[str] = []
        self._complaints: list[str] = []
        options = {"binary": chromium, "args": [*ARGUMENTS, f"--user-data-dir={profile}"]}
        logs = {"browser": "ALL", "performance": "ALL"}
        wanted = {"browserName": "chrome", "goog:chromeOptions": options, "goog:loggingPrefs": logs}
        self._session = ""
        answer = self._call("POST", "/session", {"capabilities": {"alwaysMatch": wanted}})
        self._session = f"/session/{answer['sessionId']}"
        self.open("about:blank")
        self._call("POST", "/se/log", {"type": "performance"})  # what the browser's own start page asked for

    def _call(self, method: str, path: str, body: Mapping[str, Any] | None = None) -> Any:
        """One WebDriver command; returns its value."""
        text = None if body is None else json.dumps(body)
        self._driver.request(method, self._session + path, text, {"Content-Type": "application/json"})
        answer = json.loads(self._driver.getresponse().read())["value"]
        if isinstance(answer, dict) and "error" in answer:
            raise BrowserError(f"{answer['error']}: {answer['message']}")
        return answer

    def open(self, url: str) -> None:
        """Loads a page and waits for its `load` event."""
        self._call("POST", "/url", {"url": url})

    def evaluate(self, expression: str) -> Any:
        """Value of a JavaScript expression in the page."""
        return self._call("POST", "/execute/sync", {"script": f"return {expression};", "args": []})

    def texts(self, selector: str) -> list[str]:
        """Visible text of each element that a CSS selector finds."""
        query = json.dumps(selector)
        found = self.evaluate(f"Array.from(document.querySelectorAll({query}), (each) => each.innerText)")
        return [" ".join(str(text).split()) for text in found]

    def contents(self, selector: str) -> list[str]:
        """Text of each element that a CSS selector finds, whether it is in sight or not."""
        query = json.dumps(selector)
        found = self.evaluate(f"Array.from(document.querySelectorAll({query}), (each) => each.textContent)")
        return [" ".join(str(text).split()) for text in found]

    def type(self, selector: str, text: str) -> None:
        """Replaces what a field holds, key by key, as a person does."""
        element = self._find(selector)
        self._call("POST", f"{element}/clear", {})
        self._call("POST", f"{element}/value", {"text": text})

    def click(self, selector: str) -> None:
        """Clicks the first element that a CSS selector finds.

        Where scrolling brings rows into sight that are laid out only then, the element may move away under
        the pointer, and a page that renews its rows puts another element in its place. ChromeDriver notices
        both; the element is looked for and clicked again.
        """
        eventually(lambda: self._call("POST", f"{self._find(selector)}/click", {}), CLICK_BUDGET_S)

    def _find(self, selector: str) -> str:
        found = self._call("POST", "/element", {"using": "css selector", "value": selector})
        return f"/element/{found[ELEMENT]}"

    def devtools(self, command: str, **parameters: Any) -> Any:
        """One command of the DevTools protocol."""
        return self._call("POST", "/goog/cdp/execute", {"cmd": command, "params": parameters})

    def look(self, *, width: int = 1280, height: int = 900, theme: str = "light") -> None:
        """Shows pages at a size, to a reader who prefers light or dark ones."""
        size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}
        self.devtools("Emulation.setDeviceMetricsOverride", **size)
        scheme = {"name": "prefers-color-scheme", "value": theme}
        self.devtools("Emulation.setEmulatedMedia", features=[scheme])

    def run_scripts(self, *, allowed: bool) -> None:
        """Lets pages that are loaded from now on run their scripts, or not."""
        self.devtools("Emulation.setScriptExecutionDisabled", value=not allowed)

    def screenshot(self, path: Path) -> Path:
        """Writes what the page looks like once it has been drawn, as a PNG."""
        drawn = "requestAnimationFrame(() => requestAnimationFrame(() => setTimeout(arguments[0])))"
        for _ in range(3):  # what comes into sight is laid out a frame later, and what is in it another one
            self._call("POST", "/execute/async", {"script": drawn, "args": []})
        path.write_bytes(base64.b64decode(self._call("GET", "/screenshot")))
        return path

    def complaints(self) -> list[str]:
        """Warnings and errors on the console so far, uncaught exceptions and failed loads included."""
        for entry in self._call("POST", "/se/log", {"type": "browser"}):
            if entry["level"] in {"SEVERE", "WARNING"}:
                self._complaints.append(f"{entry['level']}: {entry['message']}")
        return list(self._complaints)

    def requests(self) -> list[str]:
        """Every address that the pages asked for so far, scripts, fonts and sockets included."""
        for entry in self._call("POST", "/se/log", {"type": "performance"}):
            event = json.loads(entry["message"])["message"]
            if event["method"] == "Network.requestWillBeSent":
                self._requests.append(event["params"]["request"]["url"])
            elif event["method"] == "Network.webSocketCreated":
                self._requests.append(event["params"]["url"])
        return list(self._requests)

    def strangers(self) -> list[str]:
        """Addresses beyond this machine that the pages asked for."""
        parts = [urlsplit(url) for url in self.requests()]
        return [
            each.geturl()
            for each in parts
            if each.scheme not in LOCAL_SCHEMES and each.hostname not in LOOPBACK
        ]

    def close(self) -> None:
        """Ends the browser, then its driver."""
        self._call("DELETE", "")
        self._driver.close()
        self._process.stop()
