"""Runs patterns and validators of users where they can be stopped and reach nothing: in locked processes."""

from worker.sandbox.failures import Reason, SandboxError, UnusableError
from worker.sandbox.pool import Sandbox, Sandboxes

__all__ = ["Reason", "Sandbox", "SandboxError", "Sandboxes", "UnusableError"]
