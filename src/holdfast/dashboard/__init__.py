"""The dashboard: pages for people, over what the services return."""
