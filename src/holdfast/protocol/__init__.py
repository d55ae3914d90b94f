"""Protocol: phases, and gates between them that Holdfast verifies itself."""
