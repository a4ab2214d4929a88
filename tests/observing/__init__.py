"""What operators see of calls: signals, the log, Sentry, OpenTelemetry."""

from __future__ import annotations
