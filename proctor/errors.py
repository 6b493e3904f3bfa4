"""What can go wrong, as the program reports it."""


class ProctorError(Exception):
    """The program refused a request, or could not carry it out.

    Args:
        message: what happened, which value, and where.
        hint: how to mend it.
        code: the program's word for it, such as `input` or `unknown_run`.
        exit_code: the program's: 2 for a mistake in the request, 3 where Redis or a worker is missing.
    """

    def __init__(self, message: str, *, hint: str = "", code: str = "", exit_code: int = 0) -> None:
        super().__init__(f"{message}\nhint: {hint}" if hint else message)
        self.message = message
        self.hint = hint
        self.code = code
        self.exit_code = exit_code


class GateError(AssertionError):
    """A run does not meet a requirement; a test that raises it fails, and is not in error."""


class ProctorWarning(UserWarning):
    """A warning of the program, such as an option that has no effect."""
