"""Which names of models say who serves them, compared with litellm, which is imported once here."""

import warnings
from typing import Any

import pytest

from shared.upstream.model_names import NEED_PREFIX, PROVIDERS, has_provider, suggested_names
from shared.upstream.prices import listed_models, listed_provider
from worker.upstream.litellm_client import load_library


@pytest.fixture(scope="module")
def litellm() -> Any:
    """The library, as workers load it."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # those of litellm
        return load_library()


def test_providers_are_those_of_litellm(litellm: Any) -> None:
    """A provider that litellm calls is accepted, and the list has no other: after an update, copy the set."""
    from litellm.llms.openai_like.json_loader import JSONProviderRegistry  # noqa: PLC0415 - after load_library

    declared = {str(getattr(each, "value", each)) for each in litellm.provider_list}
    assert declared | {*JSONProviderRegistry.list_providers()} == PROVIDERS


def test_names_alone_are_accepted_where_litellm_finds_their_provider(litellm: Any) -> None:
    """Each listed name without a provider is accepted exactly if litellm can call it."""
    bare = [name for name in listed_models() if "/" not in name]
    assert len(bare) > 100
    assert [name for name in bare if has_provider(name) != _is_found(litellm, name)] == []
    assert {listed_provider(name) for name in bare if not has_provider(name)} - {"openai"} == NEED_PREFIX


@pytest.mark.parametrize(
    "name", ["nosuch", "gpt-99", "claude-99", "GPT-4o", "OpenAI/gpt-4o", "a/b", "ft:o3:x"]
)
def test_names_that_litellm_refuses_are_refused(litellm: Any, name: str) -> None:
    """Nobody is called by them, however often it is tried."""
    assert not _is_found(litellm, name)
    assert not has_provider(name)


@pytest.mark.parametrize(
    "name", ["openai/gpt-99", "ollama/mine", "ft:gpt-4o:org:x", "gpt-4o", "azure/my-own"]
)
def test_models_of_known_providers_are_accepted(litellm: Any, name: str) -> None:
    """They may be newer than the list, or people's own."""
    assert _is_found(litellm, name)
    assert has_provider(name)


@pytest.mark.parametrize("name", ["gpt4o", "GPT-4o", "opnai/gpt-4o", "mistral-large-latest", "claude-99"])
def test_suggested_names_can_be_called(litellm: Any, name: str) -> None:
    """A hint names only what is accepted."""
    names = suggested_names(name)
    assert names
    assert all(_is_found(litellm, each) and has_provider(each) for each in names)


def _is_found(litellm: Any, name: str) -> bool:
    """Whether litellm finds the provider of a model."""
    try:
        litellm.get_llm_provider(name)
    except litellm.exceptions.BadRequestError:
        return False
    return True
