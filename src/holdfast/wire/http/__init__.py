"""HTTP: the port, the gate before every route, REST and its OpenAPI document."""
