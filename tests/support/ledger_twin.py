"""Runs every call on the real scripts too, and compares answers and the whole state with the model."""

from typing import TYPE_CHECKING, Any, Final

from shared import keys
from shared.errors import ProctorError
from shared.ledger.ledger import Ledger
from shared.ledger.scripts import compose_all
from tests.support.ledger_model import LedgerModel
from tests.support.ledger_model_view import as_redis, read_redis

if TYPE_CHECKING:
    import redis

TEST_CLOCK_KEY: Final = "test:now"
TEST_CLOCK: Final = f"local function now() return tonumber(redis.call('GET', '{TEST_CLOCK_KEY}')) end\n"
"""Stands in for `now` of `lua/lib/server.lua`, so that a test decides what time it is in Redis."""
TEST_SCRIPTS: Final = compose_all({"now": TEST_CLOCK})


class Twin:
    """A ledger on a real server whose clock is the model's."""

    def __init__(self, client: "redis.Redis", *, compare_each: int = 1) -> None:
        """Takes over the server.

        Args:
            client: of a server that is empty and nobody else's.
            compare_each: compare the whole state after each so many calls.
        """
        self.client = client
        self.compare_each = compare_each
        self.calls = 0
        self.now_ms = 0
        self.ledger = Ledger(client, clock=lambda: self.now_ms, scripts=TEST_SCRIPTS)

    def mirror(
        self, model: LedgerModel, name: str, args: tuple[Any, ...], keywords: dict[str, Any], answer: Any
    ) -> None:
        """Does on the server what was just done on the model; both have to say the same."""
        self.now_ms = model.state.now_ms
        self.client.set(TEST_CLOCK_KEY, self.now_ms)
        returned: Any
        try:
            call_it = self._hear if name == "hear" else getattr(self.ledger, name)
            returned = call_it(*args, **keywords)
        except ProctorError as error:
            returned, answer = type(error), type(answer)
        call = f"{name}{args}{keywords}"
        assert returned == answer, f"{call}:\n scripts {returned}\n model   {answer}"
        self.calls += 1
        if self.calls % self.compare_each == 0:
            self.compare(model, call)

    def _hear(self, listener: str) -> list[str]:
        """Takes all that a listener is told, as `producer.serve` does."""
        told: Any = self.client.lpop(keys.ended_key(listener), 1_000_000)
        return [run.decode() for run in told or ()]

    def compare(self, model: LedgerModel, call: str) -> None:
        """Asserts that the server holds what the model holds, and nothing else."""
        there, wanted = read_redis(self.client), as_redis(model)
        if there != wanted:
            wrong = sorted(key for key in there.keys() | wanted.keys() if there.get(key) != wanted.get(key))
            differences = "\n".join(
                f"  {key}\n    scripts {there.get(key)}\n    model   {wanted.get(key)}" for key in wrong
            )
            raise AssertionError(f"after {call}:\n{differences}")
