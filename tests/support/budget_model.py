"""The budget of one run as a plain Python model: the oracle of the scripts' property tests."""

from dataclasses import dataclass, field

from shared.ledger.times import TIMES

Answer = tuple[object, ...]


@dataclass
class BudgetModel:
    """What a run may cost, has cost and has reserved; see `worker/upstream/lua/lib/reservations.lua`."""

    ledger: int = 0
    """The ledger clock, milliseconds."""
    cap: int | None = None
    """Set by hand."""
    spent: int = 0
    held: dict[str, int] = field(default_factory=dict)
    until: dict[str, int] = field(default_factory=dict)
    lapsed: dict[str, int] = field(default_factory=dict)
    most: dict[str, int] = field(default_factory=dict)
    over: int | None = None
    """What the last call would have cost, where that was too much."""
    overrun: int = 0
    """What calls have cost beyond what they had reserved."""

    @property
    def reserved(self) -> int:
        """What calls under way may cost."""
        return sum(self.held.values())

    def reserve(self, call: str, amount: int, least: int | None, cap: int, model: str) -> Answer:
        """What `reserve.lua` says and does."""
        if call in self.held or call in self.lapsed:
            return ("ok",)
        self.lapse()
        most = cap if self.cap is None else self.cap
        left = most - self.spent - self.reserved
        is_alone = not self.reserved
        if amount > left and is_alone and least is not None and max(least, self.most.get(model, 0)) <= left:
            amount = left
        if amount > left:
            self.over = amount if is_alone else self.over
            return ("over", str(self.spent), str(most)) if is_alone else ("wait",)
        self.over = None
        self.held[call], self.until[call] = amount, self.ledger + TIMES.lease_ms
        return ("ok",)

    def set_cap(self, cap: int) -> None:
        """What `CostBook.set_cap` does: the next reservation finds out whether the cap is reached."""
        self.cap, self.over = cap, None

    def lapse(self) -> None:
        """Counts what dead processes had reserved as spent."""
        for call in [call for call, until in self.until.items() if until <= self.ledger]:
            self.lapsed[call] = self.held.pop(call)
            self.spent += self.lapsed[call]
            del self.until[call]

    def settle(self, call: str, cost: int | None, model: str) -> Answer:
        """What `settle_cost.lua` says and does."""
        if call in self.held:
            reserved = self.held.pop(call)
            self.until.pop(call)
        elif call in self.lapsed:
            reserved = self.lapsed.pop(call)
            self.spent -= reserved
        else:
            return ("gone",)
        cost = reserved if cost is None else cost
        self.overrun += max(0, cost - reserved)
        self.spent += cost
        if model and cost > self.most.get(model, 0):
            self.most[model] = cost
        return ("ok",)

    def renew(self, calls: list[str]) -> None:
        """What `renew_holds.lua` does."""
        for call in calls:
            if call in self.until:
                self.until[call] = self.ledger + TIMES.lease_ms

    def stored(self) -> dict[str, int]:
        """What the hash of the run's cost should hold."""
        fields = {f"c:{call}": amount for call, amount in self.held.items()}
        fields |= {f"x:{call}": amount for call, amount in self.lapsed.items()}
        fields |= {f"m:{model}": cost for model, cost in self.most.items()}
        fields |= {"spent": self.spent, "held": self.reserved}
        fields |= {} if self.over is None else {"over": self.over}
        return fields if self.cap is None else {**fields, "cap": self.cap}
