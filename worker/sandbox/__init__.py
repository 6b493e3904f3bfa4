"""Runs patterns and validators of users where they can be stopped and reach nothing: in locked processes."""

from worker.sandbox.pool import Sandbox, Sandboxes
from worker.sandbox.sandbox_errors import SandboxError, SandboxReason, UnusableError

__all__ = ["Sandbox", "SandboxError", "SandboxReason", "Sandboxes", "UnusableError"]
