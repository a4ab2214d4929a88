"""The kinds of bugs: those of cosmic-ray that change what code does, and some that it has not.

A kind finds its places in a syntax tree of parso, and changes the tree at one of them.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from typing import Any

from cosmic_ray.ast import is_number
from cosmic_ray.operators.number_replacer import NumberReplacer
from cosmic_ray.operators.operator import Example, Operator
from cosmic_ray.plugins import get_operator
from parso.python.tree import IfStmt, Keyword, WhileStmt
from parso.tree import BaseNode, NodeOrLeaf

TURNED = (
    *["Eq_NotEq", "NotEq_Eq", "Is_IsNot", "IsNot_Is"],
    *["Lt_LtE", "Lt_GtE", "LtE_Lt", "LtE_Gt", "Gt_GtE", "Gt_LtE", "GtE_Gt", "GtE_Lt"],
)
"""Comparisons: each to its opposite, and those of order to the neighbour."""
FROM_COSMIC_RAY = (
    *(f"ReplaceComparisonOperator_{turn}" for turn in TURNED),
    *["ReplaceUnaryOperator_Delete_Not", "ReplaceAndWithOr", "ReplaceOrWithAnd"],
    *["ReplaceTrueWithFalse", "ReplaceFalseWithTrue"],
    *["ReplaceBreakWithContinue", "ReplaceContinueWithBreak", "ZeroIterationForLoop"],
)


NOTHING = ("None", "False")
LARGEST_COUNT = 1000
"""Of a bound that is larger, nobody needs to know whether it holds to one more or less."""


class OffByOne(NumberReplacer):  # type: ignore[misc]
    """A count that is one too many or too few."""

    def mutation_positions(self, node: NodeOrLeaf) -> list[tuple[Any, Any]]:
        """Find whole numbers that are not large."""
        is_count = is_number(node) and node.value.isdigit() and int(node.value) <= LARGEST_COUNT
        return list(super().mutation_positions(node)) if is_count else []

    @classmethod
    def examples(cls) -> tuple[Example, ...]:
        """Return code before and after."""
        return (Example("a = 1", "a = 2"), Example("a = 1", "a = 0", occurrence=1))


class ReplaceChildren(Operator):  # type: ignore[misc]
    """A kind of bug that puts a keyword in the place of parts of a node."""

    keyword: str

    @abstractmethod
    def places(self, node: NodeOrLeaf) -> Iterator[int]:
        """Return which of the children of ``node`` are replaced, one in each bug."""

    def mutation_positions(self, node: NodeOrLeaf) -> list[tuple[Any, Any]]:
        """Return where the parts begin and end, as lines and columns."""
        if not isinstance(node, BaseNode):
            return []
        return [
            (node.children[place].start_pos, node.children[place].end_pos)
            for place in self.places(node)
        ]

    def mutate(self, node: BaseNode, index: int) -> BaseNode:
        """Replace the part that is the ``index``-th of those found."""
        place = list(self.places(node))[index]
        before = node.children[place]
        # White space and comments before a word belong to it.
        prefix = before.get_first_leaf().prefix or (" " if place else "")
        node.children[place] = Keyword(self.keyword, before.start_pos, prefix)
        return node


class ConditionAlways(ReplaceChildren):
    """A condition that is always true; not that of a loop, which would not end."""

    keyword = "True"

    def places(self, node: NodeOrLeaf) -> Iterator[int]:
        """Find the conditions of ``if`` and ``elif``, also within an expression."""
        if isinstance(node, IfStmt):
            yield from (
                place + 1
                for place, child in enumerate(node.children)
                if isinstance(child, Keyword) and child.value in ("if", "elif")
            )
        elif node.type in ("test", "ternary"):
            yield 2
        elif node.type == "comp_if":
            yield 1

    @classmethod
    def examples(cls) -> tuple[Example, ...]:
        """Return code before and after."""
        return (
            Example("if a: pass", "if True: pass"),
            Example("if a: pass\nelif b: pass", "if a: pass\nelif True: pass", occurrence=1),
            Example("a if b else c", "a if True else c"),
            Example("[a for a in b if a]", "[a for a in b if True]"),
        )


class ConditionNever(ConditionAlways):
    """A condition that is never true."""

    keyword = "False"

    def places(self, node: NodeOrLeaf) -> Iterator[int]:
        """Find the conditions of loops, too."""
        yield from super().places(node)
        if isinstance(node, WhileStmt):
            yield 1

    @classmethod
    def examples(cls) -> tuple[Example, ...]:
        """Return code before and after."""
        return (
            Example("if a: pass", "if False: pass"),
            Example("while a: pass", "while False: pass"),
        )


class StatementLeftOut(ReplaceChildren):
    """A call whose value nobody reads, or an assignment to part of an object, that is missing."""

    keyword = "pass"

    def places(self, node: NodeOrLeaf) -> Iterator[int]:
        """Find what stands as a statement of its own; a name's first value must stay."""
        if node.type != "simple_stmt":
            return
        statement = node.children[0]
        if _ends_with(statement, "(") or statement.type == "del_stmt":
            yield 0
        elif statement.type == "expr_stmt":
            target, sign = statement.children[:2]
            is_part = _ends_with(target, ".") or _ends_with(target, "[")
            if sign.type == "operator" and (is_part or sign.value != "="):
                yield 0

    @classmethod
    def examples(cls) -> tuple[Example, ...]:
        """Return code before and after."""
        return (
            Example("a(b)\n", "pass\n"),
            Example("await a.b(c)\n", "pass\n"),
            Example("a.b = c\n", "pass\n"),
            Example("a[b] = c\n", "pass\n"),
            Example("a += b\n", "pass\n"),
            Example("del a[b]\n", "pass\n"),
        )


class ReturnNone(ReplaceChildren):
    """A result that is missing."""

    keyword = "None"

    def places(self, node: NodeOrLeaf) -> Iterator[int]:
        """Find what is returned; to return ``None`` for ``False`` is no bug."""
        if node.type == "return_stmt" and node.children[1].get_code().strip() not in NOTHING:
            yield 1

    @classmethod
    def examples(cls) -> tuple[Example, ...]:
        """Return code before and after."""
        return (Example("def a():\n    return b\n", "def a():\n    return None\n"),)


class MembershipTurned(ReplaceChildren):
    """``in`` that was ``not in``, and the other way."""

    def places(self, node: NodeOrLeaf) -> Iterator[int]:
        """Find the operators of comparisons."""
        if node.type == "comparison":
            for place in range(1, len(node.children), 2):
                if node.children[place].get_code().strip() in ("in", "not in"):
                    yield place

    def mutate(self, node: BaseNode, index: int) -> BaseNode:
        """Turn the comparison."""
        place = list(self.places(node))[index]
        was = node.children[place].get_code().strip()
        self.keyword = "in" if was == "not in" else "not in"
        return super().mutate(node, index)

    @classmethod
    def examples(cls) -> tuple[Example, ...]:
        """Return code before and after."""
        return (Example("a in b", "a not in b"), Example("a not in b", "a in b"))


OWN = (
    *[ConditionAlways, ConditionNever, MembershipTurned],
    *[StatementLeftOut, ReturnNone, OffByOne],
)
OPERATORS: dict[str, Operator] = {
    **{name: get_operator(f"core/{name}")() for name in FROM_COSMIC_RAY},
    **{operator.__name__: operator() for operator in OWN},
}
"""Each kind of bug by its name."""


def _ends_with(node: NodeOrLeaf, bracket: str) -> bool:
    """Tell whether an expression ends with a call, a subscript or an attribute."""
    if node.type not in ("atom_expr", "power"):
        return False
    last = node.children[-1]
    return last.type == "trailer" and last.children[0].value == bracket
