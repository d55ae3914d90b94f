"""The wire: MCP over the relay socket and HTTP, with the tools that capabilities bring."""
