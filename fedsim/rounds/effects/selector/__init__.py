"""What selectors make clients do beside their participations."""
