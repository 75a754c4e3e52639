"""Garbage collection: what lies in a store, what stays, and how the rest goes; begin with `collect.py`."""
