"""Validates what strangers send, at a cost that is not theirs to choose.

A small body is validated by pydantic as it is, and everything that is wrong with it is told. A
larger one, or a type of which even a small body may cost much, is validated by a copy of the type's
schema: each array and object ends with its first error, and what is tried is counted.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from functools import cached_property, lru_cache, partial
from inspect import signature
from threading import Lock
from typing import Any, Final, Generic, Protocol, TypeVar

from pydantic import BaseModel, ValidationError
from pydantic_core import (
    PydanticCustomError,
    PydanticSerializationError,
    SchemaValidator,
    to_json,
)

from .bounded_json import Schema
from .bounded_schema import Bounded, Function, Hooks, classes_of, needs_bounds
from .values import MANY_VALUES, holds_more, most_values

M = TypeVar("M", bound=BaseModel)

MAX_TRIALS: Final = 300_000
"""What may be tried to make sense of one value: objects, and alternatives of unions."""
MAX_TRIALS_OF_FEW: Final = 50_000
"""The same for a small body."""
_TRIALS_OF_A_FAILURE: Final = 4
"""What it counts that something does not fit: errors take time, too."""
_TRIALS_IN_FULL: Final = 10_000
"""The same while all errors are collected."""
_BYTES_OF_A_TRIAL: Final = 100
"""As many bytes of JSON are written and read again at the cost of one object."""
MAX_ITEMS: Final = 1_000
"""Most objects in a list that the protocol defines."""
_UNKNOWN_MEMBERS: Final = 10
"""Members that an object may have beyond those that it can."""
MAX_COLLISIONS: Final = 20
"""Different values with one hash. The time to tell them apart grows with the square of it."""
NOT_LOOKED_AT: Final = "not_looked_at"
"""The type of the error of what was left out, since something else is wrong already."""
TOO_COSTLY: Final = "too_costly"
"""The type of the error of what can be read in so many ways that not all are tried."""

_FEW_ERRORS: Final = 10
_MANY_ERRORS: Final = 1_000


class _TooCostly(Exception):
    """More has been tried than may be."""


class Validating(Protocol):
    """Turns JSON into values; raises pydantic's ``ValidationError``."""

    def validate_python(self, value: Any, /, *, by_name: bool | None = None) -> Any:
        """Validate what was parsed."""

    def validate_json(self, text: bytes, /) -> Any:
        """Validate a text."""


class Validator(Generic[M]):
    """Validates as a model does."""

    def __init__(self, model: type[M], *, max_items: int | None = None) -> None:
        model.model_rebuild()
        schema: Any = model.__pydantic_core_schema__
        self._schema: Schema = schema
        self._plain = model.__pydantic_validator__
        self.needs_bounds = needs_bounds(self._schema)
        """Whether even a small value may take time worth mentioning."""
        self._max_items = max_items
        self.validate_few: Callable[[Any], M] = (
            partial(self.validate, many=False)
            if self.needs_bounds
            else partial(self._plain.validate_python, by_name=False)
        )
        """Validates a value that holds few others, of which members have their names on the wire.

        Where nothing has to be bounded, that is no more than pydantic's own function.
        """
        self.validate_many: Callable[[Any], M] = partial(self.validate, many=True)

    def begin(self, *, many: bool, large: bool = False) -> Validating:
        """Return what validates one value, by several attempts if need be.

        ``many`` says that it holds more than ``MANY_VALUES``; ``large``, that it may have long
        texts, of which a plain validator makes a copy for each error.
        """
        watched = many or large or self.needs_bounds
        return _Trial(self, many=many) if watched else self._plain

    def validate(self, value: Any, *, many: bool) -> M:
        """Validate a value of which members have their names on the wire."""
        validated: M = self.begin(many=many).validate_python(value, by_name=False)
        return validated

    @cached_property
    def of_values(self) -> _Copies:
        """What validates values that were parsed."""
        return _Copies(self._schema, self._max_items, from_json=False)

    @cached_property
    def of_json(self) -> _Copies:
        """What validates texts of JSON."""
        return _Copies(self._schema, self._max_items, from_json=True)


def validate(model: type[M], value: Any) -> M:
    """Return parsed JSON as a model; raises pydantic's ``ValidationError``."""
    validator: Validator[M] = _validator(model)
    return validator.validate(value, many=holds_more(value, MANY_VALUES))


@lru_cache(maxsize=256)
def _validator(model: type[Any]) -> Validator[Any]:
    return Validator(model)


@dataclass(frozen=True)
class _Copies:
    """Copies of a schema, made when they are first needed."""

    schema: Schema
    max_items: int | None
    from_json: bool

    @cached_property
    def stopping(self) -> SchemaValidator:
        """The validator that ends with the first error."""
        return self._compiled(stops=True)

    @cached_property
    def counting(self) -> SchemaValidator:
        """The validator that finds all errors, and counts what that takes."""
        return self._compiled(stops=False)

    def _compiled(self, *, stops: bool) -> SchemaValidator:
        return _compile(Bounded(self.schema, _HOOKS, stops, self.max_items, self.from_json).schema)


class _Trial:
    """Attempts to make sense of one value, and what may still be tried for it."""

    def __init__(self, validator: Validator[Any], *, many: bool) -> None:
        self._validator = validator
        self._many = many
        self.left = MAX_TRIALS if many else MAX_TRIALS_OF_FEW
        self.failed = False
        """Whether the value is known to be wrong, whatever is still to come."""
        self.stops = True

    def validate_python(self, value: Any, /, *, by_name: bool | None = None) -> Any:
        """Validate a value, as far as attempts are left."""
        return self._attempt(
            self._validator.of_values,
            lambda validator: validator.validate_python(value, by_name=by_name),
        )

    def validate_json(self, text: bytes, /) -> Any:
        """Validate a text, as far as attempts are left."""
        return self._attempt(
            self._validator.of_json, lambda validator: validator.validate_json(text)
        )

    def spend(self, number: int = 1) -> None:
        """Count what is tried."""
        self.left -= number
        if self.left < 0:
            raise _TooCostly
        if self.failed:
            raise PydanticCustomError(NOT_LOOKED_AT, "Not looked at")

    def told(self, error: ValidationError) -> ValidationError:
        """Return as much of an error as is to be told."""
        self.left -= _TRIALS_OF_A_FAILURE
        if self.stops:
            return _shortened(error)
        if error.error_count() > _MANY_ERRORS:
            raise _TooCostly
        return error

    def _attempt(self, copies: _Copies, validate: Callable[[SchemaValidator], Any]) -> Any:
        with self._begun():
            if not self._many:
                left, self.left, self.stops = self.left, _TRIALS_IN_FULL, False
                try:
                    return validate(copies.counting)
                except _TooCostly:
                    self.left, self.stops = left, True
            try:
                return validate(copies.stopping)
            except _TooCostly:
                raise _refusal() from None

    @contextmanager
    def _begun(self) -> Iterator[None]:
        self.failed = False
        token = _trial.set(self)
        try:
            yield
        finally:
            _trial.reset(token)


_trial: ContextVar[_Trial] = ContextVar("trial")


_can_rebuild: Final = "_use_prebuilt" in str(signature(SchemaValidator))
_compiling: Final = Lock()


def _compile(schema: Schema) -> SchemaValidator:
    # Models have validators already, which would take the place of their copies.
    given: Any = schema
    if _can_rebuild:
        return SchemaValidator(given, _use_prebuilt=False)
    # Before pydantic 2.13 only models that are not complete have none.
    with _compiling, _incomplete(classes_of(schema)):
        return SchemaValidator(given)


@contextmanager
def _incomplete(classes: Iterable[Any]) -> Iterator[None]:
    changed = [each for each in classes if each.__dict__.get("__pydantic_complete__")]
    try:
        for each in changed:
            each.__pydantic_complete__ = False
        yield
    finally:
        for each in changed:
            each.__pydantic_complete__ = True


# What a copy calls


def _enter(value: Any, handler: Callable[[Any], Any]) -> Any:
    trial = _trial.get()
    trial.spend()
    try:
        return handler(value)
    except ValidationError as error:
        trial.failed = trial.stops
        raise trial.told(error) from None


def _try(value: Any, handler: Callable[[Any], Any]) -> Any:
    trial = _trial.get()
    trial.spend()
    try:
        return handler(value)
    except ValidationError as error:
        raise trial.told(error) from None
    finally:
        trial.failed = False


def _choosing(number: int) -> Function:
    def choose(value: Any) -> Any:
        _trial.get().spend(number)
        return value

    return choose


def _measuring(most: int | None) -> Function:
    def measure(value: Any) -> Any:
        # A function of Python at each object lets other threads run, too.
        _trial.get().spend()
        if most is not None and isinstance(value, dict) and len(value) > most + _UNKNOWN_MEMBERS:
            raise PydanticCustomError(
                "too_many_members",
                "Object should not have {number} members, most of which are not permitted",
                {"number": len(value)},
            )
        return value

    return measure


def _hashing(listing: Callable[[], Schema]) -> Function:
    compiled: list[SchemaValidator] = []

    def check(value: Any) -> Any:
        if isinstance(value, (list, dict)) and len(value) > MANY_VALUES:
            if not compiled:
                compiled.append(_compile(listing()))
            try:
                _check_hashes(_listed(compiled[0], value))
            except (ValidationError, PydanticSerializationError):
                pass  # told by what comes next
            finally:
                _trial.get().failed = False
        return value

    return check


def _listed(validator: SchemaValidator, value: list[Any] | dict[Any, Any]) -> list[Any]:
    """Return what is to be hashed of an array or an object."""
    listed: list[Any]
    if isinstance(value, list):
        listed = validator.validate_python(value)
    else:
        # Names are not read as texts are: a strict integer may be one.
        read = validator.validate_python([{name: None} for name in value])
        listed = [name for each in read for name in each]
    return listed


def _encode(value: Any) -> bytes:
    text = to_json(value)
    _trial.get().spend(len(text) // _BYTES_OF_A_TRIAL)
    return text


def _decode(value: Any) -> Any:
    text = value.encode("utf-8", "replace") if isinstance(value, str) else value
    if isinstance(text, bytes):
        _trial.get().spend(most_values(text))
    return value


_HOOKS: Final = Hooks(
    entering=_enter,
    trying=_try,
    choosing=_choosing,
    measuring=_measuring,
    hashing=_hashing,
    decoding=_decode,
    encoding=_encode,
)


def _check_hashes(values: list[Any]) -> None:
    number_of = Counter(map(hash, values))
    crowded, number = number_of.most_common(1)[0]
    if number <= MAX_COLLISIONS:
        return
    different: list[Any] = []
    for value in values:
        if hash(value) == crowded and value not in different:
            different.append(value)
            if len(different) > MAX_COLLISIONS:
                raise PydanticCustomError(
                    "collisions", "Items should not have been chosen to have one hash"
                )


def _refusal() -> ValidationError:
    kind = PydanticCustomError(
        TOO_COSTLY,
        "It can be read in too many ways to be checked. Send less of it, or nest it less deeply",
    )
    return ValidationError.from_exception_data("", [{"type": kind, "input": None}])


def _shortened(error: ValidationError) -> ValidationError:
    """Return an error with few of its parts."""
    number = error.error_count()
    if number <= _FEW_ERRORS:
        return error
    if number > _MANY_ERRORS:
        kind = PydanticCustomError("many_errors", f"{number} parts of it are not valid")
        return ValidationError.from_exception_data(error.title, [{"type": kind, "input": None}])
    first = error.errors(include_url=False, include_context=False)[0]
    kind = PydanticCustomError(first["type"], first["msg"])
    return ValidationError.from_exception_data(
        error.title, [{"type": kind, "loc": first["loc"], "input": first["input"]}]
    )
