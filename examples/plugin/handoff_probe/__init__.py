"""A kind of policy and a protocol as a plug-in."""
