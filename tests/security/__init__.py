"""Attacks on a real stack and on all that reads what strangers wrote; `make attack` runs them."""
