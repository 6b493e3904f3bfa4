"""What is read of replies and kept of them: endless numbers, estimates, entries of the version before."""

from dataclasses import replace

import msgspec
import pytest

from shared.codecs.parked_items import History, decode_parked
from shared.upstream.failure_reasons import FailureReason
from shared.upstream.model_target import ModelTarget
from worker.upstream.cache import digest_of, identity_of
from worker.upstream.chat import IMAGE_TOKENS, ModelReply, ModelRequest, echoed, estimate_tokens
from worker.upstream.completion import read_whole
from worker.upstream.failures import UpstreamError
from worker.upstream.protocols.openai_chat import OPENAI_CHAT

ENDLESS = "1" * 5_000


def test_an_error_with_an_endless_code_is_one_of_the_upstream() -> None:
    """Its words are kept; the code says nothing."""
    with pytest.raises(UpstreamError, match="no luck") as caught:
        read_whole(OPENAI_CHAT, {"error": {"message": "no luck", "code": ENDLESS}})
    assert (caught.value.reason, caught.value.status) == (FailureReason.SERVER_ERROR, 0)


def test_an_endless_number_in_a_note_is_none() -> None:
    """What a parked item has been through is read as far as it can be."""
    assert decode_parked(f"upstream_timeout {ENDLESS} 1").history.throttled == 0
    assert decode_parked(f"judge {ENDLESS} upstream_timeout 0 350").judges == (History(),)


def test_estimates_follow_the_conversation() -> None:
    """Messages, calls of tools and options count; an image counts as one, however many bytes it has."""
    texts = (
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "Hello you"},
    )
    plain = estimate_tokens(ModelRequest(ModelTarget("m"), "Be brief.", "Hello you"))
    assert estimate_tokens(ModelRequest(ModelTarget("m"), "", "", messages=texts)) == plain
    called = {"role": "assistant", "content": None, "tool_calls": [{"function": {"name": "f" * 300}}]}
    assert (
        estimate_tokens(ModelRequest(ModelTarget("m"), "", "", messages=(*texts, called))).prompt
        > plain.prompt + 100
    )
    sizes = {
        estimate_tokens(
            ModelRequest(ModelTarget("m"), "", "", messages=[{"role": "user", "content": [image_of(size)]}])
        )
        for size in (1_000, 1_000_000)
    }
    assert [size.prompt for size in sizes] == [IMAGE_TOKENS + 8]


def test_echo_answers_with_the_last_user_message() -> None:
    """Whatever comes after it; of a message in parts with its texts. It costs nothing, and that is known."""
    spoken: list[dict[str, object]] = [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "first"},
        {"role": "user", "content": [{"type": "text", "text": "last"}, image_of(9)]},
        {"role": "assistant", "content": "I"},
    ]
    reply = echoed(ModelRequest(ModelTarget("echo"), "", "", messages=spoken))
    assert (reply.text, reply.cost_usd, reply.usage.total_tokens) == ("last", 0.0, 0)
    assert not echoed(ModelRequest(ModelTarget("echo"), "", "", messages=spoken[:1])).text


def image_of(size: int) -> dict[str, object]:
    """An image, as a part of a message."""
    return {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{'A' * size}"}}


def test_an_answer_of_the_version_before_is_found() -> None:
    """It lacks the fields that are new, and is read as it was stored."""
    before = msgspec.msgpack.encode({"text": "Hi", "latency_ms": 5, "reasoning": "", "is_cached": False})
    assert msgspec.msgpack.decode(before, type=ModelReply) == ModelReply("Hi", 5)
    known = "cb4bc99fdfd05dc9eba754acc60ae59e"
    assert (
        digest_of(
            identity_of(ModelRequest(ModelTarget("openai/gpt-4o"), "Be brief.", "Hi", temperature=0.1))
        )[:32]
        == known
    )


def test_what_is_new_in_a_request_is_part_of_its_identity() -> None:
    """Messages with their images, and headers without case; the value of a worker's variable is not known."""
    one = ModelRequest(ModelTarget("m", headers={"X-Team": "a", "X-Key": "env:MY_TOKEN"}), "", "Hi")
    assert identity_of(one) == identity_of(
        replace(one, target=ModelTarget("m", headers={"x-key": "env:MY_TOKEN", "x-team": "a"}))
    )
    images = [replace(one, messages=[{"role": "user", "content": [image_of(size)]}]) for size in (4, 8)]
    others = [
        replace(one, target=ModelTarget("m", headers={"X-Team": "b"})),
        replace(one, parameters={"seed": 1}),
        *images,
    ]
    assert len({digest_of(identity_of(each)) for each in (one, *others)}) == 5
