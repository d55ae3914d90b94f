"""The dashboard: pages over what the services return, for people who would rather look than read."""
