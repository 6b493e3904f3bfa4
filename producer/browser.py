"""Opens an address in a browser, where this session has a screen to show it on."""

import os
import sys
import webbrowser
from collections.abc import Mapping
from typing import Final

SCREENS: Final = ("DISPLAY", "WAYLAND_DISPLAY", "BROWSER")
"""Variables without which a browser on Linux would be one for terminals."""


def has_screen(environment: Mapping[str, str], platform: str) -> bool:
    """Returns whether a browser has a screen to open on.

    >>> has_screen({}, "linux"), has_screen({"DISPLAY": ":0"}, "linux"), has_screen({}, "darwin")
    (False, True, True)
    """
    return not platform.startswith("linux") or any(environment.get(name) for name in SCREENS)


def open_browser(address: str) -> bool:
    """Opens an address; returns whether there was a browser to do so."""
    return has_screen(os.environ, sys.platform) and webbrowser.open(address)
