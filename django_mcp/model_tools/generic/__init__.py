"""Five tools for many models: which there are, what one has, to find, to get, and to change.

Each does by an argument what tools of one model do by themselves. Begin at ``generic_tools.py``.
"""
