"""Checks the registry of kinds: names, what is registered twice, and modules that the environment names."""

from dataclasses import replace
from pathlib import Path

import pytest

from shared import kinds
from shared.errors import ConfigError
from shared.kinds import CASES, QUERIES, TURNS, Kind, Storage, all_kinds, import_kinds, kind_named, register
from shared.ledger.scripts import ledger_scripts
from shared.ledger.times import TIMES

WORDS = Kind("words", "word", task="proctor.words.count", storage=Storage.LIST, outcomes=("passed", "error"))


@pytest.fixture(autouse=True)
def restored(monkeypatch: pytest.MonkeyPatch) -> None:
    """Leaves the registry as it was."""
    monkeypatch.setattr(kinds, "_registry", dict(kinds._registry))


def test_names_and_kinds_stand_for_each_other() -> None:
    """A kind reads as its name, which is what is stored."""
    assert [str(kind) for kind in all_kinds()] == ["turns", "cases", "queries"]
    assert [kind_named(name) for name in ("turns", "cases", "queries")] == [TURNS, CASES, QUERIES]
    with pytest.raises(ValueError, match="'words' is no kind"):
        kind_named("words")


def test_a_kind_is_registered_once() -> None:
    """An equal kind changes nothing; another one of the same name is refused."""
    assert register(WORDS) is register(replace(WORDS)) is WORDS
    assert all_kinds()[-1] is kind_named("words") is WORDS
    with pytest.raises(ValueError, match="another kind"):
        register(replace(WORDS, noun="term"))


def test_ledger_looks_after_registered_kinds() -> None:
    """A tick heals and fills the queue of a kind that was registered after the scripts were first read."""
    before = ledger_scripts(TIMES)["tick"].text
    register(WORDS)
    after = ledger_scripts(TIMES)["tick"].text
    assert "'queries'}" in before
    assert "'queries', 'words'}" in after


def test_environment_names_modules_with_kinds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """They are imported, and a module that is not there is a mistake in the configuration."""
    (tmp_path / "a_kind_of_words.py").write_text(
        "from shared.kinds import Kind, Storage, register\n"
        "register(Kind('letters', 'letter', task='t', storage=Storage.LIST, outcomes=()))\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    import_kinds({"PROCTOR_KINDS": "a_kind_of_words"})
    assert kind_named("letters").noun == "letter"
    with pytest.raises(ConfigError, match="'no_such_module' cannot be imported"):
        import_kinds({"PROCTOR_KINDS": "a_kind_of_words, no_such_module"})
