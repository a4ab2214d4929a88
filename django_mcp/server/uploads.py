"""``Upload``: files that come in, as arguments."""

from __future__ import annotations

import copy
import mimetypes
from base64 import b64decode
from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from fnmatch import fnmatchcase
from importlib.util import find_spec
from typing import Annotated, Any, Final

from django import forms
from django.core.exceptions import SuspiciousFileOperation, ValidationError
from django.core.files.uploadedfile import SimpleUploadedFile, UploadedFile
from pydantic import BaseModel, Field, GetCoreSchemaHandler
from pydantic_core import core_schema

from .. import content
from .errors import RegistrationError
from .functions import bare

MAX_UPLOAD_BYTES: Final = 1024 * 1024
"""The largest file that an argument is, unless the site says otherwise."""

_DATA_URL: Final = "data:"


SCHEMA: Final[dict[str, Any]] = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "maxLength": 255},
        "data": {"type": "string", "contentEncoding": "base64"},
        "mimeType": {"type": "string"},
    },
    "required": ["name", "data"],
}
"""The JSON Schema of a file."""


class SentFile(BaseModel):
    """A file as clients send it."""

    name: Annotated[str, Field(max_length=255)]
    data: str
    mimeType: str | None = None


@dataclass(frozen=True, slots=True)
class Upload:
    """Annotate a parameter that takes a file with it: ``Annotated[UploadedFile, Upload()]``.

    Clients send an object with its ``name``, its ``data`` as base64, and perhaps its ``mimeType``,
    which otherwise follows from the name. ``max_bytes`` is the largest that is taken.
    ``types`` are the MIME types that are, as in ``["application/pdf", "image/*"]``; by default all.
    They go by what the client says. With ``image`` only what Pillow knows as a picture is taken.
    """

    _: KW_ONLY
    max_bytes: int = MAX_UPLOAD_BYTES
    types: Sequence[str] = ()
    image: bool = False

    def __post_init__(self) -> None:
        if isinstance(self.types, str):
            raise RegistrationError(f"Upload(types=...) takes a list: [{self.types!r}].")
        if self.image and find_spec("PIL") is None:
            raise RegistrationError("Upload(image=True) needs Pillow, which is not installed.")

    def __get_pydantic_core_schema__(
        self, source: Any, handler: GetCoreSchemaHandler
    ) -> core_schema.CoreSchema:
        """Return the schema of what is sent, of which a file is made."""
        if bare(source) is not UploadedFile:
            raise RegistrationError(
                "Upload is for a parameter that takes an UploadedFile, of "
                "django.core.files.uploadedfile: `Annotated[UploadedFile, Upload()]`."
            )
        return core_schema.no_info_after_validator_function(
            self._file, handler.generate_schema(SentFile)
        )

    def __get_pydantic_json_schema__(self, schema: Any, handler: Any) -> dict[str, Any]:
        """Return the JSON Schema, the same whatever the file is for."""
        return copy.deepcopy(SCHEMA)

    def _file(self, sent: SentFile) -> UploadedFile[bytes]:
        name = _checked_name(sent.name)
        kind = sent.mimeType or mimetypes.guess_type(name)[0] or content.BINARY
        if self.types and not any(fnmatchcase(kind, each) for each in self.types):
            raise ValueError(f"a file of type {', '.join(self.types)}, not {kind}")
        return self._checked(SimpleUploadedFile(name, self._bytes(sent.data), kind))

    def _bytes(self, text: str) -> bytes:
        if text.startswith(_DATA_URL):
            # As browsers have it of a file.
            text = text.partition(",")[2]
        # Before anything is copied: base64 has four characters for three bytes.
        if len(text) > self.max_bytes * 4 // 3 + 4:
            raise self._too_large()
        try:
            data = b64decode(text, validate=True)
        except ValueError:
            raise ValueError("the bytes of a file as base64") from None
        if len(data) > self.max_bytes:
            raise self._too_large()
        return data

    def _checked(self, file: UploadedFile[bytes]) -> UploadedFile[bytes]:
        if not self.image:
            return file
        try:
            checked: UploadedFile[bytes] = forms.ImageField().clean(file)
        except ValidationError as error:
            raise ValueError(" ".join(error.messages)) from None
        return checked

    def _too_large(self) -> ValueError:
        return ValueError(f"a file of {self.max_bytes:,} bytes at most")


def _checked_name(name: str) -> str:
    """Return a name without directories, whosever they are, and without what is not printed."""
    last = name.replace("\\", "/").rpartition("/")[2]
    try:
        return str(SimpleUploadedFile("".join(filter(str.isprintable, last)), b"").name)
    except SuspiciousFileOperation:
        raise ValueError("a file with a name") from None
