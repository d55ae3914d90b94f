"""MCP in both eras: server, catalog, tools, and the caller behind each transport."""
