"""The options of a client, for either of its faces."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypedDict

import httpx

from .auth import Auth
from .handlers import OnElicit, OnElicitURL, OnLog, OnSample, Roots
from .limits import Limits


class Options(TypedDict, total=False):
    """What :class:`~django_mcp.client.Client` takes beside the URL."""

    auth: Auth | None
    headers: Mapping[str, str] | None
    timeout: float
    limits: Limits
    revision: str | None
    name: str
    version: str
    on_elicit: OnElicit | None
    on_elicit_url: OnElicitURL | None
    on_sample: OnSample | None
    sampling_tools: bool
    roots: Roots | None
    on_log: OnLog | None
    transport: httpx.AsyncBaseTransport | None
