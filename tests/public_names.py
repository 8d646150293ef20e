"""Every public name of drhmm with its signature, one per line, as tests/data/public_names.txt records them.

After a deliberate change of the interface: python tests/public_names.py > tests/data/public_names.txt

Names are taken from the imported package and not by griffe, which finds the modules in place of the functions of the
same name in `drhmm.plotting`.
"""

from __future__ import annotations

import inspect
from types import ModuleType

import drhmm


def public_names():
    return sorted(_of(drhmm, "drhmm"))


def _of(found, path):
    if isinstance(found, ModuleType):
        own = (name for name in vars(found) if inspect.getmodule(getattr(found, name)) is found)
        for name in getattr(found, "__all__", [name for name in own if not name.startswith("_")]):
            yield from _of(getattr(found, name), f"{path}.{name}")
    elif inspect.isclass(found):
        yield path if issubclass(found, Exception) else f"{path}{_signature(found)}"
        members = {
            name: member for base in found.__mro__[::-1] if _is_ours(base) for name, member in vars(base).items()
        }
        for name in members.keys() | getattr(found, "__dataclass_fields__", {}).keys():
            if not name.startswith("_") and not name.endswith("_request"):  # scikit-learn makes these
                yield from _of(members.get(name), f"{path}.{name}")
    elif inspect.isfunction(function := getattr(found, "__func__", found)):  # also a class or static method
        yield f"{path}{_signature(function)}"
    else:
        yield path


def _is_ours(base):
    return base.__module__.startswith("drhmm.")


def _signature(found):
    signature = inspect.signature(found)
    parameters = [
        parameter.replace(annotation=inspect.Parameter.empty)
        for name, parameter in signature.parameters.items()
        if name not in ("self", "cls")
    ]
    return signature.replace(parameters=parameters, return_annotation=inspect.Signature.empty)


if __name__ == "__main__":
    print("\n".join(public_names()))
