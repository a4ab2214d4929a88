"""Where bugs can be planted in the code, and which of them are."""

from __future__ import annotations

import difflib
import random
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from cosmic_ray.ast import ast_nodes, get_ast
from cosmic_ray.mutating import mutate_code
from parso.python.tree import Function, IfStmt, Lambda
from parso.tree import NodeOrLeaf

from .operators import OPERATORS


@dataclass(frozen=True)
class Mutant:
    """A bug, and where it is."""

    path: str
    """Below the repository."""
    line: int
    operator: str
    occurrence: int
    """Which of the places in the file that the operator knows."""
    statement: int = field(compare=False)
    """The line where the statement begins that it is in."""
    runs: bool = field(compare=False)
    """Whether the line is part of a function: any other runs when the module is imported."""

    @property
    def package(self) -> str:
        """The package below ``django_mcp``."""
        return Path(self.path).parts[1]

    def plant(self, source: str) -> str:
        """Return the source with the bug."""
        mutated: str = mutate_code(source, OPERATORS[self.operator], self.occurrence)
        return mutated

    def diff(self, source: str) -> str:
        """Return what the bug changes."""
        before, after = source.splitlines(), self.plant(source).splitlines()
        lines = difflib.unified_diff(before, after, self.path, self.path, n=2, lineterm="")
        return "\n".join(lines)


def chosen(tree: Path, packages: Sequence[str], count: int, seed: int) -> list[Mutant]:
    """Return ``count`` mutants of packages below ``tree``, no two of them on one line."""
    lines: defaultdict[tuple[str, int], list[Mutant]] = defaultdict(list)
    for package in packages:
        for path in sorted((tree / package).rglob("*.py")):
            for mutant in mutants_of(path.read_text(), str(path.relative_to(tree.parent))):
                lines[mutant.path, mutant.line].append(mutant)
    chance = random.Random(seed)
    places = chance.sample(sorted(lines), min(count, len(lines)))
    return [chance.choice(lines[place]) for place in places]


def mutants_of(source: str, path: str) -> Iterator[Mutant]:
    """Return every mutant of a module."""
    nodes = list(ast_nodes(get_ast(source)))
    for name, operator in OPERATORS.items():
        occurrence = -1
        for node in nodes:
            for (line, _), _ in operator.mutation_positions(node):
                occurrence += 1
                if _matters(node):
                    yield Mutant(path, line, name, occurrence, _statement(node), _runs(node))


def _matters(node: NodeOrLeaf) -> bool:
    """Tell whether a run could tell a difference.

    None could of what a type checker is told, and few of what a decorator is: that instances of a
    class do not change, or how much a function remembers.
    """
    return not any(
        each.type in ("assert_stmt", "decorator")
        or (each.type == "decorated" and each.children[0].get_code().strip() == "@overload")
        or (isinstance(each, IfStmt) and each.children[1].get_code().strip() == "TYPE_CHECKING")
        for each in _above(node)
    )


def _statement(node: NodeOrLeaf) -> int:
    """Return the line where the statement begins that a node is in."""
    statements = (each for each in _above(node) if each.parent.type in ("suite", "file_input"))
    return int(next(statements).start_pos[0])


def _runs(node: NodeOrLeaf) -> bool:
    """Tell whether a node is in the body of a function."""
    return any(
        isinstance(each.parent, Function | Lambda) and each is each.parent.children[-1]
        for each in _above(node)
    )


def _above(node: NodeOrLeaf) -> Iterator[NodeOrLeaf]:
    """Return a node and what it is part of, but for the module."""
    while node.parent is not None:
        yield node
        node = node.parent
