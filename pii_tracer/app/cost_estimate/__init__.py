"""What an erasure would take, before there is a request."""
