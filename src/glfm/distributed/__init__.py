"""Chains and shards on the workers of a `distributed` cluster: the only place that knows dask."""

try:
    from glfm.distributed.engine import DaskEngine
except ModuleNotFoundError as error:
    if (error.name or "").split(".")[0] not in ("dask", "distributed"):
        raise
    raise ImportError(
        'Clusters need dask and distributed: install them with pip install "pyglfm[dask]".'
    ) from error

__all__ = ["DaskEngine"]
