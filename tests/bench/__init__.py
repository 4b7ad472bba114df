"""How fast it is, as ratios to references taken in the same run; `run.py` is the command."""
