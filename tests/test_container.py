"""The image and the compose file, as far as they can be checked without an engine."""

import os
import re
import subprocess
from pathlib import Path

import pytest
import yaml

from dartboard.api.settings import service_settings

ROOT = Path(__file__).parents[1]
DOCKERFILE = (ROOT / "Dockerfile").read_text()
COMPOSE = yaml.safe_load((ROOT / "compose.yaml").read_text())
SERVICE, DATABASE = COMPOSE["services"]["dartboard"], COMPOSE["services"]["db"]


def last(instruction):
    return re.findall(rf"^{instruction} (.+)$", DOCKERFILE, re.MULTILINE)[-1]


def test_the_image_runs_as_nobody_in_particular_from_one_pinned_base():
    assert last("USER") == "10001:10001"
    assert re.search(r"^ARG PYTHON=python:3\.\d+-slim-\w+$", DOCKERFILE, re.MULTILINE)
    assert set(re.findall(r"^FROM (\S+)", DOCKERFILE, re.MULTILINE)) == {"${PYTHON}"}
    assert "HEALTHCHECK" in DOCKERFILE and "/readyz" in DOCKERFILE
    assert not re.search(r"(?i)(password|secret|token)=", DOCKERFILE)


def test_everything_that_is_copied_is_let_through_and_nothing_else_is():
    ignored = (ROOT / ".dockerignore").read_text().split("\n")
    rules = [line for line in ignored if line and not line.startswith("#")]
    assert rules[0] == "*"
    allowed = {rule[1:] for rule in rules if rule.startswith("!")}
    copied = re.findall(r"^COPY (?!--from)(?:--\S+ )*(.+) \S+$", DOCKERFILE, re.MULTILINE)
    assert allowed == {name for names in copied for name in names.split()}
    assert all((ROOT / name).exists() for name in allowed)


def test_what_the_image_starts_are_settings_that_exist(tmp_path):
    lines = re.findall(r"^\s+(DARTBOARD_\w+)=(\S+)", DOCKERFILE, re.MULTILINE)
    settings = service_settings({"host": "0.0.0.0"}, environment=dict(lines), folder=tmp_path)
    assert str(settings.keys) == "/data/keys.json" and str(settings.home) == "/data/home"
    assert settings.store == "/data/index.dartboard"
    settings.check_exposure()


@pytest.mark.parametrize("service", [SERVICE, DATABASE], ids=["dartboard", "db"])
def test_both_containers_are_held_short(service):
    assert service["read_only"] is True and service["cap_drop"] == ["ALL"]
    assert service["security_opt"] == ["no-new-privileges:true"]
    assert "privileged" not in service and "network_mode" not in service
    assert service["pids_limit"]


def test_the_database_is_out_of_reach_and_waited_for():
    assert "ports" not in DATABASE and DATABASE["networks"] == ["back"]
    assert COMPOSE["networks"]["back"] == {"internal": True}
    assert SERVICE["depends_on"]["db"]["condition"] == "service_healthy" and DATABASE["healthcheck"]["test"]
    assert re.fullmatch(r"pgvector/pgvector:pg\d+", DATABASE["image"])
    assert all(port.startswith("127.0.0.1:") for port in SERVICE["ports"])


def test_passwords_come_from_a_file_that_git_ignores():
    assert COMPOSE["secrets"] == {"db_password": {"file": "./secrets/db_password"}}
    assert "/secrets/" in (ROOT / ".gitignore").read_text().split()
    for service in (SERVICE, DATABASE):
        assert service["secrets"] == ["db_password"]
        for name, value in service["environment"].items():
            assert "PASSWORD" not in name or (name.endswith("_FILE") and value == "/run/secrets/db_password")
    assert ":" not in SERVICE["environment"]["DARTBOARD_STORE"].partition("//")[2].partition("@")[0]


def test_the_entrypoint_hands_the_password_on(tmp_path):
    (tmp_path / "password").write_text("päss word'$")
    script = ["sh", str(ROOT / "docker/entrypoint.sh"), "sh", "-c", 'printf %s "${PGPASSWORD-none}"']
    plain = {name: value for name, value in os.environ.items() if name != "PGPASSWORD"}
    given = plain | {"DARTBOARD_DB_PASSWORD_FILE": str(tmp_path / "password")}

    def run(environment):
        return subprocess.run(script, env=environment, capture_output=True, encoding="utf-8", timeout=120)

    assert run(given).stdout == "päss word'$"
    assert run(plain).stdout == "none"
    assert run(plain | {"DARTBOARD_DB_PASSWORD_FILE": str(tmp_path / "missing")}).returncode != 0
