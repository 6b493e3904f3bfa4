"""Tests which addresses of models and APIs are stored with a run, through each door that takes one."""

import pytest

from producer.cli.options.choices import api_base_of
from producer.cli.options.run_options import ModelOptions
from shared.contracts.case_config import ModelConfig
from shared.contracts.query_environment import api_url
from shared.errors import ConfigError, UsageError

SECRET = "geheim-4711"  # noqa: S105 - made up
WITH_SECRETS = (
    f"https://me:{SECRET}@api.example.com/v1",
    f"https://{SECRET}@api.example.com/v1",
    f"https://api.example.com/v1?api-key={SECRET}",
    f"https://api.example.com/v1?api-version=1&subscription-key={SECRET}",
    f"https://api.example.com/v1?access_token={SECRET}",
    f"https://api.example.com/v1?x=1&sig={SECRET}",
)


@pytest.mark.parametrize("url", WITH_SECRETS)
def test_a_secret_in_an_address_is_refused_at_every_door(url: str) -> None:
    """The file's `api_base`, --api-base and --api-url refuse it, without repeating it, and say what to do."""
    with pytest.raises(ValueError, match=r"stored with the run.*api_key_env") as by_file:
        ModelConfig(api_base=url)
    with pytest.raises(UsageError) as by_option:
        api_base_of(ModelOptions(api_base=url))
    with pytest.raises(ConfigError) as by_url:
        api_url(url, {})
    assert SECRET not in f"{by_file.value.errors(include_input=False)} {by_option.value} {by_url.value}"  # type: ignore[attr-defined] # pydantic's own error
    assert by_option.value.hint
    assert by_url.value.hint


@pytest.mark.parametrize("url", ["https://me.example.com/v1?api-version=2024-10-21", "http://localhost:8000"])
def test_other_addresses_are_taken(url: str) -> None:
    """A version in the query is no secret."""
    assert ModelConfig(api_base=url).api_base == url
    assert api_base_of(ModelOptions(api_base=url)) == url
