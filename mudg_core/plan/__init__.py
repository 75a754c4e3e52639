"""What a run will cost, before it runs: arithmetic over settings, no data and no weights."""
