"""Holds the settings of queries: the two documented environment variables, and the time limit."""

import pytest

from producer.cli.options.choices import read_query_run
from producer.cli.options.run_options import QueryOptions, SelectionOptions
from shared.contracts.query_environment import api_url, delay_s
from shared.contracts.query_run import QueryRun
from shared.errors import ConfigError, UsageError
from worker.upstream.exchange import NO_TIMEOUT
from worker.upstream.query_client import body_with, build_request


def test_the_flag_beats_the_environment_which_beats_the_default() -> None:
    """For the delay as for the URL."""
    environment = {"EVAL_DELAY_SECONDS": "5", "EVAL_API_URL": "http://env:1"}
    assert (delay_s(2, environment), delay_s(None, environment), delay_s(None, {})) == (2, 5, 30)
    assert delay_s(None, {}, default=0) == 0
    assert api_url("http://flag:2", environment) == "http://flag:2"
    assert api_url(None, environment) == "http://env:1"
    assert api_url(None, {}) == "http://localhost:3000"


def test_slashes_at_the_end_of_the_url_are_cut() -> None:
    """The endpoint's path follows without a double slash."""
    assert api_url("https://api.example/base//", {}) == "https://api.example/base"


@pytest.mark.parametrize("value", ["soon", "1.5", "-1", "٣", "86401", "9" * 5000])
def test_a_delay_that_is_no_number_of_seconds_is_refused(value: str) -> None:
    """The error names the variable."""
    with pytest.raises(ConfigError, match="EVAL_DELAY_SECONDS"):
        delay_s(None, {"EVAL_DELAY_SECONDS": value})


def test_a_negative_flag_is_refused() -> None:
    """The error names the flag."""
    with pytest.raises(ConfigError, match="--delay"):
        delay_s(-1, {})


@pytest.mark.parametrize(
    "value",
    [
        "localhost:3000",
        "ftp://a",
        "http://",
        "http://a:99999",
        "http://a b",
        "http://a?x=1",
        "http://[",
        "\x1b",
    ],
)
def test_what_is_no_http_address_is_refused(value: str) -> None:
    """An address needs scheme, host and a port in range."""
    with pytest.raises(ConfigError, match="--api-url"):
        api_url(value, {})


def test_a_number_in_the_place_of_the_query_makes_an_array() -> None:
    """Element 0 is sent alone; one that needs others before it is refused, but no name of a parameter."""
    place = "/conversation/0/text"
    run = read_query_run(QueryOptions(places=(f"query={place}",)), SelectionOptions())
    assert body_with(run.query_at, "How?") == {"conversation": [{"text": "How?"}]}
    assert body_with("/0", "How?") == ["How?"]
    for later in ("/conversation/1/text", "/10"):
        with pytest.raises(UsageError, match=f"--field: '{later}'"):
            read_query_run(QueryOptions(places=(f"query={later}",)), SelectionOptions())
    named = QueryOptions(places=("query=/10",), method="GET")
    assert read_query_run(named, SelectionOptions()).query_at == "/10"


def test_a_time_limit_is_not_rounded_up() -> None:
    """The HTTP client, which would end a long request at a whole second of the loop's clock, has no limit."""
    limits = NO_TIMEOUT.total, NO_TIMEOUT.connect, NO_TIMEOUT.sock_connect, NO_TIMEOUT.sock_read
    assert limits == (None, None, None, None)
    assert build_request(QueryRun(timeout_s=0.5)).timeout_s == 0.5
