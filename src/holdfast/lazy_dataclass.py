"""`dataclass` whose methods are made for its first instance instead of at import.

`dataclasses` compiles six functions for a class, which takes half a millisecond. An agent's first hook waits for a
daemon that imports 150 of these classes and uses a third of them: a quarter of its start went into the rest.
Everything else of `dataclasses` works on these classes as usual. `slots` is for the type checker alone here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from dataclasses import dataclass as dataclass
else:
    import dataclasses
    from functools import partial
    from threading import RLock

    _COMPLETING = RLock()
    _OF_THE_CLASS = frozenset({"__dict__", "__weakref__", "__init__", "__dataclass_fields__"})

    def dataclass(cls=None, /, *, slots=False, **options):
        """Make a class a data class, as `dataclasses.dataclass` does, but when it is first used."""
        if cls is None:
            return partial(dataclass, slots=slots, **options)
        if "__init__" in vars(cls):
            return dataclasses.dataclass(cls, **options)
        complete = partial(_complete, cls, options)

        def first(self, /, *args, **kwargs):
            complete()
            cls.__init__(self, *args, **kwargs)

        cls.__init__ = first
        cls.__dataclass_fields__ = _FieldsOnDemand(complete)
        return cls

    class _FieldsOnDemand:
        """`__dataclass_fields__` until it is asked for: by `fields`, `replace` and the like, or by a subclass."""

        def __init__(self, complete):
            self._complete = complete

        def __get__(self, instance, owner):
            return self._complete()

    def _complete(cls, options):
        """Give the class what `dataclasses` would have given it, and return its fields.

        A twin is made complete, so that no thread ever meets the class without an `__init__`, which comes last.
        """
        with _COMPLETING:
            if isinstance(vars(cls)["__dataclass_fields__"], _FieldsOnDemand):
                before = {name: value for name, value in vars(cls).items() if name not in _OF_THE_CLASS}
                twin = dataclasses.dataclass(type(cls)(cls.__name__, cls.__bases__, dict(before)), **options)
                members = dict(vars(twin))
                if options.get("frozen"):  # those of the twin know the twin
                    members |= {"__setattr__": _refuse_to_set, "__delattr__": _refuse_to_delete}
                for name in before.keys() - members.keys():  # fields with a default factory
                    delattr(cls, name)
                for name, value in members.items():
                    if name not in _OF_THE_CLASS and (name not in before or before[name] is not value):
                        setattr(cls, name, value)
                cls.__dataclass_fields__ = twin.__dataclass_fields__
                cls.__init__ = twin.__init__
        return cls.__dataclass_fields__

    def _refuse_to_set(self, name, value):
        raise dataclasses.FrozenInstanceError(f"cannot assign to field {name!r}")

    def _refuse_to_delete(self, name):
        raise dataclasses.FrozenInstanceError(f"cannot delete field {name!r}")
