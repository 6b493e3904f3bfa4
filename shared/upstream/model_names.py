"""Finds out whether a model's name says who serves it, without importing litellm; suggests names that do.

openai/gpt-4o    the provider comes first; any model of a known provider is accepted, also a newer one
gpt-4o           litellm finds the provider of names that are in its table
nosuch           nobody can be called: it needs a provider, or an `api_base`
"""

import re
from collections.abc import Iterator
from difflib import get_close_matches
from typing import Final

from shared.upstream.key_variables import provider_of
from shared.upstream.prices import listed_models, listed_provider, listed_providers

PROVIDERS: Final = frozenset(
    """
    a2a a2a_agent abliteration ai21 ai21_chat aihubmix aiml aiohttp_openai amazon_nova anthropic
    anthropic_text apertis assemblyai auto_router aws_polly aws_textract azure azure_ai azure_speech
    azure_text baseten bedrock bedrock_mantle black_forest_labs bytez cerebras charity_engine chatgpt
    chutes clarifai cloudflare codestral cognition cohere cohere_chat cometapi compactifai cortecs
    crusoe cursor custom custom_openai darkbloom dashscope databricks datarobot deepgram deepinfra
    deepseek docker_model_runner dotprompt edenai elevenlabs empiriolabs empower fal_ai featherless_ai
    fireworks_ai friendliai galadriel gdc gemini gigachat github github_copilot gmi gradient_ai groq
    helicone heroku hosted_vllm huggingface humanloop hyperbolic inception infinity jina_ai lambda_ai
    langflow langfuse langgraph lemonade libertai litellm_agent litellm_proxy llamafile llamagate
    lm_studio manus maritalk meta meta_llama milvus minimax mistral modelscope mongodb moonshot morph
    nadir nano-gpt nebius neosantara nlp_cloud novita nscale nvidia_nim nvidia_riva oci ollama
    ollama_chat oobabooga openai openai_like openrouter ovhcloud parasail perplexity petals pg_vector
    pinstripes poe predibase prism publicai qwen_ai_platform qwencloud ragflow recraft reducto reka
    replicate runwayml s3_vectors sagemaker sagemaker_chat sagemaker_nova sail sambanova sap sarvam
    scaleway scx-ai snowflake soniox stability strands_decider synthetic tencent tensormesh
    text-completion-codestral text-completion-inception text-completion-openai together_ai topaz
    transcribe triton typesafe v0 valkey veniceai vercel_ai_gateway vertex_ai vertex_ai_beta vllm
    volcengine voyage wandb watsonx watsonx_text xai xiaomi_mimo xinference zai
    """.split()  # noqa: SIM905 - 170 quoted names would be as many lines
)
"""What may stand before the slash. `tests/contract/test_model_names.py` compares it with litellm."""
NEED_PREFIX: Final = frozenset({"deepseek", "gemini", "together_ai", "volcengine"})
"""Providers in litellm's table whose models it does not find by the name alone."""
TUNED: Final = "ft:"
TUNED_FOUND: Final = ("ft:gpt-3.5-turbo", "ft:gpt-4", "ft:babbage-002", "ft:davinci-002")
"""Beginnings of fine-tuned models that litellm finds by the name alone."""
OWN_NAMES: Final = frozenset({"azure", "ollama", "ollama_chat", "hosted_vllm", "lm_studio", "llamafile"})
"""Providers whose models are called as people call them."""
_VERSION: Final = re.compile(r"[\d.:@-]+", re.ASCII)
"""What the names of versions of a model differ in."""
NEAR: Final = 0.9
"""How similar a listed name is to one that is probably misspelt."""
LIKENESS: Final = 0.75
"""How similar a suggestion is, from 0 to 1."""
MOST_SUGGESTED: Final = 2


def has_provider(model: str) -> bool:
    """Whether litellm finds the provider of a model that has no `api_base`.

    >>> has_provider("openai/gpt-99"), has_provider("gpt-4o"), has_provider("nosuch"), has_provider("a/b")
    (True, True, False, False)
    """
    provider, slash, _ = model.partition("/")
    if slash:
        return provider in PROVIDERS or provider in listed_providers()
    if model.startswith(TUNED):
        return model.startswith(TUNED_FOUND)
    listed = listed_provider(model)
    return not listed_providers() if listed is None else listed not in NEED_PREFIX


def suggested_names(model: str) -> list[str]:
    """Returns names that are probably meant, the best first.

    >>> suggested_names("gpt4o")[0], suggested_names("opnai/gpt-4o")
    ('gpt-4o', ['openai/gpt-4o'])
    >>> suggested_names("mistral-large-latest")[0]
    'mistral/mistral-large-latest'
    """
    return list(dict.fromkeys(_suggestions(model.lower())))[:MOST_SUGGESTED]


def nearest_listed(model: str) -> str:
    """Returns the listed model that a model of a known provider is probably meant to be; empty without one.

    Names that differ in digits alone are other versions, and newer ones are not listed.

    >>> [nearest_listed(f"openai/{name}") for name in ("gpt-4o-minni", "gpt-4o", "gpt-9o")]
    ['openai/gpt-4o-mini', '', '']
    """
    provider, slash, name = model.partition("/")
    if not slash or provider in OWN_NAMES or listed_provider(model) or listed_provider(name) == provider:
        return ""
    listed = [
        each.removeprefix(f"{provider}/") for each in listed_models() if listed_provider(each) == provider
    ]
    if name in listed:
        return ""
    close = get_close_matches(name, listed, n=1, cutoff=NEAR)
    is_version = bool(close) and _VERSION.sub("", close[0]) == _VERSION.sub("", name)
    return f"{provider}/{close[0]}" if close and not is_version else ""


def _suggestions(model: str) -> Iterator[str]:
    provider, slash, name = model.partition("/")
    if slash:
        close = get_close_matches(provider, sorted(PROVIDERS), n=1, cutoff=LIKENESS)
        yield from (f"{each}/{name}" for each in close)
        if not close and has_provider(name):
            yield name
        return
    listed = listed_provider(model)
    if listed in PROVIDERS:
        yield f"{listed}/{model}" if listed in NEED_PREFIX else model
        return
    inside = [each for each in listed_models() if each.partition("/")[2] == model and has_provider(each)]
    yield from sorted(inside, key=lambda each: not model.startswith(each.partition("/")[0]))
    known = [each for each in listed_models() if "/" not in each and has_provider(each)]
    yield from get_close_matches(model, known, n=1, cutoff=LIKENESS)
    if family := provider_of(model):
        yield f"{family}/{model}"
