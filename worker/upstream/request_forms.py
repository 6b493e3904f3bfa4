"""How a question is put where the provider can do more: an answer in a form, and a beginning that it keeps.

Neither makes another question of it: equal questions share an answer with and without them. A provider that
refuses a form is asked again without one, once in each process: that costs a refused call, which is free, and
needs no state that workers share.
"""

from dataclasses import replace
from typing import Any, Final

from shared.upstream.failure_reasons import FailureReason
from shared.upstream.key_variables import provider_of
from worker.upstream.chat import ModelRequest
from worker.upstream.failures import UpstreamError

RESPONSE_FORMAT: Final = "response_format"
REFUSALS: Final = frozenset({0, 400, 422})
"""Statuses of requests that are refused for what is in them; 0: by the client, before anything is sent."""
LEAST_CHARS: Final = 3_072
"""Shorter beginnings are not marked: no provider keeps fewer than 1,024 tokens."""
MOST_SEEN: Final = 1_000
"""Beginnings that a process remembers."""


def in_form(request: ModelRequest) -> ModelRequest:
    """Returns a request that asks for its form as OpenAI's protocol has it.

    Args:
        request: with a form.
    """
    schema = {"name": "reply", "strict": True, "schema": request.form}
    form = {"type": "json_schema", "json_schema": schema}
    return replace(request, parameters={**request.parameters, RESPONSE_FORMAT: form})


def refuses_form(error: UpstreamError) -> bool:
    """Returns whether a request may have been refused for its form.

    >>> refuses_form(UpstreamError(FailureReason.REFUSED, "no json_schema", status=400))
    True
    >>> refuses_form(UpstreamError(FailureReason.REFUSED, "not found", status=404))
    False
    """
    return error.reason is FailureReason.REFUSED and error.status in REFUSALS


class PrefixMarks:
    """Marks the beginnings of questions for providers that keep only what is marked (Anthropic).

    To keep one costs a quarter more than to read it, so that it is marked when it comes again.
    """

    __slots__ = ("_seen",)

    def __init__(self) -> None:
        self._seen = set[tuple[str, str, str]]()

    def marked(self, request: ModelRequest) -> ModelRequest:
        """Returns a request with a mark where what it shares with others ends, if that pays."""
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
    """Whether a provider reads marks, and others would not refuse them."""
    target = request.target
    return (target.spoken if target.api_base else provider_of(target.model)) == "anthropic"


def _text(text: str) -> dict[str, Any]:
    return {"type": "text", "text": text}
