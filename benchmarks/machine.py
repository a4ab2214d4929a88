"""The machine: which cores are whose, and what a report says of it."""

from __future__ import annotations

import os
import platform
from dataclasses import dataclass
from pathlib import Path

TICK = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True, slots=True)
class Cores:
    """One core for the server; the generator and the databases share another."""

    server: int
    load: int

    @classmethod
    def choose(cls) -> Cores:
        """Take the last two that this process may use: the first has the interrupts to serve."""
        allowed = sorted(os.sched_getaffinity(0))
        if len(allowed) < 2:
            raise SystemExit("The benchmark needs two cores: one for servers, one for the load.")
        return cls(server=allowed[-1], load=allowed[-2])


def description() -> dict[str, str]:
    """Return what there is to say of the machine."""
    return {
        "processor": _field("/proc/cpuinfo", "model name") or platform.processor(),
        "cores": str(os.cpu_count()),
        "memory": f"{int(_field('/proc/meminfo', 'MemTotal').split()[0]) / 1024**2:.0f} GiB",
        "system": f"{platform.system()} {platform.release()}",
        "python": platform.python_version(),
    }


def busy_seconds(core: int) -> float:
    """Return for how long a core has worked, for anybody, since the machine started."""
    for line in Path("/proc/stat").read_text().splitlines():
        name, *times = line.split()
        if name == f"cpu{core}":
            ticks = [int(each) for each in times]
            return (sum(ticks[:8]) - ticks[3] - ticks[4]) / TICK
    raise LookupError(f"cpu{core}")


def _field(path: str, name: str) -> str:
    for line in Path(path).read_text().splitlines():
        key, _, value = line.partition(":")
        if key.strip() == name:
            return value.strip()
    return ""
