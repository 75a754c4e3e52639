"""Side-by-side measurements. Each writes its last figures to `results/` with commit and machine."""
