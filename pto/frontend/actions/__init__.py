"""What each production of `pto.lark` means: builds operations as their statements end."""

from pto.frontend.actions.clauses import ClauseActions as Builder

__all__ = ["Builder"]
