"""A black-box auditor of whole public calls, for curators and for dpreg's own tests.

`audit_call` runs a call many times on two neighbouring tables and looks for whatever tells them
apart: an error, a warning, a name, a number. What it returns is **for the curator's eyes only**.
"""

from dpreg.audit.call import CallAudit, Finding, audit_call

__all__ = ["CallAudit", "Finding", "audit_call"]
