"""How an application over HTTP is asked, and what its replies have where: `http` of models, `api` of queries.

Stored with a run; the contract of what people write is `shared.contracts.http_config`.
"""

from collections.abc import Mapping
from typing import Any

import msgspec


class HttpRequest(msgspec.Struct, frozen=True, gc=False, omit_defaults=True):
    """A request with templates."""

    url: str
    """Its address; a template in its path or query."""
    method: str = "POST"
    """Of HTTP."""
    headers: Mapping[str, str] = {}
    """Literal, `env:VARIABLE` of the workers, or templates over what the session has brought."""
    body: Any = None
    """A JSON value whose texts are templates; None: no body. With GET its keys are parameters of the URL."""

    @property
    def address(self) -> str:
        """The address without templates, which limits and messages name: as far as it is the same for all.

        >>> HttpRequest("http://h:3000/chat").address, HttpRequest("http://h:3000/{{ session.id }}").address
        ('http://h:3000/chat', 'http://h:3000')
        """
        fixed, mark, _ = self.url.partition("{{")
        scheme, _, rest = fixed.partition("://")
        return f"{scheme}://{rest.partition('/')[0]}" if mark else self.url


class HttpSession(msgspec.Struct, frozen=True, gc=False, omit_defaults=True):
    """A request that is made once before the others, for what they need of its reply."""

    request: HttpRequest
    """The request."""
    take: Mapping[str, str] = {}
    """Names for templates, `session.NAME`, and JSON pointers into the reply."""


class HttpMapping(msgspec.Struct, frozen=True, gc=False, omit_defaults=True):
    """An application over HTTP."""

    request: HttpRequest
    """How it is asked."""
    answer: Mapping[str, str] = {}
    """JSON pointers into its replies by what is there: `text`, `tool_calls` and so on."""
    tokens: Mapping[str, str] = {}
    """JSON pointers to `input` and `output`, or to `usage`, an object with both."""
    error: str = ""
    """JSON pointer to what is there only when something went wrong; empty: the status says so."""
    session: HttpSession | None = None
    """What is asked before."""
