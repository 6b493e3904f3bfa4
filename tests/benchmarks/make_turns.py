"""Writes as many turns as asked for, in flat memory: `python -m tests.benchmarks.make_turns 1000000`.

A few hundred dialogues, made from a seed or read from a file, are repeated with fresh thread names until the
number is reached. The made ones have the proportions of recorded task dialogues: 8 to 24 turns a thread, user
and assistant in turn, a signal on every second turn, a proposed summary on every user turn.
"""

import argparse
import json
import sys
from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from pathlib import Path
from random import Random
from typing import Any, BinaryIO, Final, TypeAlias

Turn: TypeAlias = dict[str, Any]

DIALOGUES: Final = 256
"""Made dialogues in one round."""
ROUND: Final = "@round@"
"""Stands for the number of the round in front of every thread's name."""

KINDS: Final = {
    "answer_provided": 27,
    "open_loop_created": 27,
    "scope_changed": 13,
    "ack_only": 10,
    "decision_made": 7,
    "risk_or_conflict": 6,
    "open_loop_resolved": 6,
    "pivot": 4,
}
"""Signals and how often each occurs, in percent."""
LABELS: Final = ("neutral", "curiosity", "insight", "resolve", "gratitude", "overwhelm")
TOPICS: Final = (
    "a table for two",
    "a flight to Lisbon",
    "a flat near the park",
    "tickets for Friday",
    "a rental car",
)
ASKED: Final = (
    "I am looking for {topic}, not too expensive, please.",
    "Could you find {topic} that is free on the weekend?",
    "What is the address, and until when are they open?",
    "No, something closer to the centre would be better.",
    "Yes, that one. Please go ahead.",
    "ok thanks",
    "Sounds good!",
)
ANSWERED: Final = (
    "I found three that fit. Shall I tell you about the first one?",
    "Confirming: {topic}, for the day you named. Is that right?",
    "Done. You will find the details in your messages.",
    "Nothing is free at that time. Would an hour later do?",
    "Is there anything else I can help you with?",
)


def made_dialogue(number: int, random: Random) -> Iterator[Turn]:
    """The turns of one thread, drawn from a random source."""
    thread = f"thread-{number:04d}"
    topic = random.choice(TOPICS)
    decisions: list[str] = []
    for position in range(2 * random.randint(4, 12)):
        is_user = position % 2 == 0
        message_id = f"{thread}#{position:02d}"
        turn: Turn = {"threadId": thread, "messageId": message_id, "role": "user" if is_user else "assistant"}
        turn["message"] = random.choice(ASKED if is_user else ANSWERED).format(topic=topic)
        if random.random() < 0.55:
            kind = random.choices(list(KINDS), list(KINDS.values()))[0]
            item = {"endMessageId": message_id, "kind": kind, "confidence": "high", "source": "model"}
            turn["signals"] = {"updatedAt": "2026-02-01T00:00:00Z", "items": [item]}
        if is_user:
            decisions = [*decisions, f"wish {position}: {random.randint(1, 99)}"][-4:]
            shape = {"arc": topic, "active": [topic], "parked": [], "decisions": decisions, "next": []}
            turn["modelShape"] = shape
            if random.random() < 0.55:
                affect = {"label": random.choice(LABELS), "intensity": round(random.random(), 2)}
                turn["affectSignal"] = {**affect, "confidence": "high"}
        yield turn


def made_turns(seed: int) -> Iterator[Turn]:
    """One round of dialogues; the same seed makes the same ones."""
    random = Random(seed)
    for number in range(DIALOGUES):
        yield from made_dialogue(number, random)


def interleaved(turns: Iterable[Turn]) -> list[Turn]:
    """The same turns as they arrive when all threads talk at once: first turns, then second turns, and so on.

    >>> [turn["threadId"] for turn in interleaved([{"threadId": "a"}, {"threadId": "a"}, {"threadId": "b"}])]
    ['a', 'b', 'a']
    """
    seen: dict[str, int] = {}
    placed = []
    for turn in turns:
        position = seen[turn["threadId"]] = seen.get(turn["threadId"], -1) + 1
        placed.append((position, turn))
    return [turn for _, turn in sorted(placed, key=lambda pair: pair[0])]


def repeated(turns: Iterable[Turn], count: int) -> Iterator[bytes]:
    """Blocks of lines, `count` in all: round after round of the same dialogues in threads of their own."""
    lines = [json.dumps({**turn, "threadId": f"{ROUND}/{turn['threadId']}"}) + "\n" for turn in turns]
    block, marker = "".join(lines).encode(), ROUND.encode()
    full, rest = divmod(count, len(lines))
    for number in range(full):
        yield block.replace(marker, str(number).encode())
    yield "".join(lines[:rest]).encode().replace(marker, str(full).encode())


def write_turns(path: Path, count: int, *, seed: int = 1) -> None:
    """Writes `count` made turns to a file."""
    with path.open("wb") as file:
        file.writelines(repeated(made_turns(seed), count))


def main() -> None:
    """Reads the command line and writes the turns."""
    parser = argparse.ArgumentParser(prog="make_turns", description="Write a turns file of any length.")
    parser.add_argument("count", type=int, help="how many turns")
    parser.add_argument(
        "--seed", type=int, default=1, help="draws the dialogues; the same seed, the same file"
    )
    parser.add_argument("--like", type=Path, metavar="FILE", help="repeat these turns instead of made ones")
    parser.add_argument("--interleave", action="store_true", help="all threads of a round talk at once")
    parser.add_argument("-o", "--output", type=Path, metavar="FILE", help="default: standard output")
    options = parser.parse_args()
    turns: Iterable[Turn] = made_turns(options.seed)
    with ExitStack() as stack:
        if options.like:
            turns = map(json.loads, stack.enter_context(options.like.open(encoding="utf-8")))
        target: BinaryIO = (
            stack.enter_context(options.output.open("wb")) if options.output else sys.stdout.buffer
        )
        target.writelines(repeated(interleaved(turns) if options.interleave else turns, options.count))


if __name__ == "__main__":
    main()
