"""Estimates, before a call, how many tokens it will use: for limits of tokens a minute and for the budget."""

import json
from typing import Final, NamedTuple

from worker.upstream.model import ModelRequest

BYTES_A_TOKEN: Final = 3
"""Of UTF-8: English has four and more, code and other languages about three."""
MESSAGE_TOKENS: Final = 8
"""What a message costs beside its text."""
ANSWER_TOKENS: Final = 1_024
"""Assumed of an answer when the request sets no limit to it."""
LIMITS: Final = ("max_tokens", "max_completion_tokens", "max_output_tokens")
"""Parameters that bound an answer."""


class Size(NamedTuple):
    """Tokens of a call, as estimated."""

    prompt: int
    """Of the question."""
    answer: int
    """Of the answer, at most."""
    is_guess: bool
    """Whether the answer is not bounded by the request."""

    @property
    def tokens(self) -> int:
        """Of both."""
        return self.prompt + self.answer


def size_of(request: ModelRequest) -> Size:
    """Estimates the tokens of a call.

    >>> size_of(ModelRequest("m", "", "Hello you"))
    Size(prompt=11, answer=1024, is_guess=True)
    >>> size_of(ModelRequest("m", "Be brief.", "Hello you", parameters={"max_tokens": 20}))
    Size(prompt=22, answer=20, is_guess=False)
    """
    texts = [text.encode(errors="surrogatepass") for text in (request.system, request.user) if text]
    others = {name: value for name, value in request.parameters.items() if name not in LIMITS}
    if others:  # a schema or tools are part of the question
        texts.append(json.dumps(others).encode())
    prompt = sum(-(-len(text) // BYTES_A_TOKEN) + MESSAGE_TOKENS for text in texts)
    bounds = [request.parameters[name] for name in LIMITS if name in request.parameters]
    bounds = [bound for bound in bounds if isinstance(bound, int) and bound > 0]
    return Size(prompt, min(bounds, default=ANSWER_TOKENS), is_guess=not bounds)
