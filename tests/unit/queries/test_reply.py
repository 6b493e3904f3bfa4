"""Holds every way a query can end against its documented text and key."""

import json

import pytest

from shared.codecs.json_pointers import at
from shared.upstream.failure_reasons import FailureReason
from worker.queries.fields import DOCUMENT_FIELDS, FieldMap, in_document_form
from worker.queries.reply import MAX_REPLY_BYTES, failed_reply, read_reply


def test_an_answer_has_the_four_keys_of_send_query() -> None:
    """A good reply is its JSON body, latency and status, without an error."""
    reply = read_reply(status_code=200, body=b'{"answer": "Yes.", "x": 1}', latency_ms=12)
    assert reply.as_document() == {
        "response": {"answer": "Yes.", "x": 1},
        "latency_ms": 12,
        "status_code": 200,
        "error": None,
    }
    assert reply.failure is None


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"null",
        b"{}",
        b"[]",
        b'"text"',
        b"17",
        b"<html></html>",
        b'{"answer": "half',
        b'{"answer": NaN}',
        b'{"answer": 1e999}',
        b'{"answer": "\xff"}',
        b'{"error": "no answer here"}',
        b"[" * 100_000,
        b'{"answer": ' + b"[" * 300 + b"]" * 300 + b"}",
        b'{"answer": ' + b"9" * 5000 + b"}",
    ],
)
def test_a_body_that_is_no_answer_is_an_error(body: bytes) -> None:
    """Status 200 with anything but a usable object with an answer is an invalid body, not a hallucination."""
    reply = read_reply(status_code=200, body=body, latency_ms=1)
    assert reply.response is None
    assert str(reply.error).startswith("Invalid response body (")
    assert reply.failure is FailureReason.INVALID_REPLY


@pytest.mark.parametrize(
    ("body", "charset", "words"),
    [
        (b"", "", " (empty)"),
        (b"<html>\n  <h1>Sign in</h1>", "", " (not JSON): <html> <h1>Sign in</h1>"),
        ("<p>Zürich".encode("latin-1"), "iso-8859-1", " (not JSON): <p>Zürich"),
        (b'{"reply": "Yes."}', "", ' (no /answer): {"reply": "Yes."}'),
        (b"x" * 5_000, "", f" (not JSON): {'x' * 200}"),
        (b"secret " * 60 + b"!", "", f" (not JSON): {('*** ' * 60)[:200]}"),
    ],
)
def test_an_invalid_body_is_quoted(body: bytes, charset: str, words: str) -> None:
    """What it is instead of an answer, and its start: on one line, scrubbed and only then cut."""

    def scrub(text: str) -> str:
        """Takes the secret out."""
        return text.replace("secret", "***")

    reply = read_reply(status_code=200, body=body, latency_ms=1, charset=charset, scrub=scrub)
    assert reply.error == f"Invalid response body{words}"


@pytest.mark.parametrize(
    ("codec", "charset"),
    [
        ("utf-8-sig", "utf-8"),
        ("utf-16", None),
        ("utf-32-be", ""),
        ("utf-16-le", "utf-16le"),
        ("latin-1", "ISO-8859-1"),
        ("utf-8", "no-such-set"),
        ("utf-8", "idna"),
        ("utf-8", "us-ascii"),
        ("utf-8", "hex"),
    ],
)
def test_an_answer_is_read_in_its_character_set(codec: str, charset: str | None) -> None:
    """A byte order mark and a declared character set are read; one that is none leaves UTF-8."""
    body = '{"answer": "Zürich"}'.encode(codec)
    assert read_reply(status_code=200, body=body, latency_ms=1, charset=charset).response == {
        "answer": "Zürich"
    }


def test_half_a_surrogate_pair_in_an_answer_is_replaced() -> None:
    """An API that sends back what it was asked must not fail for it; whole pairs and backslashes stay."""
    body = rb'{"answer": "\ud83d\ude00 \ud800 \\ud800"}'
    assert read_reply(status_code=200, body=body, latency_ms=1).response == {"answer": "😀 \ufffd \\ud800"}


def test_a_null_answer_is_an_answer() -> None:
    """The place is there; what is missing is the checks' affair."""
    assert read_reply(status_code=200, body=b'{"answer": null}', latency_ms=1).error is None


def test_nesting_counts_by_depth_not_by_brackets() -> None:
    """A thousand short lists are an answer; three hundred lists in one another are none."""
    body = json.dumps({"answer": "", "lists": [[]] * 1000}).encode()
    assert read_reply(status_code=200, body=body, latency_ms=1).error is None


def test_huge_numbers_are_carried_along() -> None:
    """An absurd latency is the checks' affair; the reply stays as it came."""
    body = b'{"answer": "", "metadata": {"latencyMs": 10000000000000000000000000}}'
    response = read_reply(status_code=200, body=body, latency_ms=1).response
    assert response == {"answer": "", "metadata": {"latencyMs": 10**25}}


def test_a_body_beyond_the_limit_is_an_error() -> None:
    """One byte too many is no answer."""
    body = b'{"answer": "' + b"x" * MAX_REPLY_BYTES + b'"}'
    reply = read_reply(status_code=200, body=body, latency_ms=1)
    assert (reply.error, reply.failure) == ("Response body larger than 1024 KiB", FailureReason.TOO_LARGE)


def test_status_429_is_left_to_the_caller() -> None:
    """It keeps its status, so that the policy can retry it."""
    reply = read_reply(status_code=429, body=b"slow down", latency_ms=4)
    assert (reply.status_code, reply.error) == (429, "Rate limited (429)")
    assert reply.failure is FailureReason.RATE_LIMITED


@pytest.mark.parametrize(
    ("status", "failure"),
    [
        (500, FailureReason.SERVER_ERROR),
        (503, FailureReason.SERVER_ERROR),
        (401, FailureReason.REFUSED),
        (302, FailureReason.REFUSED),
    ],
)
def test_other_statuses_give_the_start_of_their_body(status: int, failure: FailureReason) -> None:
    """The error is the body's first 200 characters, whatever its bytes."""
    reply = read_reply(status_code=status, body="ü".encode() * 300 + b"\xff", latency_ms=4)
    assert (reply.error, reply.failure) == ("ü" * 200, failure)


def test_an_empty_refusal_is_still_an_error() -> None:
    """A blank body must not look like success."""
    assert read_reply(status_code=500, body=b" \n", latency_ms=4).error == "HTTP 500 with an empty body"


def test_no_connection_ends_the_run_with_the_documented_text() -> None:
    """Only a failure to connect ends a run."""
    reply = failed_reply(FailureReason.UNREACHABLE, 2, api_url="http://localhost:3000")
    assert reply.error == "Connection refused - backend not running on http://localhost:3000"
    assert (reply.status_code, reply.ends_run) == (0, True)
    assert not failed_reply(FailureReason.TIMEOUT, 1).ends_run
    assert not failed_reply(FailureReason.CONNECTION_LOST, 1).ends_run


def test_a_timeout_has_the_documented_text() -> None:
    """The text names the limit that was passed."""
    assert failed_reply(FailureReason.TIMEOUT, 30_001).error == "Timeout after 30s"
    assert failed_reply(FailureReason.TIMEOUT, 1, timeout_s=0.5).error == "Timeout after 0.5s"


def test_the_documents_own_form_is_taken_as_it_is() -> None:
    """Unknown keys of a reply stay."""
    reply = {"answer": "a", "anything": 1}
    assert in_document_form(reply, DOCUMENT_FIELDS) is reply


def test_other_apis_are_read_through_their_pointers() -> None:
    """A reply of another shape is judged like the document's."""
    fields = FieldMap(
        answer="/data/0/text",
        sources="/refs",
        citations="/refs",
        related_docs="/hits",
        doc_id="/meta/id",
        confidence="/sure",
        chunks_retrieved="/n",
        latency_ms="/ms",
    )
    body = {"data": [{"text": "Yes"}], "refs": ["r"], "hits": [{"meta": {"id": "D-1"}}], "n": 2, "ms": 5}
    reply = read_reply(status_code=200, body=json.dumps(body).encode(), latency_ms=1, fields=fields)
    assert reply.response == {
        "answer": "Yes",
        "sources": ["r"],
        "citations": ["r"],
        "relatedDocs": [{"meta": {"id": "D-1"}, "docId": "D-1"}],
        "confidence": None,
        "metadata": {"chunksRetrieved": 2, "latencyMs": 5},
    }


@pytest.mark.parametrize(
    "pointer", ["answer", "/a/x", "/l/01", "/l/9", "/l/-", "/l/²", "/s/0", "/l/99999999999"]
)
def test_a_pointer_that_leads_nowhere_gives_the_default(pointer: str) -> None:
    """Bad steps, indexes out of range and steps into text find nothing."""
    assert at({"a": {}, "l": [1], "s": "text"}, pointer, "none") == "none"
