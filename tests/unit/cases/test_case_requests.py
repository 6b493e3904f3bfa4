"""What a worker sends for an item: messages, images, options and headers."""

from typing import Any

import msgspec
import pytest

from shared.contracts.case_run import CasePayload, CaseRun, Image
from shared.upstream.model_target import ModelTarget
from worker.executors.case_requests import ImageMissingError, ImageUrls, model_request

RUN = CaseRun("bench", "Answer.", {"m": ModelTarget("m")})
ASKED = [{"role": "user", "content": "Hi"}]


def sent(item: CasePayload, *images: str, **calls: Any) -> Any:
    """The request of an item, with options for its model and prompt."""
    run = CaseRun("bench", "Answer.", {"m": ModelTarget("m")}, calls={"m": {item.prompt_id or "": calls}})
    return model_request(run, item, list(images))


def test_a_documented_item_is_two_texts() -> None:
    """Without anything new, the request is what it was."""
    request = model_request(RUN, CasePayload(0, "m", "Hi"), [])
    assert (request.system, request.user, request.messages) == ("Answer.", "Hi", [])
    assert (request.temperature, request.parameters, request.target.headers) == (0.1, {}, {})


def test_an_item_with_its_own_system_message_replaces_the_runs() -> None:
    """An empty one sends none."""
    assert sent(CasePayload(0, "m", "Hi", system="Be brief.")).system == "Be brief."
    assert sent(CasePayload(0, "m", "Hi", system="", messages=ASKED)).messages == ASKED
    assert [each["role"] for each in sent(CasePayload(0, "m", "Hi", messages=ASKED)).messages] == [
        "system",
        "user",
    ]


def test_options_of_a_prompt_are_sent() -> None:
    """A temperature goes before the run's, null sends none, and the others are parameters."""
    item = CasePayload(0, "m", "Hi", prompt_id="p")
    request = sent(item, params={"temperature": None, "seed": 7}, headers={"X-A": "b"})
    assert (request.temperature, request.parameters, request.target.headers) == (
        None,
        {"seed": 7},
        {"X-A": "b"},
    )
    assert sent(item, params={"temperature": 1.5}).temperature == 1.5
    assert model_request(RUN, item, []).parameters == {}


def test_images_go_with_the_last_message() -> None:
    """Its text becomes a part, and images follow it."""
    url = "data:image/png;base64,AAAA"
    last = sent(CasePayload(0, "m", "Look"), url).messages[-1]
    image = {"type": "image_url", "image_url": {"url": url}}
    assert last == {"role": "user", "content": [{"type": "text", "text": "Look"}, image]}
    parts = [{"role": "user", "content": [{"type": "text", "text": "a"}]}]
    assert sent(CasePayload(0, "m", "a", messages=parts), url).messages[-1]["content"][1:] == [image]


def test_images_are_read_from_the_run() -> None:
    """Each once; one that is not there is an error of the item."""
    reads = list[str]()

    def read(name: str) -> bytes | None:
        reads.append(name)
        return msgspec.msgpack.encode(Image("image/png", b"\0\0\0")) if name == "a" else None

    urls = ImageUrls(read)
    assert [urls.url("a"), urls.url("a")] == ["data:image/png;base64,AAAA"] * 2
    assert reads == ["a"]
    with pytest.raises(ImageMissingError, match="b"):
        urls.url("b")
