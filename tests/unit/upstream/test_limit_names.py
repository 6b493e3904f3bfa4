"""Holds how limits are named, read and turned into the units of the scripts."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared.errors import UsageError
from shared.upstream.limits import Limits, Scope, account_of, limit_key
from shared.upstream.model_target import ModelTarget
from worker.upstream.endpoints import api_endpoint, model_endpoint, run_scope
from worker.upstream.limiter import scope_limits_of


@pytest.mark.parametrize(
    ("text", "key"),
    [
        ("http://localhost:3000/", "http://localhost:3000"),
        ("http://LOCALHOST:80", "http://localhost"),
        ("https://h:443/v1//", "https://h/v1"),
        ("https://h:80", "https://h:80"),
        ("http://[::1]:3000/x", "http://[::1]:3000/x"),
        ("http://[::1]", "http://[::1]"),
        ("http://user:pass@h/p?q=1#f", "http://h/p"),
        ("openai/gpt-4o", "openai/gpt-4o"),
    ],
)
def test_a_url_has_one_name(text: str, key: str) -> None:
    """However a URL is written, its limits are found, and no password gets into a name."""
    assert limit_key(text) == key
    assert limit_key(key) == key


@pytest.mark.parametrize("text", ["", "  ", "two words", "http://[::1", "http://h:port/"])
def test_what_names_nothing_is_refused(text: str) -> None:
    """Mistyped names are an error instead of a limit for nobody."""
    with pytest.raises(UsageError):
        limit_key(text)


@pytest.mark.parametrize("model", ["my own model", "my models/one two", "a\tb", "http://[", " "])
def test_any_name_of_a_model_can_be_asked(model: str) -> None:
    """A name that limits do not take has scopes like any other: asking it does not fail in the worker."""
    for api_base in ("", "http://localhost:1/v1"):
        for scope in model_endpoint(ModelTarget(model, api_base=api_base), "1f2e3d4c").scopes:
            found = Scope.parse(scope.name)
            assert (found.key, found.place, found.account) == (scope.key, scope.place, "1f2e3d4c")


@given(st.text(min_size=1))
def test_a_key_is_not_in_the_name_of_its_account(secret: str) -> None:
    """An account's name is eight hex digits, whatever the key is."""
    account = account_of(secret)
    assert len(account) == 8
    assert set(account) <= set("0123456789abcdef")


def test_what_a_person_sets_goes_before_what_the_caller_says() -> None:
    """Each limit of `limits set` replaces the caller's; the others stay."""
    assert Limits(rpm=5).over(Limits(rpm=9, tpm=7)) == Limits(rpm=5, tpm=7)


@pytest.mark.parametrize(
    ("limits", "request_ms", "burst_ms"),
    [
        (Limits(rpm=60), 1_000, 0),
        (Limits(rpm=120), 500, 0),
        (Limits(rpm=1_200), 50, 450),
        (Limits(pace_s=2), 2_000, 0),
        (Limits(pace_s=0.1), 100, 0),
        (Limits(pace_s=0.1, rpm=60), 1_000, 0),
        (Limits(), 0, 500),
    ],
)
def test_a_burst_is_half_a_seconds_worth_at_most(limits: Limits, request_ms: float, burst_ms: float) -> None:
    """A limit lets half a second's worth through at once; a pace lets one through at a time."""
    bound = scope_limits_of(Scope("m"), limits)
    assert (bound.request_ms, bound.burst_ms) == (request_ms, burst_ms)


def test_an_endpoint_has_the_scopes_whose_limits_hold_for_it() -> None:
    """A model's calls count for model and provider or endpoint, an API's for its URL, all for their run."""
    run = run_scope("r1", concurrency=3, pace_s=0)
    assert run.limits == Limits(concurrency=3)
    model = model_endpoint(ModelTarget("anthropic/claude"), "abc", run)
    assert [scope.name for scope in model.scopes] == ["anthropic/claude abc", "anthropic abc", "run:r1"]
    local = model_endpoint(ModelTarget("openai/x", api_base="http://Localhost:80/v1/"), "", run)
    assert [scope.name for scope in local.scopes] == [
        "openai/x @http://localhost/v1",
        "http://localhost/v1",
        "run:r1",
    ]
    assert [scope.name for scope in model_endpoint(ModelTarget("gpt-4o"), "").scopes] == ["gpt-4o"]
    assert [scope.name for scope in api_endpoint("http://h/", run).scopes] == ["http://h", "run:r1"]
