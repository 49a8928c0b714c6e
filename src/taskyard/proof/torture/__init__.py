"""Torture: real processes use every verb on a scratch yard, while they are killed, stopped or run with a wrong clock."""
