"""The wire: MCP over relay sockets and HTTP, and REST, serving what capabilities offer."""
