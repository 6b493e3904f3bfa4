"""A sandbox for tests of the engine: it gives fixed answers, and runs nothing."""

from typing import Any

from shared.contracts.checks import Snippet
from worker.validation.case_verdict import Returned


class StoppedError(Exception):
    """What a sandbox raises when it had to stop what it ran."""

    def __init__(self, reason: str) -> None:
        super().__init__(f"stopped: {reason}")
        self.reason = reason


class Box:
    """A sandbox that gives fixed answers, and records its calls."""

    def __init__(self, found: Any = None, returned: Any = None) -> None:
        self.found = found
        self.returned = returned
        self.asked: list[tuple[str, str, str]] = []

    def search(self, pattern: str, text: str) -> Any:
        """Answers a search."""
        self.asked.append(("search", pattern, text))
        return self._answer(self.found)

    def call(self, name: str, text: str) -> Any:
        """Answers a call."""
        self.asked.append(("call", name, text))
        return self._answer(self.returned)

    def _answer(self, answer: Any) -> Any:
        """Gives or raises it."""
        if isinstance(answer, Exception):
            raise answer
        return answer


class CheckBox(Box):
    """A sandbox that also calls functions of checks."""

    def __init__(self, found: Any = None, returned: Any = None) -> None:
        super().__init__(found, returned)
        self.contexts: list[str] = []

    def check(self, name: str, text: str, context: str) -> Any:
        """Answers a call with a context."""
        self.contexts.append(context)
        return self.call(name, text)

    def transform(self, name: str, text: str, context: str) -> Any:
        """Answers a call for a value."""
        return self.check(name, text, context)

    def script(self, script: Snippet, request: str) -> Returned:
        """Answers a script."""
        self.contexts.append(request)
        returned = self.call(script.source, request)
        return returned if isinstance(returned, Returned) else Returned("boolean", returned)
