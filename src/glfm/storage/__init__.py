"""Fits on disk: model files, checkpoints, tables, ArviZ."""
