"""Torture: real processes do all there is to do in a scratch yard, and are killed, stopped and misled meanwhile."""
