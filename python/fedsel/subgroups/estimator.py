"""What scikit-learn expects of an estimator's parameters, without scikit-learn."""

from __future__ import annotations

import inspect
from typing import Any, Self

from fedsel.errors import DataError


class Parameters:
    """Access by name to what a constructor takes; it must store every argument under its own name."""

    @classmethod
    def _defaults(cls) -> dict[str, Any]:
        signature = inspect.signature(cls)
        return {name: parameter.default for name, parameter in signature.parameters.items()}

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return all parameters by name; `deep` makes no difference."""
        return {name: getattr(self, name) for name in self._defaults()}

    def set_params(self, **parameters: Any) -> Self:
        """Set parameters by name.

        Raises
        ------
        DataError
            If there is none of a name.
        """
        for name, value in parameters.items():
            if name not in self._defaults():
                raise DataError(f"there is no parameter {name}; there are {', '.join(self._defaults())}")
            setattr(self, name, value)
        return self

    def __repr__(self) -> str:
        defaults = self._defaults()
        changed = (f"{name}={value!r}" for name, value in self.get_params().items() if value != defaults[name])
        return f"{type(self).__name__}({', '.join(changed)})"
