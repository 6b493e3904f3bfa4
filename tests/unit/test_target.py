"""A Redis URL is read once, strictly, and written in the form that each library wants."""

import subprocess
import sys

import pytest
from redis.sentinel import SentinelConnectionPool

from shared.errors import ConfigError
from shared.server.client import RedisTarget
from shared.server.redis_url import mask_password
from tests.support.tree import ROOT

ODD = "ge/h@e:im"
QUOTED = "ge%2Fh%40e%3Aim"


@pytest.mark.parametrize(
    ("url", "redis_url", "celery_url"),
    [
        ("redis://db", "redis://db:6379/0", "redis://db:6379/0"),
        ("REDIS://db:7000/3", "redis://db:7000/3", "redis://db:7000/3"),
        ("redis://db?db=4", "redis://db:6379/4", "redis://db:6379/4"),
        (" redis://[::1]:7000/ ", "redis://[::1]:7000/0", "redis://[::1]:7000/0"),
        (f"redis://u:{QUOTED}@db/1", f"redis://u:{QUOTED}@db:6379/1", f"redis://u:{QUOTED}@db:6379/1"),
        ("rediss://db", "rediss://db:6379/0", "rediss://db:6379/0?ssl_cert_reqs=required"),
        (
            "rediss://db?ssl_cert_reqs=none",
            "rediss://db:6379/0?ssl_cert_reqs=none",
            "rediss://db:6379/0?ssl_cert_reqs=none",
        ),
        ("unix:///run/r.sock", "unix:///run/r.sock", "redis+socket:///run/r.sock?virtual_host=0"),
        ("unix:///run/r.sock?db=2", "unix:///run/r.sock?db=2", "redis+socket:///run/r.sock?virtual_host=2"),
        (
            "redis+socket:///run/r.sock?virtual_host=2",
            "unix:///run/r.sock?db=2",
            "redis+socket:///run/r.sock?virtual_host=2",
        ),
        ("unix:///a%20b/s", "unix:///a%20b/s", "redis+socket:///a%20b/s?virtual_host=0"),
        (
            "sentinel://:pw@one,two:26380/main/1",
            "sentinel://:pw@one:26379,two:26380/main/1",
            "sentinel://:pw@one:26379/1;sentinel://:pw@two:26380/1",
        ),
    ],
)
def test_each_form_is_written_for_each_library(url: str, redis_url: str, celery_url: str) -> None:
    """The URL for redis-py, the one for Celery, and reading the first again gives the same target."""
    target = RedisTarget.parse(url)
    assert target.redis_url == redis_url
    assert target.celery_url == celery_url
    assert RedisTarget.parse(redis_url) == target


def test_the_sentinels_have_a_master_and_a_login_of_their_own() -> None:
    """Celery needs the master's name beside the URL; the sentinels' password is not the server's."""
    target = RedisTarget.parse("sentinel://:pw@one/main?sentinel_password=other")
    assert target.transport_options == {"master_name": "main", "sentinel_kwargs": {"password": "other"}}
    assert RedisTarget.parse("redis://db").transport_options == {}
    client = target.client()
    assert isinstance(client.connection_pool, SentinelConnectionPool)
    assert client.connection_pool.service_name == "main"
    assert client.connection_pool.connection_kwargs.get("password") == "pw"


@pytest.mark.parametrize(
    ("url", "why"),
    [
        ("", "it has no known scheme, or no host"),
        ("localhost:6379", "it has no known scheme, or no host"),
        ("http://db", "it has no known scheme, or no host"),
        ("redis://", "it has no known scheme, or no host"),
        ("redis:///0", "it names no host"),
        ("redis://db:99999", "there is no port 99999"),
        ("redis://db:port", "'db:port' is no HOST or HOST:PORT"),
        ("redis://a b", "'a b' is no HOST or HOST:PORT"),
        ("redis://[::1", "it cannot be read"),
        ("redis://db?db", "it cannot be read"),
        ("redis://db/zero", "the database is a number, not 'zero'"),
        ("redis://db/0#x", "`#` in it is written %23"),
        ("redis://db?sll_cert_reqs=none", "it knows no option 'sll_cert_reqs'"),
        ("rediss://db?sll_cert_reqs=none", "did you mean ssl_cert_reqs?"),
        ("rediss://db?ssl_cert_reqs=maybe", "ssl_cert_reqs is required, optional or none"),
        ("unix://run/r.sock", "three slashes"),
        ("unix:///", "three slashes"),
        ("sentinel://one:26379", "it names no master"),
    ],
)
def test_a_wrong_url_is_named_with_the_reason_and_the_right_forms(url: str, why: str) -> None:
    """The error holds the URL, what is wrong with it, and how it is written; the exit code is 2."""
    with pytest.raises(ConfigError) as caught:
        RedisTarget.parse(url)
    assert str(caught.value).startswith(f"'{url}' names no Redis server: ")
    assert why in str(caught.value)
    assert "redis://[USER:PASSWORD@]HOST" in caught.value.hint
    assert caught.value.exit_code == 2


@pytest.mark.parametrize(
    "url",
    [
        f"redis://:{ODD}@db:6379/0",
        f"redis://user:{ODD}@db",
        f"redis://{ODD}@db",
        f"nonsense://user:{ODD}@db",
        f"redis://user:{ODD}@db:port",
        f"sentinel://:{ODD}@a,b/main",
        f"sentinel://a:1;sentinel://:{ODD}@b",
        f"redis://db?password={ODD}",
        f"sentinel://a/main?sentinel_password={ODD}&sentinel_username=u",
        f"redis://u:p?{ODD}=1@db",
        f"redis://u:#{ODD}@db",
        f"unix://:{ODD}@/run/s",
    ],
)
def test_a_password_is_never_shown(url: str) -> None:
    """Neither in the display, nor in a representation, nor in an error, however wrong the URL is."""
    assert "im" not in mask_password(url).replace("sentinel", "").replace("main", "")
    try:
        target = RedisTarget.parse(url)
    except ConfigError as error:
        shown = str(error)
    else:
        shown = f"{target.display} {target!r}"
    assert "h@e" not in shown
    assert ":im" not in shown


def test_a_password_with_odd_characters_reaches_the_client() -> None:
    """Quoted characters are unquoted once, for redis-py as for Celery."""
    target = RedisTarget.parse(f"redis://u%40x:{QUOTED}@db")
    known = target.client().connection_pool.connection_kwargs
    assert (known["username"], known["password"]) == ("u@x", ODD)


def test_a_client_retries_nothing() -> None:
    """The ledger does its own retrying; a client that does too would multiply it."""
    known = RedisTarget.parse("redis://db").client(socket_timeout_s=3.0).connection_pool.connection_kwargs
    assert known["retry"]._retries == 0
    assert known["socket_timeout"] == 3.0


def test_reading_settings_and_urls_imports_no_library() -> None:
    """`--help` and a mistyped URL cost milliseconds: no redis, no pydantic is loaded."""
    code = (
        "import sys, shared.settings, shared.server.client\n"
        "shared.server.client.RedisTarget.parse('redis://db').celery_url\n"
        "print(*sorted({'redis', 'pydantic', 'kombu', 'celery', 'subprocess'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == ""
