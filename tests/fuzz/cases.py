"""Cases of the search over callables: some lines of Python, drawn from a seed and a number."""

from __future__ import annotations

from random import Random

from surface import Parameter, Target
from values import Values

# Kinds whose values are kept in variables, so that several calls of a case share them.
SHARED = {"array", "host", "memory", "stream", "event", "copy", "index_array"}

# Kinds for which a number would be a raw address or a driver's pointer: only `Values` draws them.
ADDRESSES = {"memory", "allocator", "handle", "stream"}


class Case:
    """Draws one case. `lines` is its text; `names` has the target of each line, or None."""

    def __init__(self, random: Random, values: Values, targets: list[Target]) -> None:
        self.random = random
        self.values = values
        self.lines: list[str] = []
        self.names: list[str | None] = []
        self._variables: dict[str, list[str]] = {}
        self._count = 0
        for _ in range(values.pick([1, 2, 3, 4, 6, 10])):
            self._add(values.pick(targets))

    def _line(self, text: str, name: str | None = None) -> None:
        self.lines.append(text)
        self.names.append(name)

    def _variable(self, kind: str, expression: str) -> str:
        self._count += 1
        name = f"{kind}{self._count}"
        self._line(f"{name} = {expression}")
        self._variables.setdefault(kind, []).append(name)
        return name

    def _value(self, kind: str) -> str:
        """Returns an existing or a new variable of this kind, or an expression."""
        if kind not in ADDRESSES and self.random.random() < 0.06:
            kind = "anything"
        if kind == "operand" and self.random.random() < 0.5:
            kind = "array"
        if kind == "memory" and self.random.random() < 0.3:
            kind = "array"
        old = self._variables.get(kind)
        if old and self.random.random() < 0.6:
            return self.values.pick(old)
        expression = self.values.draw(kind)
        return self._variable(kind, expression) if kind in SHARED else expression

    def _receiver(self, receiver: str) -> str:
        if receiver in SHARED:
            old = self._variables.get(receiver)
            if old and self.random.random() < 0.7:
                return self.values.pick(old)
            return self._variable(receiver, self.values.draw(receiver))
        known = self._variables.get(receiver)
        if known and self.random.random() < 0.7:
            return self.values.pick(known)
        self._count += 1
        name = f"object{self._count}"
        self._line(f"{name} = {receiver}")
        self._variables.setdefault(receiver, []).append(name)
        return name

    def _arguments(self, parameters: list[Parameter]) -> str:
        """Returns arguments for most parameters; occasionally too few, too many or misnamed
        ones."""
        random = self.random
        parts: list[str] = []
        named = False
        for parameter in parameters:
            if not parameter.needed and random.random() < 0.6:
                named = True
                continue
            if random.random() < 0.02:
                named = True  # later arguments keep their positions
                continue
            value = self._value(parameter.kind)
            if parameter.name and (named or random.random() < 0.1):
                named = True
                parts.append(f"{parameter.name}={value}")
            elif named:
                continue
            else:
                parts.append(value)
        if random.random() < 0.03 and not named:
            parts.append(self._value("anything"))
        if random.random() < 0.02:
            parts.append(f"nonsense={self._value('anything')}")
        return ", ".join(parts)

    def _add(self, target: Target) -> None:
        filled = {}
        if target.receiver is not None:
            filled["{r}"] = self._receiver(target.receiver)
        if target.is_call:
            text = f"{target.form}({self._arguments(target.parameters)})"
        else:
            text = target.form
            for place, parameter in enumerate(target.parameters):
                filled[f"{{{place}}}"] = self._value(parameter.kind)
        for hole, value in filled.items():
            text = text.replace(hole, value)
        if target.is_call:
            # Results of gpuarray and cumath are arrays, which later calls use.
            kind = "array" if target.name.split(".")[0] in ("gpuarray", "cumath") else "result"
            self._count += 1
            name = f"{kind}{self._count}"
            self._line(f"{name} = {text}", target.name)
            self._variables.setdefault(kind, []).append(name)
        else:
            self._line(text, target.name)
