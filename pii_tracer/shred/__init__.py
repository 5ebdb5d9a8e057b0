"""Crypto-shredding: one data key per person, cells encrypted under it, erasure by destroying the wrapped key."""
