"""Complete and explain messy tables with general latent feature models."""

__version__ = "0.1.0.dev0"
