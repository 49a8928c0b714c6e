"""Proving a yard: every check of what PROTOCOL.md promises, and the safe moves that heal what does not hold.

`audit` puts the parts together. `terrain` walks the folders, `tasks` looks at every task, `papers` at what lies beside
them, `ties` at what waits for what, `keyring` at the keys, `chronicle` at the log, `corners` at all the rest. A check
yields suspects (`findings`); `meanings` says what each means. A suspect that a running move could explain is looked at again, and only
what holds still under a second look is a finding. `healing` makes the moves of `--repair`.
"""
