"""Settings of the service from flags, variables and a file; what is wrong is said with its place."""

from pathlib import Path

import pytest

from dartboard.api.settings import service_settings
from dartboard.engine import load_settings
from dartboard.errors import ConfigError


def settings(folder: Path, file: str = "", flags=None, **environment):
    (folder / "dartboard.toml").write_text(file)
    return service_settings(flags or {}, environment=environment, folder=folder)


def test_the_nearest_place_wins(tmp_path):
    file = 'store = "shared.db"\ncollection = "docs"\n[serve]\nport = 9000\ntimeout = 10\nqueue = 4\n'
    found = settings(
        tmp_path, file, {"port": 7000, "k": None}, DARTBOARD_SERVE_TIMEOUT="5", DARTBOARD_SERVE_PORT="8001"
    )
    assert (found.port, found.timeout, found.queue, found.k) == (7000, 5.0, 4, 100)
    assert (found.store, found.collection, found.model) == ("shared.db", "docs", None)
    own = settings(tmp_path, 'store = "shared.db"\n[serve]\nstore = "own.db"\n', DARTBOARD_MODEL="onnx:x")
    assert (own.store, own.model) == ("own.db", "onnx:x")


def test_every_kind_of_value(tmp_path):
    found = settings(
        tmp_path,
        '[serve]\norigins = ["https://a.example", "https://b.example"]\ndemo = false\n',
        DARTBOARD_CONFIG=str(tmp_path / "dartboard.toml"),
        DARTBOARD_SERVE_HOSTS="a.example, b.example",
        DARTBOARD_SERVE_LOG_QUERIES="yes",
        DARTBOARD_SERVE_HOME="/srv/data",
        DARTBOARD_SERVE_RATE="2.5",
        DARTBOARD_KEYS="keys.json",
    )
    assert found.origins == ("https://a.example", "https://b.example")
    assert found.hosts == ("a.example", "b.example")
    assert (found.demo, found.log_queries, found.rate) == (False, True, 2.5)
    assert (found.home, found.keys) == (Path("/srv/data"), Path("keys.json"))


@pytest.mark.parametrize(
    ("file", "environment", "said"),
    [
        ("[serve]\nprot = 1\n", {}, "unknown setting 'prot'"),
        ("serve = 1\n", {}, "write [serve]"),
        ('[serve]\nport = "many"\n', {}, "[serve]: port"),
        ("[serve]\nport = true\n", {}, "[serve]: port"),
        ("[serve]\ntimeout = false\n", {}, "[serve]: timeout"),
        ("[serve]\norigins = [1]\n", {}, "origins"),
        ("[serve]\nhost = 5\n", {}, "host"),
        ("", {"DARTBOARD_SERVE_DEMO": "maybe"}, "DARTBOARD_SERVE_DEMO: demo"),
        ("", {"DARTBOARD_SERVE_K": "1.5"}, "DARTBOARD_SERVE_K: k"),
        ("", {"DARTBOARD_SERVE_K": "0"}, "DARTBOARD_SERVE_K: k"),
        ("", {"DARTBOARD_SERVE_TIMEOUT": "inf"}, "timeout"),
        ("", {"DARTBOARD_SERVE_PORT": "70000"}, "port"),
        ("", {"DARTBOARD_SERVE_RATE": "-1"}, "rate"),
        ("", {"DARTBOARD_SERVE_NONSENSE": "1"}, "DARTBOARD_SERVE_NONSENSE is no setting"),
        ("", {"DARTBOARD_SERVE_TIMOUT": ""}, "did you mean DARTBOARD_SERVE_TIMEOUT?"),
    ],
)
def test_what_is_wrong_is_named(tmp_path, file, environment, said):
    with pytest.raises(ConfigError) as caught:
        settings(tmp_path, file, **environment)
    assert said in str(caught.value)


def test_other_commands_leave_the_table_alone(tmp_path):
    (tmp_path / "dartboard.toml").write_text("k = 7\n[serve]\nport = 9000\n")
    assert load_settings({}, environment={}, folder=tmp_path).settings.k == 7


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.168.1.4", "example.org"])
def test_nobody_is_let_in_from_elsewhere_without_a_key(tmp_path, host):
    with pytest.raises(ConfigError, match="dartboard keys create"):
        settings(tmp_path, flags={"host": host}).check_exposure()
    settings(tmp_path, flags={"host": host, "keys": Path("keys.json")}).check_exposure()


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "::1", "[::1]", "127.5.5.5"])
def test_this_machine_needs_none(tmp_path, host):
    settings(tmp_path, flags={"host": host}).check_exposure()
