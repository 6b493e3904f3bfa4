"""The protocols by their names, as `protocol_of` and configurations have them."""

from collections.abc import Mapping
from typing import Final

from shared.upstream.model_target import ModelTarget
from worker.upstream.completion import WireProtocol
from worker.upstream.protocols.anthropic import ANTHROPIC
from worker.upstream.protocols.gemini import GEMINI
from worker.upstream.protocols.ollama import OLLAMA
from worker.upstream.protocols.openai_chat import AZURE_CHAT, OPENAI_CHAT
from worker.upstream.protocols.openai_responses import RESPONSES

WIRE_PROTOCOLS: Final[Mapping[str, WireProtocol]] = {
    "openai": OPENAI_CHAT,
    "responses": RESPONSES,
    "anthropic": ANTHROPIC,
    "gemini": GEMINI,
    "ollama": OLLAMA,
    "azure": AZURE_CHAT,
}


def wire_protocol(target: ModelTarget) -> WireProtocol:
    """Returns how a model at an `api_base` is spoken to."""
    return WIRE_PROTOCOLS[target.spoken]
