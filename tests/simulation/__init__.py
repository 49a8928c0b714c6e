"""The real directory store on a model of a filesystem, under a scheduler that tries the orders that matter.

`files` is the disk, `kernel` the calls that a process makes to it, `package` the real code with those calls put in place
of its own, `program` that code as a function of the answers, `actors` the processes, `explorer` the orders, `scenes` what they do, `promise` what must hold, `story` how a
failure is told, `plants` the broken variants that must be caught.
"""
