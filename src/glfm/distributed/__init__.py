"""Chains and shards on the workers of a `distributed` cluster: the only place that knows dask."""

from glfm.distributed.engine import DaskEngine

__all__ = ["DaskEngine"]
