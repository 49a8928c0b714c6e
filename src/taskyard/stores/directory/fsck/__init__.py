"""Check that a yard keeps every rule of PROTOCOL.md, and repair what can be repaired safely.

`audit` runs all checks. `folders` walks the folders, `tasks` checks every task, and `records` the files beside them. `edges`
checks dependencies, `keys` the keys, `log` the log, and `leftovers` the rest. A check yields suspects (`findings`); `codes`
explains each code. A running move may explain a suspect, so the audit checks it again: only a suspect that stays is a finding.
`repair` does what `--repair` asks for.
"""
