"""Drives a real headless Chromium with Selenium and the installed ChromeDriver; nothing is downloaded.

The browser keeps a record of every message on its console and of every address that its pages asked for, so
that a test can say: no error, and nothing left this machine.
"""

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

from selenium.webdriver import ChromeOptions
from selenium.webdriver.chrome.remote_connection import ChromeRemoteConnection
from selenium.webdriver.common.by import By
from selenium.webdriver.common.proxy import Proxy, ProxyType
from selenium.webdriver.remote.client_config import ClientConfig
from selenium.webdriver.remote.webdriver import WebDriver

from tests.support.eventually import eventually
from tests.support.processes import Process, Processes
from tests.support.tools import require_tool

STARTED: Final = "was started successfully on port "
TAKEN: Final = "port not available"
"""It asks for a port of one protocol first, and may find that number taken in the other."""
TRIES: Final = 5
START_S: Final = 60.0
"""For a program of 300 MB that may have to be read from disk first."""
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
    assert TAKEN in process.output, process.output_text()
    return False


class Browser:
    """One Chromium with one page, gone when the test's processes end.

    Args:
        processes: starts ChromeDriver, and with it Chromium.
        profile: an empty folder for the browser's own files.
    """

    def __init__(self, processes: Processes, profile: Path) -> None:
        options = ChromeOptions()
        options.binary_location = require_tool("chromium", "google-chrome")
        for argument in (*ARGUMENTS, f"--user-data-dir={profile}"):
            options.add_argument(argument)
        options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
        driver = require_tool("chromedriver", package="chromium-driver")
        self._process = started(processes, driver)
        port = self._process.output.split(STARTED)[1].split(".", maxsplit=1)[0]
        address = f"http://127.0.0.1:{port}"
        direct = Proxy({"proxyType": ProxyType.DIRECT})  # whatever the environment says
        config = ClientConfig(remote_server_addr=address, proxy=direct, timeout=60)
        connection = ChromeRemoteConnection(remote_server_addr=address, client_config=config)
        self._driver = WebDriver(command_executor=connection, options=options)
        self._requests: list[str] = []
        self._complaints: list[str] = []
        self.open("about:blank")
        self._log("performance")  # what the browser's own start page asked for

    def _log(self, kind: str) -> list[dict[str, Any]]:
        """What a log of the browser holds since it was read last."""
        entries: list[dict[str, Any]] = self._driver.execute("getLog", {"type": kind})["value"]
        return entries

    def open(self, url: str) -> None:
        """Loads a page and waits for its `load` event."""
        self._driver.get(url)

    @contextmanager
    def second_tab(self) -> Iterator[Callable[[], None]]:
        """Shows another tab while the block runs; yields a function that shows the tab that is hidden."""
        first = self._driver.current_window_handle
        self._driver.switch_to.new_window("tab")
        second = self._driver.current_window_handle

        def turn() -> None:
            self._driver.switch_to.window(first if self._driver.current_window_handle == second else second)

        try:
            yield turn
        finally:
            self._driver.switch_to.window(second)
            self._driver.close()
            self._driver.switch_to.window(first)

    def evaluate(self, expression: str) -> Any:
        """Value of a JavaScript expression in the page."""
        return self._driver.execute_script(f"return {expression};")

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
        element = self._driver.find_element(By.CSS_SELECTOR, selector)
        element.clear()
        element.send_keys(text)

    def click(self, selector: str) -> None:
        """Clicks the first element that a CSS selector finds.

        Where scrolling brings rows into sight that are laid out only then, the element may move away under
        the pointer, and a page that renews its rows puts another element in its place. ChromeDriver notices
        both; the element is looked for and clicked again.
        """
        eventually(lambda: self._driver.find_element(By.CSS_SELECTOR, selector).click(), CLICK_BUDGET_S)

    def devtools(self, command: str, **parameters: Any) -> Any:
        """One command of the DevTools protocol."""
        return self._driver.execute("executeCdpCommand", {"cmd": command, "params": parameters})["value"]

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
            self._driver.execute_async_script(drawn)
        path.write_bytes(self._driver.get_screenshot_as_png())
        return path

    def complaints(self) -> list[str]:
        """Warnings and errors on the console so far, uncaught exceptions and failed loads included."""
        for entry in self._log("browser"):
            if entry["level"] in {"SEVERE", "WARNING"}:
                self._complaints.append(f"{entry['level']}: {entry['message']}")
        return list(self._complaints)

    def forgive(self) -> None:
        """Leaves the page, and forgets what it complained of and asked for."""
        self.open("about:blank")
        self.complaints()
        self._complaints.clear()
        self.requests()
        self._requests.clear()

    def requests(self) -> list[str]:
        """Every address that the pages asked for so far, scripts, fonts and sockets included."""
        for entry in self._log("performance"):
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
        self._driver.quit()
        self._process.stop()
