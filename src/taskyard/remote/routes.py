"""The table of routes: for each verb of the Yard port its method, path, arguments and answer, and who may call it.

The gateway routes, checks and documents by this table, and the remote yard asks by it, so that none of them can differ.
It is plain data, because the command line loads it too.

A type is a text: `str`, `int`, `float`, `bool`, `any`, `object`, `duration` (seconds, or `10m`), the name of a shape, `[T]` for a
list, `{T}` for an object with values of one type, `T?` where null is allowed too. An argument with `?` may be left out.
"""

from __future__ import annotations

from taskyard.core.tokens import MANAGE, READ, TEAMS, WORK

Fields = dict[str, str]

_SEVERAL = "[str]?"  # one text or several
FILTERS: Fields = {"state": _SEVERAL, "kind": _SEVERAL, "mission": "str?", "worker": "str?"}
_PAGE: Fields = {"limit": "int?", "cursor": "str?"}
_TRAIL: Fields = {
    "task": "str?",
    "worker": "str?",
    "kind": "str?",
    "event": _SEVERAL,
    "mission": "str?",
    "cursor": "str?",
}
_CHOICE: Fields = {"kinds": _SEVERAL, "mission": "str?", "worker": "str?"}
_TERMS: Fields = {"lease": "duration?", "usual": "float?"}
_OPTIONS: Fields = {
    "title": "str?", "priority": "int?", "after": "any?", "parent": "str?", "discovered_from": "str?", "delay": "duration?",
    "not_before": "str?", "expires": "duration?", "timeout": "duration?", "key": "str?", "max_attempts": "int?",
    "lease": "duration?", "assignee": "str?", "uses": _SEVERAL, "mission": "str?", "verify": "str?",
    "review": "bool?",
}  # fmt: skip
_EDITABLE: Fields = {"data": "any?"} | {
    name: _OPTIONS[name]
    for name in (
        "title", "priority", "assignee", "delay", "not_before", "expires", "timeout", "max_attempts", "after",
    )
}  # fmt: skip

SHAPES: dict[str, Fields] = {
    "Task": {
        "id": "str", "short": "str", "kind": "str", "title": "str?", "state": "str", "priority": "int", "data": "any",
        "created_at": "str", "not_before": "str?", "after": "[any]", "key": "str?", "mission": "str?", "assignee": "str?",
        "uses": "[str]", "parent": "str?", "discovered_from": "str?", "attempts": "int", "max_attempts": "int", "fence": "int",
        "worker": "str?", "lease_until": "str?", "progress": "float?", "result": "any", "error": "str?", "verify": "str?",
        "review": "str?", "evidence": "str?", "expires": "str?", "timeout": "float?", "dropped_as": "str?",
    },
    "TaskLine": {
        "id": "str", "short": "str", "kind": "str", "title": "str?", "state": "str", "priority": "int", "worker": "str?",
        "mission": "str?", "fence": "int", "review": "str?", "evidence": "str?",
    },
    "Claim": {"claim": "str", "fence": "int", "task": "Task", "lease_until": "str?"},
    "Ended": {"claim": "str", "result": "any?"},
    "NewTask": {"kind": "str", "data": "any?", **_OPTIONS, "ref": "str?"},
    "Policy": {
        "max_attempts": "int", "max_crashes": "int", "backoff": "float", "backoff_cap": "float", "lease": "float",
        "sweep_every": "float", "ageing": "float?",
    },
}  # fmt: skip


class Route:
    """One verb behind one path. What the path does not name is in the query of a GET, and in the JSON of anything else."""

    __slots__ = ("about", "gives", "method", "path", "scope", "slow", "takes", "verb")

    def __init__(
        self,
        verb: str,
        method: str,
        path: str,
        scope: str,
        takes: Fields,
        gives: Fields,
        about: str,
        slow: bool = False,
    ) -> None:
        self.verb = verb
        self.method = method
        self.path = path
        self.scope = scope
        self.takes = takes
        self.gives = gives
        self.about = about
        self.slow = slow
        """Whether it may take seconds: it gets no thread that quick verbs need."""

    def reads(self, given: dict[str, object]) -> bool:
        """Whether a request with these arguments changes nothing."""
        return self.scope == READ or (self.verb == "audit" and not given.get("repair"))

    def parts(self) -> list[str]:
        """The path's segments; one in braces is an argument."""
        return self.path.split("/")[1:]

    def named(self) -> list[str]:
        """The arguments that the path names."""
        return [part[1:-1] for part in self.parts() if part.startswith("{")]


_STATE: Fields = {"state": "str?"}
_TASK: Fields = {"task": "Task"}
_TASKS: Fields = {"tasks": "[Task]"}
_EVENTS: Fields = {"events": "[object]", "cursor": "str"}
_CLAIMS: Fields = {"claims": "[Claim]"}
_LIST: Fields = {"tasks": "[TaskLine]", "next": "str?"}

ROUTES = (
    # Put work in
    Route("add", "POST", "/v1/tasks", WORK, {"kind": "str", "data": "any?", **_OPTIONS, "wait": "duration?"}, {**_TASK, "created": "bool"}, "Add a task. Waits up to `wait` seconds for room in a yard that is full."),
    Route("add_many", "POST", "/v1/tasks/many", WORK, {"tasks": "[NewTask]", "wait": "duration?"}, {"ids": "[str]", "created": "int"}, "Add many tasks; all are checked before the first is added.", slow=True),
    # Take it
    Route("claim", "POST", "/v1/claims", WORK, {"id": "str?", **_CHOICE, "wait": "duration?", **_TERMS}, {"claim": "Claim?"}, "Claim one task: the most urgent, then oldest that fits. Waits up to `wait` seconds; null if nothing is ready."),
    Route("claim_many", "POST", "/v1/claims/many", WORK, {"number": "int", **_CHOICE, **_TERMS}, _CLAIMS, "Claim up to `number` tasks at once."),
    Route("resume", "POST", "/v1/claims/resume", WORK, {"worker": "str?"}, _CLAIMS, "Take every claim of this worker's name again, under a new fence."),
    Route("held", "GET", "/v1/claims/{handle}", READ, {"handle": "str"}, {"claim": "str"}, "Check that this text is a claim's handle."),
    Route("heartbeat", "POST", "/v1/claims/{claim}/heartbeat", WORK, {"claim": "str", "progress": "float?", "note": "str?"}, {"lease_until": "str"}, "Start the lease of a claim anew, with progress or a note."),
    Route("done", "POST", "/v1/claims/{claim}/done", WORK, {"claim": "str", "result": "any?", "verified": "bool?"}, {}, "End the task with a result. Repeated, it gets the same answer.", slow=True),
    Route("done_many", "POST", "/v1/claims/done", WORK, {"ended": "[Ended]"}, {"done": "[bool]"}, "End many claims as done; for each, whether it is done now."),
    Route("fail", "POST", "/v1/claims/{claim}/fail", WORK, {"claim": "str", "reason": "str?", "retry": "bool?"}, _STATE, "End the claim with an error; the task is tried again while attempts are left."),
    Route("release", "POST", "/v1/claims/{claim}/release", WORK, {"claim": "str", "after": "duration?", "reason": "str?"}, {}, "Give the task back; it counts as no attempt."),
    Route("crash", "POST", "/v1/claims/{claim}/crash", WORK, {"claim": "str", "reason": "str"}, _STATE, "End the claim as if its worker had died."),
    Route("holding", "POST", "/v1/claims/holding", READ, {"claims": "[str]"}, {"holding": "[bool]"}, "Which of these claims still hold their tasks."),
    Route("settled", "GET", "/v1/claims/{claim}/settled", READ, {"claim": "str"}, _STATE, "The state that the claim's own holder has put the task into, else null."),
    Route("lease", "GET", "/v1/claims/{claim}/lease", READ, {"claim": "str"}, {"lease": "float"}, "How long the claim lasts without a heartbeat, in seconds."),
    # Look
    Route("facts", "GET", "/v1/yard", READ, {}, {"label": "str", "policy": "Policy", "checks": "{[str]}", "batch": "int", "version": "str"}, "The yard's settings."),
    Route("report", "GET", "/v1/tasks/{id}", READ, {"id": "str"}, {**_TASK, "history": "[object]", "notes": "[object]", "stale_results": "[object]", "dependents": "[str]", "children": "[str]"}, "Everything about one task, by id, unique beginning of one, or short name."),
    Route("get_many", "POST", "/v1/tasks/get", READ, {"ids": "[str]?", "keys": "[str]?"}, _TASKS, "The whole tasks of these whole ids, and those that were added under these keys, oldest first. Unknown ones are left out.", slow=True),
    Route("find", "GET", "/v1/tasks", READ, {**FILTERS, **_PAGE}, _LIST, "Tasks by state, kind, mission and holder, oldest first."),
    Route("ready", "GET", "/v1/ready", READ, {"kind": _SEVERAL, "mission": "str?", "worker": "str?", **_PAGE}, _LIST, "What this worker could claim now, in the order of claims."),
    Route("graph", "POST", "/v1/graph", READ, {"ids": _SEVERAL, "mission": "str?", "kind": _SEVERAL, "state": _SEVERAL, "limit": "int?", "fold": "str?"}, {"graph": "object"}, "Which task comes after which, with the critical path.", slow=True),
    Route("output", "GET", "/v1/tasks/{id}/output", READ, {"id": "str", "most": "int?"}, {"output": "[object]"}, "The end of what the commands of the last attempt have printed."),
    Route("inputs", "GET", "/v1/tasks/{task}/inputs", READ, {"task": "str"}, {"inputs": "object", "left_out": "int"}, "The results of the tasks that this one comes after and that are done."),
    Route("dependencies", "GET", "/v1/tasks/{task}/dependencies", READ, {"task": "str"}, {"dependencies": "[object]"}, "Each task that this one comes after."),
    Route("shorten", "POST", "/v1/short-names", READ, {"ids": "[str]"}, {"names": "[str]"}, "For each id its short name."),
    Route("counts", "GET", "/v1/counts", READ, {}, {"counts": "{int}"}, "How many tasks are in each state."),
    Route("stats", "GET", "/v1/stats", READ, {"mission": "str?", "exact": "bool?"}, {"stats": "object"}, "Tasks by state and kind, with ages and rates.", slow=True),
    Route("overview", "GET", "/v1/overview", READ, {}, {"overview": "object"}, "What waits for a person, with counts, rates and pauses.", slow=True),
    Route("lanes", "GET", "/v1/lanes", READ, {**FILTERS, "assignee": "str?", "text": "str?", **_PAGE}, {"now": "str", "lanes": "{object}"}, "Tasks by state with what a card shows, and how many there are.", slow=True),
    Route("agents", "GET", "/v1/agents", READ, {}, {"agents": "object"}, "Each worker of the last hour: what it holds, its claims, mishaps and rates.", slow=True),
    Route("series", "GET", "/v1/series", READ, {}, {"series": "object"}, "The last hour by the minute: throughput, backlog, median wait and run.", slow=True),
    Route("full", "GET", "/v1/full", READ, {}, {"full": "[object]"}, "The bounds of waiting tasks that are reached."),
    Route("paused", "GET", "/v1/paused", READ, {}, {"yard": "bool", "kinds": "[str]"}, "What is paused."),
    Route("why", "GET", "/v1/why", READ, {"id": "str?", **_CHOICE}, {"why": "object"}, "Why nothing is ready, or why one task is where it is."),
    Route("unusable", "GET", "/v1/unusable", READ, {}, {"unusable": "[str]"}, "What the last claims passed over because the system refuses it."),
    Route("outside", "GET", "/v1/outside", READ, {}, {"guests": "[object]", "others": "[object]"}, "What other programs hold in the yard's folders."),
    Route("set_aside", "GET", "/v1/set-aside", READ, {}, {"files": "[object]"}, "Files that came in through the drop box and are no tasks."),
    Route("wait", "POST", "/v1/wait", READ, {"ids": "[str]?", "timeout": "duration?", **FILTERS}, _TASKS, "Wait until these tasks, or all that match, have ended."),
    # Missions
    Route("missions", "GET", "/v1/missions", READ, {}, {"missions": "[object]"}, "Every mission, with its state and progress."),
    Route("new_mission", "POST", "/v1/missions", MANAGE, {"name": "str", "brief": "str?", "owner": "str?"}, {"mission": "object"}, "Make a mission; the same words again change nothing."),
    Route("mission", "GET", "/v1/mission", READ, {"name": "str"}, {"mission": "object"}, "All about one mission."),
    Route("cancel_mission", "POST", "/v1/mission/cancel", MANAGE, {"name": "str", "reason": "str?"}, {"mission": "object"}, "Cancel every task of a mission that has not ended.", slow=True),
    # Schedules
    Route("schedules", "GET", "/v1/schedules", READ, {}, {"schedules": "[object]"}, "Every schedule, by name."),
    Route("new_schedule", "POST", "/v1/schedules", MANAGE, {"name": "str", "cron": "str", "kind": "str", "data": "any?", "tz": "str?", "missed": "str?", **_OPTIONS}, {"schedule": "object"}, "Have a task added at the times of a cron expression; the same words again change nothing."),
    Route("schedule", "GET", "/v1/schedule", READ, {"name": "str"}, {"schedule": "object"}, "One schedule, with its next ticks."),
    Route("pause_schedule", "POST", "/v1/schedule/pause", MANAGE, {"name": "str"}, {"schedule": "object"}, "Add no more tasks of this schedule."),
    Route("unpause_schedule", "POST", "/v1/schedule/unpause", MANAGE, {"name": "str"}, {"schedule": "object"}, "Go on with its next tick from now on."),
    Route("remove_schedule", "POST", "/v1/schedule/remove", MANAGE, {"name": "str"}, {"schedule": "object"}, "Remove a schedule; its tasks stay."),
    # The log
    Route("events", "GET", "/v1/events", READ, {**_TRAIL, "since": "str?", "limit": "int?", "newest": "bool?"}, _EVENTS, "What happened, oldest first; as server-sent events with `Accept: text/event-stream`."),
    Route("watch", "GET", "/v1/watch", READ, {**_TRAIL, "timeout": "duration?"}, _EVENTS, "The first event that matches, as soon as there is one."),
    Route("log_end", "GET", "/v1/events/end", READ, {}, {"cursor": "str"}, "The cursor of the log's end."),
    Route("changes", "GET", "/v1/changes", READ, {"seen": "str?", "seconds": "float?"}, {"seen": "str"}, "Return when something may have changed since `seen`, or after `seconds`."),
    # Steer
    Route("cancel", "POST", "/v1/tasks/{id}/cancel", MANAGE, {"id": "str", "reason": "str?"}, _TASK, "Cancel a task; a worker that holds it loses its claim."),
    Route("retry", "POST", "/v1/tasks/{id}/retry", MANAGE, {"id": "str"}, {"task": "Task?"}, "Retry a failed or cancelled task, or make a waiting one ready."),
    Route("accept", "POST", "/v1/tasks/{id}/accept", WORK, {"id": "str"}, _TASK, "Accept what was submitted for review: the task is done with it."),
    Route("reject", "POST", "/v1/tasks/{id}/reject", WORK, {"id": "str", "note": "str"}, _TASK, "Reject what was submitted for review: the task goes back to todo with the note."),
    Route("edit", "PATCH", "/v1/tasks/{id}", MANAGE, {"id": "str", **_EDITABLE}, _TASK, "Change a task that no worker holds."),
    Route("bulk", "POST", "/v1/bulk", MANAGE, {"verb": "str", "ids": "[str]?", **FILTERS, "reason": "str?", "apply": "bool?", "most": "int?"}, {"bulk": "object"}, "Cancel, retry or release many tasks; without `apply` only count them.", slow=True),
    Route("pause", "POST", "/v1/pause", MANAGE, {"kind": "str?"}, {}, "Hand out nothing more, of this kind or of any."),
    Route("unpause", "POST", "/v1/unpause", MANAGE, {"kind": "str?"}, {}, "Hand out again."),
    Route("settings", "GET", "/v1/settings", READ, {}, {"settings": "object"}, "The yard's settings, each as it was set or by default."),
    Route("set_settings", "PATCH", "/v1/settings", MANAGE, {"changes": "object"}, {"settings": "object"}, "Change settings; null takes one back. Checks are commands: they are set beside the yard alone."),
    # Tokens
    Route("tokens", "GET", "/v1/tokens", MANAGE, {}, {"tokens": "[object]"}, "Every token by name, without secrets."),
    Route("new_token", "POST", "/v1/tokens", MANAGE, {"name": "str?", "scope": "str?", "project": "str?"}, {"token": "object"}, "Make a token. Its secret is in this answer alone; from the first token on, requests without one are refused."),
    Route("revoke_token", "POST", "/v1/tokens/revoke", MANAGE, {"name": "str"}, {"token": "object"}, "Revoke a token; every gateway refuses it within seconds."),
    # Files in sync with the yard
    Route("set_file_conflicts", "POST", "/v1/file-conflicts", MANAGE, {"file": "str", "conflicts": "[object]"}, {}, "List what this file and the yard disagree about among what needs a person; an empty list takes the file off."),
    # Teams
    Route("team", "GET", "/v1/team", READ, {}, {"team": "object?"}, "The team of this project with its quotas, and how full it is; null if it has none.", slow=True),
    Route("teams", "GET", "/v1/teams", TEAMS, {"fill": "bool?"}, {"teams": "[object]"}, "Every team of the database; with `fill` also how full each is.", slow=True),
    Route("new_team", "POST", "/v1/teams", TEAMS, {"name": "str", "max_todo": "int?", "max_running": "int?", "rate": "int?"}, {"team": "object"}, "Make a team; the same words again change nothing."),
    Route("set_team", "PATCH", "/v1/teams", TEAMS, {"name": "str", "changes": "object"}, {"team": "object"}, "Change quotas of a team; null takes one away."),
    Route("give_team", "POST", "/v1/teams/give", TEAMS, {"name": "str", "project": "str"}, {"team": "object"}, "Make a project of the database the team's."),
    Route("take_team", "POST", "/v1/teams/take", TEAMS, {"name": "str", "project": "str"}, {"team": "object"}, "Take a project from the team."),
    Route("team_tokens", "GET", "/v1/teams/tokens", TEAMS, {"team": "str"}, {"tokens": "[object]"}, "Every token of a team by name, without secrets."),
    Route("new_team_token", "POST", "/v1/teams/tokens", TEAMS, {"team": "str", "name": "str?", "scope": "str?"}, {"token": "object"}, "Make a token for every project of a team. Its secret is in this answer alone."),
    Route("revoke_team_token", "POST", "/v1/teams/tokens/revoke", TEAMS, {"team": "str", "name": "str"}, {"token": "object"}, "Revoke a token of a team; every gateway refuses it within seconds."),
    # What a worker needs beside its claims, and upkeep
    Route("remains", "POST", "/v1/remains", READ, {"kinds": "[str]?", "mission": "str?"}, {"remains": "bool"}, "Whether a task of these kinds is ready, running, or comes back after a backoff."),
    Route("sweep", "POST", "/v1/sweep", WORK, {"limit": "int?"}, {"swept": "{int}"}, "Take in what was dropped, reap and wake what is overdue, now.", slow=True),
    Route("prune", "POST", "/v1/prune", MANAGE, {"age": "duration?", "count": "int?", "state": _SEVERAL, "kind": _SEVERAL, "mission": "str?", "worker": "str?", "ids": "[str]?", "apply": "bool?"}, {"pruned": "object"}, "Let old ended tasks go to the archive; without `apply` only count them.", slow=True),
    Route("audit", "POST", "/v1/audit", MANAGE, {"repair": "bool?"}, {"audit": "object"}, "Prove that every task is in one legal state.", slow=True),
)  # fmt: skip
BY_VERB = {route.verb: route for route in ROUTES}

STATUS = {
    "invalid": 400,
    "denied": 403,
    "not_found": 404,
    "timed_out": 408,
    "ambiguous": 409,
    "conflict": 409,
    "claim_lost": 410,
    "stuck": 424,
    "full": 429,
    "internal": 500,
    "unavailable": 503,
}
"""The HTTP status of each error code; the code is in the JSON of the answer."""
