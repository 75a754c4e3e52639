"""Work on many lines, cut so that what it takes meanwhile stays small. No result hangs on the cuts."""

from __future__ import annotations

BLOCK_BYTES = 128 << 20


def blocks(lines: int, bytes_each: int) -> list[slice]:
    """Slices of as many lines as fit, one at least; of no lines there is one empty slice."""
    step = max(1, BLOCK_BYTES // max(1, bytes_each))
    return [slice(first, min(first + step, lines)) for first in range(0, max(1, lines), step)]
