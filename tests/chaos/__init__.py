"""Real processes under a workload and a saboteur, and a count of what was lost: see ``run.py``."""
