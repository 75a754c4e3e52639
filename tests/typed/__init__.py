"""What mypy must refuse: `make check` fails where an error that is expected here is none."""
