"""X-rays: token losses of chosen documents under two models, as a table and as pages."""
