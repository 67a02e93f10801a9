"""Diagnostics: the registry of their ids, the records, and one renderer for each output format."""

from pto.diagnostics.registry import DiagnosticInfo, Severity, registry
from pto.diagnostics.report import Diagnostic, FileReport

__all__ = ["Diagnostic", "DiagnosticInfo", "FileReport", "Severity", "registry"]
