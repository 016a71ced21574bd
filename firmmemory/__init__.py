"""Firm Memory. ``FirmMemory`` is its facade for Python; importing this package sets up no Django."""

from firmmemory.facade import FirmMemory

__all__ = ["FirmMemory"]
