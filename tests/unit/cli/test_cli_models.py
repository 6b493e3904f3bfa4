"""What the options of models mean, and which values are refused."""

from typing import Any

import msgspec
import pytest

from producer.cli.options.choices import read_live_run
from producer.cli.options.option_groups import given_flags
from producer.cli.options.run_options import ModelOptions
from producer.cli.options.shared_options import SubmitChoice
from shared.contracts.live_turns import LiveRun
from shared.contracts.turn_vocabulary import Live
from shared.errors import UsageError
from shared.kinds import QUERIES
from shared.upstream.model_target import ModelTarget
from shared.upstream.prices import GivenPrice


def test_without_a_model_turns_are_not_asked() -> None:
    """No option, no settings."""
    assert read_live_run(ModelOptions(), in_flight=7) is None
    assert given_flags(ModelOptions()) == []
    assert given_flags(ModelOptions(max_cost=0.0)) == ["--max-cost"]


def test_a_model_alone_is_asked_about_must_and_should() -> None:
    """Everything else has its default, and `-j` bounds the run."""
    assert read_live_run(ModelOptions(models=("openai/gpt-4o",)), in_flight=7) == LiveRun(
        ModelTarget("openai/gpt-4o"), live=Live.SHOULD, concurrency=7
    )


def test_all_options_together() -> None:
    """Each one has its place in the settings, and the settings survive the snapshot."""
    words = ModelOptions(
        models=("mine",),
        live="must",
        api_base="http://localhost:8000/v1/",
        api_key_env="MY_KEY",
        temperature=0.0,
        max_cost=2.5,
        price="0.15/0.6",
        no_cache=True,
    )
    live = read_live_run(words)
    assert live == LiveRun(
        ModelTarget("mine", api_base="http://localhost:8000/v1", api_key_env="MY_KEY"),
        live=Live.MUST,
        temperature=0.0,
        max_cost=2.5,
        use_cache=False,
        prices={"mine": GivenPrice(0.15, 0.6)},
    )
    assert LiveRun.from_snapshot({"asking": msgspec.to_builtins(live)}) == live


@pytest.mark.parametrize(
    ("words", "text"),
    [
        ({"live": "must"}, "--live needs a model"),
        ({"temperature": 0.0}, "--temperature needs a model"),
        ({"no_cache": True}, "--no-cache needs a model"),
        ({"models": ("a", "b")}, "turns are answered by one model"),
        ({"models": (" ",)}, "--model: the name is empty"),
        ({"models": ("a",), "api_base": "localhost:80"}, "is no URL"),
        ({"models": ("a",), "api_base": "http://host:99999"}, "is no URL"),
        ({"models": ("a",), "api_base": "https://me:secret@host/v1"}, "a password in it"),
        ({"models": ("a",), "api_key_env": "sk-123"}, "no variable's name"),
        ({"models": ("a",), "api_key_env": "sk_live_123"}, "no variable's name"),
        ({"models": ("a",), "price": "1"}, "is no price"),
        ({"models": ("a",), "price": "nan/1"}, "is no price"),
        ({"models": ("a",), "price": "-1/1"}, "is no price"),
        ({"models": ("a",), "max_cost": float("inf")}, "must be a finite number"),
    ],
)
def test_what_cannot_be_used_is_refused(words: dict[str, Any], text: str) -> None:
    """The message names the option; a key that was given for a variable is not repeated."""
    with pytest.raises(UsageError, match=text) as caught:
        read_live_run(ModelOptions(**words))
    assert "secret" not in caught.value.message
    assert "123" not in caught.value.message
    assert caught.value.hint


def test_files_that_ask_no_model_take_none_of_it() -> None:
    """The first option that was given is named."""
    with pytest.raises(UsageError, match="--model is for runs that ask a model"):
        SubmitChoice(models=ModelOptions(models=("a",))).refuse_other_kinds(QUERIES)
    SubmitChoice().refuse_other_kinds(QUERIES)
