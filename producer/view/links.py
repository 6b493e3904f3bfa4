"""The addresses of pages: each carries the token of its server, so that no cookie is needed."""

import os
from collections.abc import Sequence
from pathlib import Path
from secrets import token_urlsafe
from typing import Final, NamedTuple
from urllib.parse import quote, urlencode

TOKEN_KEY: Final = "token"  # noqa: S105 - the name of a parameter
TOKEN_BYTES: Final = 24
TOKEN_FILE: Final = "view.token"  # noqa: S105 - the name of a file


class Links(NamedTuple):
    """Makes addresses."""

    token: str

    def to(self, *parts: str, **query: str | int | Sequence[str]) -> str:
        """Returns the address of a page; parameters without a value are left out, lists are repeated.

        >>> Links("t").to("runs", "a/b", q="", kind="cases")
        '/runs/a%2Fb?kind=cases&token=t'
        """
        found = {name: value for name, value in query.items() if value != ""}
        path = "/".join(quote(part, safe="") for part in parts)
        return f"/{path}?{urlencode({**found, TOKEN_KEY: self.token}, doseq=True)}"


def kept_token(folder: Path) -> str:
    """Returns the token of this user's pages, so that links hold when the server is started again.

    Args:
        folder: of the data; only its owner can read the file there.
    """
    path = folder / TOKEN_FILE
    folder.mkdir(parents=True, exist_ok=True)
    try:
        with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
            file.write(token_urlsafe(TOKEN_BYTES))
    except FileExistsError:
        path.chmod(0o600)
    return path.read_text(encoding="ascii").strip() or token_urlsafe(TOKEN_BYTES)
