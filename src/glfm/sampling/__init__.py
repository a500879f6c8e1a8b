"""Chains: what they are conditioned on, their states and moves, and where they run."""
