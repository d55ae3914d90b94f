"""Protocol: phases whose gates the server verifies itself."""
