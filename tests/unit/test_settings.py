"""Settings come from the environment and nowhere else, are checked there, and show no secret."""

from pathlib import Path

import pytest

from shared.errors import ConfigError
from shared.settings import Settings, default_data_dir, describe

HIDDEN = "geheim"


def test_an_empty_environment_gives_the_defaults() -> None:
    """Without any variable each setting has the documented default, and no server is named."""
    settings = Settings.from_environment({"HOME": "/srv/somebody"})
    assert settings.redis_url is settings.broker_url is None
    assert (settings.grace_s, settings.patience_s, settings.connect_patience_s) == (25.0, 60.0, 5.0)
    assert settings.results_ttl_s == settings.namespace_ttl_s == 30 * 24 * 3600
    assert settings.max_backlog_items == 5_000_000
    assert settings.in_flight == 100
    assert 1 <= settings.processes <= 4
    assert {row.origin for row in describe(settings)} == {"default"}


def test_each_setting_is_read_from_its_variable() -> None:
    """Every row of `config show` names a variable that really sets it."""
    values = {"data_dir": "/srv/proctor", "redis_url": "redis://db", "broker_url": "redis://queue"}
    values |= {
        "allow_code": "1",
        "unsafe_validators": "1",
        "block_private": "1",
        "trust_env": "1",
        "key_variables": "MY_SECRET",
    }
    values |= {"log_format": "json", "log_level": "debug", "flower_auth": "alice:7", "redact": "mail"}
    for row in describe(Settings(data_dir=Path("/x"))):
        settings = Settings.from_environment({row.env: values.get(row.name, "7")})
        (found,) = [each for each in describe(settings) if each.name == row.name]
        assert found.origin == "environment"
        assert str(found.value) in {values.get(row.name), "7", "7.0", "True", "alice:***", "***"}


def test_an_empty_variable_counts_as_not_set() -> None:
    """`PROCTOR_REDIS_URL=` in a compose file means: no URL."""
    settings = Settings.from_environment({"PROCTOR_REDIS_URL": " ", "PROCTOR_DATA_DIR": "", "HOME": "/srv"})
    assert settings.redis_url is None
    assert settings.data_dir.name == "proctor"


@pytest.mark.parametrize(
    ("variable", "value", "why"),
    [
        ("PROCTOR_PROCESSES", "two", "a whole number from 1 is needed"),
        ("PROCTOR_PROCESSES", "0", "a whole number from 1 is needed"),
        ("PROCTOR_PROCESSES", "-1", "a whole number from 1 is needed"),
        ("PROCTOR_IN_FLIGHT", "1.5", "a whole number from 1 is needed"),
        ("PROCTOR_GRACE_S", "soon", "a number of seconds is needed"),
        ("PROCTOR_GRACE_S", "nan", "a number of seconds is needed"),
        ("PROCTOR_GRACE_S", "-3", "a number of seconds is needed"),
        ("PROCTOR_UNSAFE_VALIDATORS", "perhaps", "1 or 0 is needed"),
        ("PROCTOR_LEASE_S", "0.5", "at least 1 s are needed"),
        ("PROCTOR_REDACT", "mail, phone", "one or more of card, mail are needed"),
        (
            "PROCTOR_ALLOWED_HOSTS",
            "https://api.openai.com/v1",
            "hosts alone are needed, such as api.openai.com, *.example.com",
        ),
        ("PROCTOR_KEY_VARIABLES", "MY-KEY", "names of variables are needed, such as MY_MODEL_PASSWORD"),
        ("PROCTOR_PATIENCE_S", "0", "a number of seconds above 0 is needed"),
    ],
)
def test_a_value_that_cannot_be_used_is_named(variable: str, value: str, why: str) -> None:
    """The error names variable, value and reason, and the command ends with exit code 2."""
    with pytest.raises(ConfigError) as caught:
        Settings.from_environment({variable: value, "HOME": "/srv"})
    assert str(caught.value) == f"{variable}='{value}' cannot be used: {why}"
    assert variable in caught.value.hint
    assert caught.value.exit_code == 2


def test_a_secret_can_stand_in_a_file(tmp_path: Path) -> None:
    """`PROCTOR_REDIS_URL_FILE` keeps the password out of the environment; its path is the origin."""
    file = tmp_path / "url"
    file.write_text(f"redis://:{HIDDEN}@db\n")
    settings = Settings.from_environment({"PROCTOR_REDIS_URL_FILE": str(file), "HOME": "/srv"})
    assert settings.redis_url == f"redis://:{HIDDEN}@db"
    (row,) = [row for row in describe(settings) if row.name == "redis_url"]
    assert row.origin == str(file)


def test_a_secret_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    """A missing file, and a variable beside its file, are errors that say which."""
    with pytest.raises(ConfigError, match=r"PROCTOR_BROKER_URL_FILE=.*No such file"):
        Settings.from_environment({"PROCTOR_BROKER_URL_FILE": str(tmp_path / "none"), "HOME": "/srv"})
    with pytest.raises(ConfigError, match="PROCTOR_REDIS_URL and PROCTOR_REDIS_URL_FILE are both set"):
        Settings.from_environment(
            {"PROCTOR_REDIS_URL": "redis://a", "PROCTOR_REDIS_URL_FILE": "b", "HOME": "/srv"}
        )


@pytest.mark.parametrize("login", [HIDDEN, f":{HIDDEN}", f"alice:{HIDDEN} ,", f"alice:{HIDDEN},b:c"])
def test_a_login_that_cannot_be_used_is_not_shown(login: str) -> None:
    """The error about Flower's login names the variable and the form, and nothing of the login."""
    with pytest.raises(ConfigError, match=r"PROCTOR_FLOWER_AUTH=.*USER:PASSWORD is needed") as caught:
        Settings.from_environment({"PROCTOR_FLOWER_AUTH": login, "HOME": "/srv"})
    assert HIDDEN not in str(caught.value)


def test_no_listing_shows_a_password() -> None:
    """Neither `config show` nor a settings object in a traceback holds a password."""
    settings = Settings.from_environment(
        {
            "PROCTOR_REDIS_URL": f"redis://u:{HIDDEN}@db/0",
            "PROCTOR_FLOWER_AUTH": f"alice:{HIDDEN}",
            "HOME": "/srv",
        }
    )
    assert HIDDEN not in repr(settings)
    assert HIDDEN not in str(describe(settings))
    assert "redis://u:***@db/0" in str(describe(settings))


def test_a_flag_overrides_and_is_the_origin() -> None:
    """What the command line says wins, and `config show` says so."""
    settings = Settings.from_environment({"PROCTOR_REDIS_URL": "redis://a", "HOME": "/srv"})
    flagged = settings.override("--redis", redis_url="redis://b")
    assert flagged.redis_url == "redis://b"
    (row,) = [row for row in describe(flagged) if row.name == "redis_url"]
    assert (row.value, row.origin) == ("redis://b", "--redis")


def test_the_data_folder_is_absolute(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A relative folder counts from where the command was started, `~` is the home folder."""
    monkeypatch.chdir(tmp_path)
    assert Settings.from_environment({"PROCTOR_DATA_DIR": "here"}).data_dir == tmp_path / "here"
    monkeypatch.setenv("HOME", str(tmp_path))
    assert Settings.from_environment({"PROCTOR_DATA_DIR": "~/there"}).data_dir == tmp_path / "there"


def test_a_relative_xdg_folder_is_ignored() -> None:
    """As the XDG specification asks."""
    assert default_data_dir({"XDG_DATA_HOME": "relative"}).is_absolute()


@pytest.mark.parametrize(
    ("patterns", "why"),
    [
        ("K-\\d+\n(geheim", "line 2 is not a regular expression"),
        ("geheim|", "line 1 also matches the empty text"),
    ],
)
def test_a_pattern_that_cannot_be_used_is_named_by_its_line(patterns: str, why: str) -> None:
    """Expressions may say what they hide, and are not repeated."""
    with pytest.raises(ConfigError, match=why) as caught:
        Settings.from_environment({"PROCTOR_REDACT_PATTERNS": patterns})
    assert HIDDEN not in str(caught.value)
