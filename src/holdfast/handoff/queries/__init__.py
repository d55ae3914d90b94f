"""The SQL of handing a project on."""
