"""References to names in modules that are imported only when they are used."""

from dataclasses import dataclass
from importlib import import_module
from typing import Generic, TypeVar, cast

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Lazy(Generic[T]):
    """A lazy reference to a name in a module: a command that needs no report imports none.

    >>> Lazy("math", "pi").get()
    3.141592653589793
    """

    module: str
    name: str

    def get(self) -> T:
        """Imports the module and returns the value of the name."""
        return cast("T", getattr(import_module(self.module), self.name))
