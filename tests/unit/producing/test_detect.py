"""The kind of a file follows from its content; kinds that this version does not run are refused by name."""

import io
from dataclasses import replace
from pathlib import Path

import pytest

from producer import kinds
from producer.load.detect import detect_kind, kind_of
from producer.load.source import Source
from shared.errors import InputError, UsageError
from shared.kinds import CASES, QUERIES, TURNS, Kind, all_kinds


@pytest.mark.parametrize(
    ("head", "kind"),
    [
        (b'{"threadId": "t", "message": "ok"}\n{"threadId"', TURNS),
        (b'\xef\xbb\xbf\n {"message": "ok"}', TURNS),
        (b'{"threadId": "t", "message": "cut o', TURNS),
        (b'{"id": "Q-01", "query": "How?", "category": "x"}\n', QUERIES),
        (b'{\n  "version": "1.0",\n  "queries": [\n', QUERIES),
        (b'[\n {"id": "Q-01", "query": "How?"}]', QUERIES),
        (b"# a bench\nbench:\n  name: x\nmodels:\n  - a\ntest_cases:\n", CASES),
        (b'{"test_cases": [], "models": []}', CASES),
        (b'# a bench\nname: "x"\nsystem_prompt: |\n  Answer.\n', CASES),
    ],
)
def test_content_tells_the_kind(head: bytes, kind: Kind) -> None:
    """Keys of the first level give a kind away, in any of the forms its files have."""
    assert kind_of(head) is kind


@pytest.mark.parametrize(
    "head", [b"hello world", b"[]", b"{}", b"[" * 2000, b'"message"', b"\x7fELF", b"- a\n"]
)
def test_content_that_tells_nothing(head: bytes) -> None:
    """Content of no kind is not guessed."""
    assert kind_of(head) is None


@pytest.mark.parametrize(("name", "kind"), [("a.jsonl", TURNS), ("a.YML", CASES), ("a.json", QUERIES)])
def test_the_suffix_decides_when_content_does_not(tmp_path: Path, name: str, kind: Kind) -> None:
    """A file of unknown content goes to the loader of its suffix, which names the error."""
    path = tmp_path / name
    path.write_text("nonsense")
    assert detect_kind(Source(path)) is kind


def test_unknown_content_asks_for_the_kind() -> None:
    """Without content or suffix to go by, the user is asked to say the kind."""
    with pytest.raises(InputError, match="cannot tell what this file describes") as caught:
        detect_kind(Source("-", stdin=io.BytesIO(b"hello")))
    assert caught.value.hint == "say so: --kind turns|cases|queries"


def test_an_empty_file_is_an_input_error() -> None:
    """Nothing is no kind."""
    with pytest.raises(InputError, match="stdin: is empty"):
        detect_kind(Source("-", stdin=io.BytesIO(b" \n")))


def test_an_empty_bench_is_not_reported_as_turns(tmp_path: Path) -> None:
    """The hint is about what the file's name promises."""
    file = tmp_path / "bench.yaml"
    file.touch()
    with pytest.raises(InputError, match="is empty") as caught:
        detect_kind(Source(str(file)))
    assert caught.value.hint == "`proctor init --kind cases` writes an example"


def test_every_kind_is_handled_or_refused_by_name() -> None:
    """A kind has a loader, or the error says which kinds this version runs."""
    assert kinds.of(TURNS).kind is TURNS
    assert {each.kind for each in kinds.declared()} == set(all_kinds())
    unknown = replace(TURNS, name="songs")
    with pytest.raises(UsageError, match="runs of kind songs") as caught:
        kinds.of(unknown)
    assert caught.value.hint == "this version runs: turns, queries, cases"
