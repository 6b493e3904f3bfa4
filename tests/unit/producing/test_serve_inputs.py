"""What `proctor serve` reads: tokens, bodies of turns, packets of chat servers."""

import os
from pathlib import Path

import msgspec
import pytest

from producer.serve.chat_packets import UnknownKeysError, read_packet
from producer.serve.openapi import openapi_document
from producer.serve.tokens import read_tokens
from producer.serve.turn_bodies import read_turns
from shared.errors import ConfigError, InputError

GOOD = "a-token-of-24-characters"
TALK = {"threadId": "t", "message": "m"}
MEMENTO = {
    "version": "memento-v0.1",
    "mementoId": "memento_latest_t",
    "threadId": "t",
    "createdTs": "2026-01-02T00:00:00Z",
    "updatedAt": "2026-01-02T00:00:00Z",
    "arc": "support",
    "active": [],
    "parked": [],
    "decisions": [],
    "next": [],
    "affect": {
        "points": [],
        "rollup": {"phase": "settled", "intensityBucket": "low", "updatedAt": "2026-01-02T00:00:00Z"},
    },
}


def tokens_file(folder: Path, text: str, mode: int = 0o600) -> Path:
    """Writes a file of tokens."""
    path = folder / "tokens"
    path.write_text(text)
    path.chmod(mode)
    return path


@pytest.mark.parametrize(
    "text", [f"# shops\n{GOOD} shop  # the first\n\n", f'{{"{GOOD}": "shop"}}', f"\ufeff{GOOD} shop"]
)
def test_a_token_leads_to_its_namespace(tmp_path: Path, text: str) -> None:
    """In lines or as JSON; another token, or none, leads nowhere."""
    tokens = read_tokens(tokens_file(tmp_path, text))
    assert tokens.namespace_of(f"Bearer {GOOD}") == "shop"
    assert tokens.namespace_of("Bearer other") is None
    assert tokens.namespace_of("Bearer \udcff") is None
    assert tokens.namespace_of(None) is None


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (f"{GOOD} ns\n{GOOD} other", "tokens:2: the token stands above already"),
        (f"{GOOD} two words", "tokens:1: 3 words"),
        (f"{GOOD} bad:name", "tokens:1: namespace 'bad:name' cannot be used"),
        ("# nothing", "tokens: no tokens in it"),
        ('{"x": 1}', "tokens: Expected `str`, got `int`"),
        ('{"": "shop"}', "tokens: a token is empty or contains white space"),
        ('{"two words": "shop"}', "tokens: a token is empty or contains white space"),
    ],
)
def test_a_wrong_file_of_tokens_is_refused(tmp_path: Path, text: str, message: str) -> None:
    """With the line and what is wrong."""
    with pytest.raises(ConfigError) as caught:
        read_tokens(tokens_file(tmp_path, text))
    assert caught.value.message.removeprefix(f"{tmp_path}{os.sep}").startswith(message)


def test_unsafe_tokens_are_warned_of(tmp_path: Path) -> None:
    """A file that everybody may read, and a token that can be guessed, work and are named."""
    tokens = read_tokens(tokens_file(tmp_path, f"{GOOD} ns\nshort ns", 0o644))
    assert tokens.namespace_of("Bearer short") == "ns"
    assert [warning.removeprefix(f"{tmp_path}{os.sep}")[:30] for warning in tokens.warnings] == [
        "tokens: everybody may read the",
        "tokens: 1 token of less than 1",
    ]
    assert list(read_tokens(tokens_file(tmp_path, f"{GOOD} ns")).warnings) == []


def test_a_turn_is_sent_on_as_it_came() -> None:
    """Only line breaks go; a turn without a messageId gets that of its request, or a new one."""
    sent = b'{"threadId":"t","message":"\\u00e9","meta":{"n":123456789012345678.50},"messageId":"m"}'
    [turn] = read_turns(sent.replace(b",", b",\n ")).turns
    assert turn.line == sent
    named = read_turns(b'{"turns": [{"threadId": "t", "message": "m", "clientRequestId": "c"}]}')
    assert (named.is_list, msgspec.json.decode(named.turns[0].line)["messageId"]) == (True, "c")
    one, other = (read_turns(b'{"threadId": "t", "message": "m"}').turns[0].line for _ in range(2))
    assert one != other


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (b"", "body: is empty"),
        (b'{"turns": [], "x": 1}', "body: Object contains unknown field `x`"),
        (b'{"turns": []}', "body: 0 turns"),
        (b'{"turns": [], "turns": [{"threadId": "t", "message": "m"}]}', "body: turns: the key stands twice"),
        (b'{"threadId": "t", "message": "m", "threadId": "u"}', "turn: threadId: the key stands twice"),
        (b'{"threadId": "t", "message": "m", "nope": 1}', "turn: nope: unknown key"),
        (b'{"turns": [{"threadId": "t", "message": "m"}, 5]}', "turns[1]: "),
        (b"\xff", "body: "),
    ],
)
def test_wrong_bodies_are_refused(body: bytes, message: str) -> None:
    """With the place of what is wrong."""
    with pytest.raises(InputError) as caught:
        read_turns(body)
    assert caught.value.message.startswith(message)


def test_a_packet_is_a_turn() -> None:
    """Its id is that of its meta or its request; what concerns the model's reply does not reach the turn."""
    body = {
        "packetType": "chat",
        "threadId": "t",
        "message": "hi",
        "clientRequestId": "c",
        "providerHints": {"tier": "mini"},
        "meta": {"message_id": "m9", "affect_signal": {"label": "insight", "intensity": 0.9}},
        "context": {"thread_memento_ref": {"mementoId": "memento_latest_t"}},
    }
    packet, turn = read_packet(msgspec.json.encode(body))
    line = msgspec.json.decode(turn.line)
    assert sorted(line) == ["clientRequestId", "context", "message", "messageId", "meta", "threadId"]
    assert line["messageId"] == "m9"
    assert packet.is_stored
    assert not read_packet(b'{"threadId":"t","message":"m","thread_context_mode":"off"}').packet.is_stored
    assert not read_packet(b'{"threadId":"t","message":"m","simulate":{"x":1}}').packet.is_stored


@pytest.mark.parametrize(
    ("body", "keys"),
    [
        (b'{"threadId":"t","message":"m","a":1,"b":2}', ["a", "b"]),
        (b'{"threadId":"t","message":"m","traceConfig":{"deep":1}}', ["traceConfig.deep"]),
        (
            msgspec.json.encode({**TALK, "context": {"thread_memento": MEMENTO | {"zz": 1}}}),
            ["context.thread_memento.zz"],
        ),
    ],
)
def test_unknown_keys_of_a_packet_are_named(body: bytes, keys: list[str]) -> None:
    """All of them, with their places."""
    with pytest.raises(UnknownKeysError) as caught:
        read_packet(body)
    assert caught.value.keys == keys


@pytest.mark.parametrize(
    "body",
    [
        b"{}",
        b'{"threadId":"t"}',
        b'{"threadId":"t","message":""}',
        b"[]",
        b"{",
        b'{"threadId":"t","message":"m","clientRequestId":null}',
        b'{"threadId":"t","message":"m","meta":{"n":1e400}}',
        b'{"threadId":"t","message":"m","thread_memento_etag":7}',
    ],
)
def test_a_broken_packet_is_an_input_error(body: bytes) -> None:
    """And never anything else."""
    with pytest.raises(InputError):
        read_packet(body)


def test_a_packet_has_the_condition_and_the_memento_of_a_turn() -> None:
    """A stored memento may lack the aliases of answers; those that differ are wrong."""
    body = {**TALK, "thread_memento_etag": "7", "context": {"thread_memento": MEMENTO}}
    line = msgspec.json.decode(read_packet(msgspec.json.encode(body)).turn.line)
    assert (line["thread_memento_etag"], line["context"]["thread_memento"]) == ("7", MEMENTO)
    for wrong in ({"id": "other"}, {"createdAt": "2026-01-02T00:00:01Z"}, {"id": None}):
        body["context"] = {"thread_memento": MEMENTO | wrong}
        with pytest.raises(InputError, match="thread_memento"):
            read_packet(msgspec.json.encode(body))


def test_every_reference_of_the_description_exists() -> None:
    """The OpenAPI document needs no other file."""
    document = openapi_document()
    names = document["components"]["schemas"]
    text = msgspec.json.encode(document).decode()
    used = {part.split('"')[0] for part in text.split("#/components/schemas/")[1:]}
    assert used <= names.keys()
    assert {"Turn", "ChatPacket", "TurnResult", "ErrorReply", "RunDocument"} <= used
    assert "#/$defs" not in text
    runs, thread = document["paths"]["/v1/runs"]["post"], document["paths"]["/v1/threads/{thread}"]["get"]
    assert [*runs["responses"]["202"]["headers"], *runs["responses"]["429"]["headers"]] == [
        "Location",
        "Retry-After",
    ]
    assert [*thread["responses"]["200"]["headers"]] == [*thread["responses"]["304"]["headers"]] == ["ETag"]
