"""Tools, resources, prompts and completions with values that a test can name."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from django.core.exceptions import ObjectDoesNotExist
from pydantic import BaseModel, Field

from django_mcp import Context, ToolError, mcp
from django_mcp.content import image, resource_link, text


class Book(BaseModel):
    """A book on the shelf."""

    isbn: str
    title: str
    year: int


SHELF = [
    Book(isbn="0140449132", title="Crime and Punishment", year=1866),
    Book(isbn="0140449248", title="The Brothers Karamazov", year=1880),
    Book(isbn="0199535671", title="À la recherche du temps perdu", year=1913),
]
COVER = b"\x89PNG\r\n\x1a\n cover"
STOCK = {"Berlin": 3, "Zürich": 7}


def book_of(isbn: str) -> Book:
    """The book with the number."""
    for book in SHELF:
        if book.isbn == isbn:
            return book
    raise ObjectDoesNotExist(isbn)


@mcp.tool(title="Find books", read_only=True)
def find_books(
    words: str, limit: Annotated[int, Field(ge=1, le=50, description="At most so many.")] = 10
) -> list[Book]:
    """Find books by words of their title."""
    return [book for book in SHELF if words.lower() in book.title.lower()][:limit]


@mcp.tool(read_only=True)
async def describe_book(isbn: str) -> Book:
    """Describe one book."""
    return book_of(isbn)


@mcp.tool
def lend(isbn: str) -> str:
    """Lend a book, which never works."""
    raise ToolError(f"{isbn} is already lent.")


@mcp.tool
def greet(name: str, tone: Literal["warm", "cool"] = "warm") -> str:
    """Greet a customer."""
    return f"{'Dear' if tone == 'warm' else 'Hello'} {name}"


@mcp.tool
def show_cover(isbn: str) -> Any:
    """Show a book's cover, and link to its record."""
    book = book_of(isbn)
    return [
        text(book.title),
        image(COVER, mime_type="image/png"),
        resource_link(f"book://{isbn}", name=book.title),
    ]


@mcp.tool
def stock(branch: Annotated[str, Field(json_schema_extra={"x-mcp-header": "Branch"})]) -> int:
    """Count what a branch has; clients of the modern era mirror its name in a header."""
    return STOCK[branch]


@mcp.tool
def who_asks(ctx: Context) -> str:
    """Say which client asks, and in which revision."""
    return f"{ctx.client_info.get('name')} speaks {ctx.protocol_version}"


@mcp.resource("book://catalogue", name="catalogue", title="Catalogue", mime_type="text/plain")
def catalogue() -> str:
    """All titles, a line each."""
    return "\n".join(book.title for book in SHELF)


@mcp.resource("book://cover", name="cover", mime_type="image/png")
def cover() -> bytes:
    """The cover that all books share."""
    return COVER


@mcp.resource("book://{isbn}", name="book", mime_type="application/json")
def record(isbn: str) -> Book:
    """A book's record."""
    return book_of(isbn)


@mcp.prompt(title="Recommend")
def recommend(genre: str, length: Literal["short", "long"] = "short") -> str:
    """Ask for a recommendation."""
    return f"Recommend a {length} book of the genre {genre}."


@mcp.completion("recommend", "genre")
def complete_genre(value: str) -> list[str]:
    """The genres that begin so."""
    return [genre for genre in ["novel", "novella", "poetry"] if genre.startswith(value)]


@mcp.completion("book://{isbn}", "isbn")
def complete_isbn(value: str) -> list[str]:
    """The numbers that begin so."""
    return [book.isbn for book in SHELF if book.isbn.startswith(value)]
