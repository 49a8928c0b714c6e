"""`token`: who may use the yard through a gateway."""

from __future__ import annotations

from taskyard.core.errors import Invalid
from taskyard.doors.cli.parser import Command, Option
from taskyard.doors.cli.replies import Call, Reply, remark

_OPTIONS = (
    Option(
        "--scope",
        "SCOPE",
        "new: read looks, work also adds and works (default), manage does everything, teams also changes teams",
    ),
    Option("--project", "NAME", "new: good only where a gateway serves the yard under this name"),
    Option("--name", "NAME", "new: the name of its user in the log (default: one is made up)"),
)
_TEAM = Option("--team", "TEAM", "the tokens of this team: good for all its projects, now and later, and for no other")


def token(call: Call) -> Reply:
    """Do what the first word says."""
    act, *others = call.given.words
    if act not in _ACTS:
        raise Invalid(f"token has no {ascii(act)[:40]}", hint=f"what can be done is {', '.join(_ACTS)}")
    if len(others) != (act == "revoke"):
        raise Invalid(
            "token revoke needs the name of a token" if act == "revoke" else f"token {act} takes no words after it",
            hint="taskyard token revoke NAME; 'taskyard token list' has the names" if act == "revoke" else "use --name",
        )
    for option in _OPTIONS:
        if option.name in call.given.values and act != "new":
            raise Invalid(f"token {act} has no option {option.name}", hint="token new has it")
    return _ACTS[act](call)


def _new(call: Call) -> Reply:
    given = call.given
    name, scope, project, team = (given.text(option) for option in ("name", "scope", "project", "team"))
    if team is None:
        made = call.yard.new_token(name, scope=scope or "work", project=project)
    elif project is not None:
        raise Invalid("a token is for a team or for a project", hint="leave out --project, or --team")
    else:
        made = call.yard.new_team_token(team, name, scope=scope or "work")

    def text() -> str:
        where = "" if team is None else f" in every project of the team {team}"
        remark(
            f"the token {made['name']} may {made['scope']}{where}; it is shown only now, and goes into TASKYARD_TOKEN"
        )
        return str(made["token"])

    return Reply({"token": made}, text, stands=f"the token {made['name']} was made; revoke it, and make another")


def _list(call: Call) -> Reply:
    team = call.given.text("team")
    found = call.yard.tokens() if team is None else call.yard.team_tokens(team)

    def text() -> str:
        from taskyard.doors.cli import output

        if not found:
            remark("no tokens")
            return ""
        reach = "any" if team is None else f"those of {team}"
        rows = [(each["name"], each["scope"], each["project"] or reach, each["created_at"]) for each in found]
        return output.table(("TOKEN", "SCOPE", "PROJECT", "CREATED"), rows)

    return Reply({"tokens": found}, text)


def _revoke(call: Call) -> Reply:
    team, name = call.given.text("team"), call.given.words[1]
    found = call.yard.revoke_token(name) if team is None else call.yard.revoke_team_token(team, name)
    return Reply({"token": found}, lambda: f"{found['name']} is revoked; gateways refuse it within seconds")


_ACTS = {"new": _new, "list": _list, "revoke": _revoke}

COMMANDS = {
    "token": Command(
        token,
        "Tokens say who may use the yard through a gateway: 'read' looks, 'work' also adds, claims and ends tasks, 'manage' does everything, and 'teams' also changes the teams of the database. 'new' prints one, once: the yard keeps only a salt and its SHA-256. "
        "From the first token on, every gateway of the yard refuses requests without one, also when all are revoked again. Clients send the token of $TASKYARD_TOKEN, else of the file $TASKYARD_TOKEN_FILE. "
        "The log names the token as the one who changed something. A process that can reach the yard itself needs none. A copy of the yard has none of its tokens.",
        (
            ("taskyard token new --scope read --name board", "a token for a program that only looks"),
            ("TASKYARD_TOKEN=$(taskyard token new --name ci)", "a token for workers, as clients find it"),
            ("taskyard token new --team web --name ci", "a token for every project of the team 'web'"),
            ("taskyard token list", "one line each: name, scope, project, when it was made"),
            ("taskyard token revoke ci", "refuse it from now on; gateways heed it within seconds"),
        ),
        words="new|list|revoke [NAME]",
        least=1,
        most=2,
        options=(*_OPTIONS, _TEAM),
    ),
}
