"""The pipeline as flows: plain functions over stages, each declared once."""
