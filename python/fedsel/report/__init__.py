"""One self-contained HTML page about a selection (extra ``report``)."""

from fedsel.report.evidence import Evidence, gather
from fedsel.report.page import render
from fedsel.report.write import check_report, write_report

__all__ = ["Evidence", "check_report", "gather", "render", "write_report"]
