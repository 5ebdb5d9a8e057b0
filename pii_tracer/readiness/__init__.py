"""Readiness: could a request of today be answered? Pure rules over inventory, lineage and the reading before."""
