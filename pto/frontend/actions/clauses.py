"""Operations without rules of their own, and the generic form of any operation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, ClassVar

from xdsl.dialects import arith, cf, func, scf
from xdsl.dialects.builtin import (
    DenseArrayBase,
    FunctionType,
    ModuleOp,
    VectorType,
    i64,
)
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue

from pto.dialect import ops
from pto.dialect.names import KNOWN_OPERATIONS
from pto.dialect.ops import SEGMENTS, opaque_op_class
from pto.dialect.types import (
    PtrType,
)
from pto.frontend.actions.base import (
    INDEX,
    Entries,
    counted,
    escaped,
    literal_text,
    make_string,
)
from pto.frontend.actions.control import ControlActions
from pto.frontend.actions.tiles import TileActions
from pto.frontend.lalr import Problem

MAX_BRACKET_DEPTH = 200


@dataclass
class _Template:
    """Clauses of an operation without rules of its own, on the way to a template."""

    parts: list[Any]
    depth: int = 0


@cache
def _builtin_classes() -> dict[str, type[Operation]]:
    """Classes of the operations that the generic form may name."""
    dialects = (arith.Arith, scf.Scf, cf.Cf, func.Func)
    found = {op.name: op for dialect in dialects for op in dialect.operations}
    found.update({op.name: op for op in ops.WRITTEN_OUT})
    found["builtin.module"] = ModuleOp
    return found


# Results of operations whose statement does not say their type.
_IMPLIED_RESULTS: dict[str, Attribute] = {
    f"pto.{name}": i64
    for name in (
        "get_block_idx", "get_block_num", "get_subblock_idx", "get_subblock_num", "get_ctrl",
        "get_vms4_sr", "get_clock32", "get_clock64", "get_veccoreid",
    )
}  # fmt: skip
_IMPLIED_RESULTS["pto.get_validshape"] = INDEX


class ClauseActions(TileActions, ControlActions):
    """Statements as clauses in a row, kept as templates."""

    # ---- Other operations

    def short_operation(
        self, start: int, results: int, name: int, clauses: _Template, location: int | None
    ) -> Operation:
        full_name = f"pto.{self.texts[name]}"
        if full_name not in KNOWN_OPERATIONS:
            raise Problem(name, f"unknown operation '{self.texts[name]}'")
        op = self._other(full_name, clauses)
        return self.operation(start, results, op, location)

    def no_clauses(self) -> _Template:
        return _Template([])

    def clause(self, clauses: _Template, token: int) -> _Template:
        clauses.parts.append(token)
        return clauses

    def clause_dictionary(self, clauses: _Template, *tokens: Any) -> _Template:
        entries = next((token for token in tokens if isinstance(token, Entries)), Entries())
        clauses.parts.append(entries)
        return clauses

    def clause_region(self, clauses: _Template, entry: Block, blocks: Any, end: int) -> _Template:
        clauses.parts.append(self.region(entry, blocks))
        return clauses

    def clause_brackets(
        self, clauses: _Template, opening: int, inner: _Template, closing: int
    ) -> _Template:
        clauses.depth = max(clauses.depth, inner.depth + 1)
        if clauses.depth > MAX_BRACKET_DEPTH:
            raise Problem(opening, f"brackets are nested more than {MAX_BRACKET_DEPTH} deep")
        clauses.parts.append(opening)
        clauses.parts.extend(inner.parts)
        clauses.parts.append(closing)
        return clauses

    def other_operation(self, name: int, clauses: _Template) -> Operation:
        text = self.texts[name]
        self._check_known(text, name)
        return self._other(text, clauses)

    def _other(self, name: str, clauses: _Template) -> Operation:
        operands: list[SSAValue] = []
        attributes = Entries()
        regions: list[Region] = []
        pieces = _TemplateText()
        kinds = self.tokens.kinds
        for part in clauses.parts:
            if isinstance(part, Entries):
                if attributes:
                    raise Problem(self._name_token(), f"{name} has two attribute dictionaries")
                attributes = part
                pieces.add("{}")
            elif isinstance(part, Region):
                regions.append(part)
                pieces.add("{^}")
            elif kinds[part] == "SSA":
                operands.append(self._use(part))
                pieces.add("%")
            elif kinds[part] == "TYPE":
                pieces.add(literal_text(self.type(part)))
            elif kinds[part] == "ATTRIBUTE":
                pieces.add(literal_text(self._attribute(part)))
            else:
                pieces.add(escaped(self.texts[part]))
        results = self._other_results(name, clauses, operands)
        op = self._make(
            opaque_op_class(name),
            operands,
            results,
            {"syntax": make_string(pieces.text())},
            attributes,
            regions,
        )
        return self._checked(op, self._name_token()) if self._checks_itself(op) else op

    def _other_results(
        self, name: str, clauses: _Template, operands: Sequence[SSAValue]
    ) -> list[Attribute]:
        """Types of the results: the last ones after `->`, or else after the last `:`."""
        count = self._result_count()
        if count == 0:
            return []
        kinds = self.tokens.kinds
        types: list[Attribute] = []
        for part in clauses.parts:
            if not isinstance(part, int):
                continue
            if self.texts[part] in ("->", ":"):
                types = []
            elif kinds[part] == "TYPE":
                types.append(self.type(part))
        if name in _IMPLIED_RESULTS and (not types or name == "pto.get_validshape"):
            types = [_IMPLIED_RESULTS[name]] * count
        elif name == "llvm.extractelement" and types and isinstance(types[-1], VectorType):
            types = [types[-1].element_type]
        elif name == "pto.addptr" and operands and isinstance(operands[0].type, PtrType):
            types = [operands[0].type]
        if len(types) < count:
            raise Problem(
                self._name_token(),
                f"{name} names {counted(count, 'result')}, but its statement gives "
                f"{counted(len(types), 'result type')}",
            )
        return types[-count:]

    # ---- Generic form

    def generic_operation(
        self,
        name: int,
        values: list[int] | None,
        labels: list[int] | None,
        properties: Entries | None,
        regions: list[Region] | None,
        attributes: Entries | None,
        type: FunctionType,
    ) -> Operation:
        text = self.texts[name].strip('"')
        self._check_known(text, name)
        operands = self._uses(values or [], type.inputs.data)
        given = dict(properties or {})
        cls = _builtin_classes().get(text) or opaque_op_class(text, _stays_generic(text, given))
        rest = dict(attributes or {})
        if cls is ops.TCvtOp:
            moved: dict[str, Attribute] = {}
            rest = {
                **self._tcvt_attributes(properties or Entries(), moved),
                **self._tcvt_attributes(attributes or Entries(), moved),
            }
            given = {**{key: given[key] for key in (SEGMENTS,) if key in given}, **moved}
            rest.pop(SEGMENTS, None)
        elif hasattr(cls, "get_irdl_definition"):
            for key in cls.get_irdl_definition().properties:
                if key in rest and key not in given:
                    given[key] = rest.pop(key)
        if (
            SEGMENTS in rest and "syntax" not in given
        ):  # in a template it stands where it is written
            given[SEGMENTS] = rest.pop(SEGMENTS)
        return self._checked(
            cls.create(
                operands=operands,
                result_types=type.outputs.data,
                properties=given,
                attributes=rest,
                successors=[self._successor_block(label) for label in labels or ()],
                regions=regions or (),
                location=self._location(),
            ),
            name,
        )


class _TemplateText:
    """Joins a template's pieces with the spacing of the field."""

    _NO_SPACE_BEFORE: ClassVar = {",", ")", "]", ">", "[", "(", "<"}
    _NO_SPACE_AFTER: ClassVar = {"(", "[", "<", ""}

    def __init__(self) -> None:
        self.pieces: list[str] = []
        self.last = ""

    def add(self, piece: str) -> None:
        """Appends a piece, with a space before it where the field writes one."""
        tight = piece in self._NO_SPACE_BEFORE and not (
            piece in "([" and self.last in (",", ":", "->", "=", "")
        )
        if not tight and self.last not in self._NO_SPACE_AFTER:
            self.pieces.append(" ")
        self.pieces.append(piece)
        self.last = piece

    def text(self) -> str:
        """The template."""
        return "".join(self.pieces)


def _stays_generic(name: str, properties: Mapping[str, Attribute]) -> bool:
    """Whether a generic form has no other form: neither a template nor `ins` and `outs`."""
    if "syntax" in properties:
        return False
    if (signature := ops.REGULAR_OPS.get(name)) is None:
        return True
    sizes = properties.get(SEGMENTS)
    if isinstance(sizes, DenseArrayBase):
        return len(sizes.get_values()) != 2
    return any(role.endswith("?") for role in signature.ins + signature.outs)
