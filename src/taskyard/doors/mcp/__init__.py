"""The agents' door: ten tools of the Model Context Protocol, in front of any yard.

`protocol` turns one request into one response, in both eras of the protocol. `agent` has the tools, `tools` their schemas
and the instructions. `claims` holds and renews what the agent has claimed, `checks` runs what a task has to pass. `stdio` serves one agent over standard input
and output, and `grace` keeps its claims while its client reconnects. `stateless` has the tools for agents of which nothing
is remembered between two calls, for a server over HTTP; `verbs` has what both share.
"""
