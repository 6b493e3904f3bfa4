"""Optional features of providers: structured output (a form), and prompt caching by marked prefixes.

Neither changes the cache key of a request: its answer is the same with and without them. A provider that
refuses a form is called again without one, once in each process: that costs a refused call, which is free,
and needs no state shared by workers.
"""

from dataclasses import replace
from typing import Any, Final

from shared.upstream.failure_reasons import FailureReason
from shared.upstream.key_variables import provider_of
from worker.upstream.chat import ModelRequest
from worker.upstream.failures import UpstreamError

RESPONSE_FORMAT: Final = "response_format"
REFUSALS: Final = frozenset({0, 400, 422})
"""Statuses of requests that are refused for their content; 0: by the client, before anything is sent."""
LEAST_CHARS: Final = 3_072
"""Shorter prefixes are not marked: no provider caches fewer than 1,024 tokens."""
MOST_SEEN: Final = 1_000
"""Prefixes that a process remembers."""


def in_form(request: ModelRequest) -> ModelRequest:
    """Returns a request with its form as a parameter of OpenAI's protocol.

    Args:
        request: a request that has a form.
    """
    schema = {"name": "reply", "strict": True, "schema": request.form}
    form = {"type": "json_schema", "json_schema": schema}
    return replace(request, parameters={**request.parameters, RESPONSE_FORMAT: form})


def refuses_form(error: UpstreamError) -> bool:
    """Returns whether a request may have been refused because of its form.

    >>> refuses_form(UpstreamError(FailureReason.REFUSED, "no json_schema", status=400))
    True
    >>> refuses_form(UpstreamError(FailureReason.REFUSED, "not found", status=404))
    False
    """
    return error.reason is FailureReason.REFUSED and error.status in REFUSALS


class PrefixMarks:
    """Marks the prefixes of prompts for providers that cache only marked ones (Anthropic).

    Writing a prefix to the cache costs a quarter more than sending it, so it is marked from its second use.
    """

    __slots__ = ("_seen",)

    def __init__(self) -> None:
        self._seen = set[tuple[str, str, str]]()

    def marked(self, request: ModelRequest) -> ModelRequest:
        """Returns a request with a mark after the prefix that it shares with others, if that saves cost."""
        shared = request.shared_chars
        if not shared or len(request.system) + shared < LEAST_CHARS or not _keeps_what_is_marked(request):
            return request
        beginning = request.model, request.system, request.user[:shared]
        if beginning not in self._seen:
            if len(self._seen) >= MOST_SEEN:
                self._seen.clear()
            self._seen.add(beginning)
            return request
        system = [{"role": "system", "content": request.system}] if request.system else []
        marked = {**_text(request.user[:shared]), "cache_control": {"type": "ephemeral"}}
        rest = [_text(request.user[shared:])] if request.user[shared:] else []
        return replace(request, messages=[*system, {"role": "user", "content": [marked, *rest]}])


def _keeps_what_is_marked(request: ModelRequest) -> bool:
    """Returns whether the provider reads marks; others may refuse them."""
    target = request.target
    return (target.spoken if target.api_base else provider_of(target.model)) == "anthropic"


def _text(text: str) -> dict[str, Any]:
    return {"type": "text", "text": text}
