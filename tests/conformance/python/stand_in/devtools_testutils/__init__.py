"""Stands in for a package that Microsoft's suite imports and nobody publishes."""
