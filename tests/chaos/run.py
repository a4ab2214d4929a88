"""Sabotage, and a count of what was lost: ``python -m tests.chaos.run [--short] [LEG ...]``.

Exits with 1 if anything was lost, and prints the whole history of what was. See
:mod:`tests.chaos.checker` for what the figures mean, and :mod:`tests.chaos.saboteur` for what a
seed decides.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from .legs import Plan, run
from .report import as_json, as_text, summary
from .saboteur import LONGEST_PAUSE
from .services import Missing

LONG = (
    *["postgres-pubsub-uvicorn", "postgres-none-daphne", "postgres-core-uvicorn"],
    *["mariadb-core-daphne", "mariadb-none-uvicorn"],
    *["sqlite-none-uvicorn", "sqlite-memory-daphne"],
    *["postgres-none-gunicorn", "sqlite-none-gunicorn", "postgres-none-gunicorn+uvicorn"],
)
SHORT = ("postgres-pubsub-uvicorn", "sqlite-none-daphne")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the legs, print the report, return the exit code."""
    options = _options(arguments)
    directory = Path(tempfile.mkdtemp(prefix="django-mcp-chaos-"))
    directory.chmod(0o755)
    outcomes, left_out = [], []
    for plan in _plans(options):
        print(f"--- {plan.name}, seed {plan.seed}", flush=True)
        try:
            outcome = run(plan, directory / plan.name)
        except Missing as error:
            print(f"LEFT OUT: {error}")
            left_out.append(plan.name)
            continue
        outcomes.append(outcome)
        print(as_text(outcome), flush=True)
    failed = any(each.figures.failed for each in outcomes)
    report = as_json(outcomes, left_out)
    print("\n" + summary(report))
    if options.json:
        options.json.write_text(json.dumps(report, indent=1) + "\n")
    if failed or options.keep:
        print(f"Ledgers and logs: {directory}")
    else:
        shutil.rmtree(directory)
    return 1 if failed or (left_out and os.environ.get("CI") == "true") else 0


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="chaos", description=__doc__.splitlines()[0])
    parser.add_argument("legs", nargs="*", metavar="LEG", help="DATABASE-LAYER-SERVER")
    parser.add_argument("--short", action="store_true", help="two legs, two minutes")
    parser.add_argument("--seed", default=time.strftime("%Y%m%d%H%M%S"))
    parser.add_argument("--requests", type=int, help="over all legs, at least")
    parser.add_argument("--acts", type=int, help="over all legs")
    parser.add_argument("--only", default="", help="acts to choose from, with commas between")
    parser.add_argument("--plant", default="", help="a fault of bazaar/faults.py, or `again`")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--json", type=Path, help="where to write the report")
    parser.add_argument("--keep", action="store_true", help="keep the ledgers and logs")
    return parser.parse_args(arguments)


def _plans(options: argparse.Namespace) -> list[Plan]:
    names = options.legs or (SHORT if options.short else LONG)
    acts = options.acts or (0 if options.short else 216)
    requests = options.requests or (500 if options.short else 20_700)
    plans = []
    for name in names:
        database, layer, server = name.split("-")
        plans.append(
            Plan(
                database=database,
                layer=layer,
                server=server,
                acts=-(-acts // len(names)),
                requests=-(-requests // len(names)),
                seed=options.seed,
                workers=options.workers,
                actors=5 if options.short else 7,
                plant=options.plant,
                longest_pause=LONGEST_PAUSE / 3 if options.short else LONGEST_PAUSE,
                only=tuple(filter(None, options.only.split(","))),
            )
        )
    return plans


if __name__ == "__main__":
    sys.exit(main())
