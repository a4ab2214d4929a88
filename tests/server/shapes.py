"""Types of every kind, for parameters and results."""

from __future__ import annotations

import enum
from dataclasses import dataclass, field
from datetime import date
from decimal import Decimal
from typing import (
    Annotated,
    Generic,
    Literal,
    NamedTuple,
    NewType,
    NotRequired,
    TypeVar,
)
from uuid import UUID

from django.db import models
from pydantic import BaseModel, ConfigDict, Field
from typing_extensions import TypeAliasType, TypedDict


class Color(enum.Enum):
    RED = "red"
    BLUE = "blue"


class Size(enum.IntEnum):
    SMALL = 1
    LARGE = 2


class Status(models.TextChoices):
    OPEN = "open", "Still open"
    SHIPPED = "shipped", "On its way"


class Address(BaseModel):
    """Where it goes."""

    street: Annotated[str, Field(description="With the number")]
    city: str = "Leuven"


class Order(BaseModel):
    lines: list[Line]
    address: Address | None = None


class Line(BaseModel):
    sku: str
    amount: Annotated[int, Field(ge=1)] = 1


class Node(BaseModel):
    value: int
    children: list[Node] = []


@dataclass
class Point:
    x: float
    y: float = 0.0
    tags: list[str] = field(default_factory=list)


class Filters(TypedDict):
    status: Literal["open", "shipped"]
    limit: NotRequired[int]


class Pair(NamedTuple):
    key: str
    value: int = 0


T = TypeVar("T")


class Page(BaseModel, Generic[T]):
    items: list[T]


class Strict(BaseModel):
    model_config = ConfigDict(strict=True)

    day: date
    key: UUID
    price: Decimal
    pair: tuple[int, int]
    color: Color
    names: set[str]


Tree = TypeAliasType("Tree", "dict[str, Tree] | int")
OrderId = NewType("OrderId", int)
Percentage = Annotated[int, Field(ge=0, le=100)]
