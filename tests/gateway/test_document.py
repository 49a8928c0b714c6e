"""The API does as its document says, whatever is sent."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from taskyard.remote import routes

if TYPE_CHECKING:
    from pathlib import Path

    from taskyard import Yard
    from tests.servers.gateway import Running


@pytest.mark.proof
def test_requests_made_up_from_the_document_find_no_accident(gateway: Running, near: Yard, tmp_path: Path) -> None:
    secret = near.new_token(scope="manage")["token"]  # else the first token that is made up closes the gateway
    checks = "not_a_server_error,response_schema_conformance,content_type_conformance"
    run = subprocess.run(
        [
            os.path.join(os.path.dirname(sys.executable), "schemathesis"), "run", f"http://127.0.0.1:{gateway.port}/openapi.json",
            "--url", f"http://127.0.0.1:{gateway.port}", "--checks", checks, "--max-examples", "15", "--seed", "1",
            "--header", f"Authorization: Bearer {secret}",
            "--phases", "examples,fuzzing", "--exclude-path", "/v1/watch", "--exclude-path", "/v1/changes",
        ],
        cwd=tmp_path, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert run.returncode == 0, run.stdout[-5000:]
    assert len(near.tokens()) > 1, "no request was admitted"
    assert f"Tested: {len(routes.ROUTES) - 2}" in run.stdout, run.stdout[-5000:]
