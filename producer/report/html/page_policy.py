"""What pages may load: their own styles and scripts, named by what is in them, and nothing else."""

from base64 import b64encode
from collections.abc import Sequence
from hashlib import sha256
from typing import Final

from producer.report.html.rendering import file_text

NO_SCRIPT: Final = ".tools,.reasons,.keyhint{display:none!important}"
"""Hides what would do nothing."""


def policy_of(folders: Sequence[str], *, has_images: bool, has_form: bool = False) -> str:
    """Returns the content security policy of pages.

    Args:
        folders: of their styles and scripts, which alone may be used.
        has_images: whether images stand in them.
        has_form: whether they send a form to their server.
    """
    styles = dict.fromkeys([*map(_digest, map(style_of, folders)), _digest(NO_SCRIPT)])
    scripts = dict.fromkeys(_digest(script) for folder in folders for script in scripts_of(folder) if script)
    policy = (
        f"default-src 'none'; style-src {' '.join(styles)}; "
        f"script-src {' '.join(scripts)}; base-uri 'none'; "
        f"form-action '{'self' if has_form else 'none'}'"
    )
    return f"{policy}; img-src data:" if has_images else policy


def style_of(folder: str) -> str:
    """The style of a page: that of all pages, and its own."""
    return file_text("report/html/viewer.css") + file_text(f"{folder}/page.css")


def scripts_of(folder: str) -> tuple[str, str]:
    """The scripts of a page: that of all pages, and its own."""
    return file_text("report/html/viewer.js"), file_text(f"{folder}/page.js") if folder else ""


def _digest(text: str) -> str:
    """Names a style or a script as a content security policy does: by what is in it."""
    return f"'sha256-{b64encode(sha256(text.encode()).digest()).decode()}'"
