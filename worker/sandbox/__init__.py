"""Runs patterns and validators of users where they can be stopped and reach nothing: in locked processes."""

from worker.sandbox.pool import Sandbox, Sandboxes
from worker.sandbox.sandbox_errors import Reason, SandboxError, UnusableError

__all__ = ["Reason", "Sandbox", "SandboxError", "Sandboxes", "UnusableError"]
