"""Experiments: one module per table or figure."""
