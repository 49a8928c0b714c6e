"""The real code, loaded a second time with the model in place of the world.

Nothing of it is changed, and two things are left out: there are no links in the model, so nobody looks for them on the way to a
file. Those looks would be calls, and each call that others mind doubles what there is to try. And an add whose key another process
is letting go of looks twice, not a hundred times, before it is refused.
"""

from __future__ import annotations

import builtins
import importlib.util
from types import ModuleType
from typing import Any

from .kernel import Kernel


class Package:
    """One copy of the package `taskyard`; a broken variant is a copy with a part replaced."""

    def __init__(self) -> None:
        self.kernel = Kernel()
        self._loaded: dict[str, ModuleType] = {}
        self._builtins = {**vars(builtins), "__import__": self._import, "open": self.kernel.open}
        bounds = self.module("stores.directory.filesystem.links").Links
        bounds.keep = lambda *_: None
        bounds.holds = lambda *_: True
        self.module("stores.directory.tasks.keys")._LOOKS = 2

    def module(self, name: str) -> Any:
        """The module of this name within the package, such as `stores.directory.mover`."""
        return self._load(f"taskyard.{name}" if name else "taskyard")

    def _import(
        self, name: str, globals: Any = None, locals: Any = None, fromlist: tuple[str, ...] = (), level: int = 0
    ) -> Any:
        if name in self.kernel.modules:
            return self.kernel.modules[name]
        if not f"{name}.".startswith("taskyard."):
            return builtins.__import__(name, globals, locals, fromlist, level)
        module = self._load(name)
        for part in fromlist or ():
            if not hasattr(module, part):
                self._load(f"{name}.{part}")
        return module if fromlist else self._loaded["taskyard"]

    def _load(self, name: str) -> ModuleType:
        if name in self._loaded:
            return self._loaded[name]
        above, _, last = name.rpartition(".")
        parent = self._load(above) if above else None
        if name in self._loaded:
            return self._loaded[name]  # by its own package
        spec = importlib.util.find_spec(name)
        assert spec is not None and spec.loader is not None, f"no module {name}"  # noqa: PT018
        module = ModuleType(name)
        vars(module).update(__builtins__=self._builtins, __file__=spec.origin, __spec__=spec, __package__=name)
        self._loaded[name] = module
        code = spec.loader.get_code(name)  # type: ignore[attr-defined]
        exec(code, vars(module))
        if parent is not None:
            setattr(parent, last, module)
        return module
