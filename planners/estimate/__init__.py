"""What an erasure would take, from listings alone: seconds, bytes, requests and money. No person, no plan, no I/O."""
