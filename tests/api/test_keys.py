"""Keys: secrets that are shown once, a file that can be trusted, and the command that writes it."""

import json
import logging
import os
import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dartboard.api.keys import Keys
from dartboard.cli import main
from dartboard.errors import ConfigError


@pytest.fixture
def keys(tmp_path):
    return Keys.open(tmp_path / "keys.json", create=True)


def test_a_secret_finds_its_key_and_is_nowhere_in_the_file(keys):
    secret = keys.create("page", ["read"], rate=5)
    assert secret.startswith("dbk_") and len(secret.split("_", 2)[2]) == 43
    key = keys.find(secret)
    assert (key.name, key.scopes, key.rate) == ("page", {"read"}, 5)
    assert key.id == secret.split("_")[1]
    stored = keys.path.read_text()
    assert secret.split("_", 2)[2] not in stored
    assert json.loads(stored)["format"] == 1
    assert keys.path.stat().st_mode & 0o777 == 0o600


def test_wrong_secrets_find_nothing(keys):
    secret = keys.create("page", ["read"])
    other = keys.create("other", ["read"])
    mixed = f"{secret[:13]}{other[13:]}"
    for wrong in ("", "dbk_", secret[:-1], secret + "x", secret.upper(), mixed, f" {secret}", secret + "\n"):
        assert keys.find(wrong) is None


@pytest.fixture(scope="module")
def filled(tmp_path_factory):
    keys = Keys.open(tmp_path_factory.mktemp("keys") / "keys.json", create=True)
    keys.create("page", ["read"])
    return keys


@given(st.text() | st.binary().map(lambda raw: f"dbk_{raw.decode('latin-1')}"))
def test_any_text_is_looked_up_without_an_error(filled, text):
    assert filled.find(text) is None


@pytest.mark.parametrize("text", ["schlüssel", "\udcff", "ключ", "\x00", "ÿ" * 10_000])
def test_secrets_of_any_alphabet_do_not_raise(keys, text):
    keys.create("page", ["read"])
    assert keys.find(text) is None


def test_another_process_revokes_and_the_key_stops_at_once(keys):
    secret = keys.create("page", ["read", "write"])
    assert keys.find(secret) is not None
    Keys.open(keys.path).revoke(keys.find(secret).id)
    assert keys.find(secret) is None
    assert [key.revoked is not None for key in keys.list()] == [True]
    assert keys.revoke(keys.list()[0].id) == keys.list()[0]


def test_a_new_key_is_seen_at_once(keys):
    assert keys.list() == ()
    secret = Keys.open(keys.path).create("late", ["read"])
    assert keys.find(secret).name == "late"


@pytest.mark.skipif(os.name != "posix", reason="modes are POSIX")
def test_a_file_that_others_may_write_to_is_refused_from_the_next_request_on(keys, caplog):
    secret = keys.create("page", ["read"])
    assert keys.find(secret) is not None
    keys.path.chmod(0o666)
    assert keys.find(secret) is None
    assert "others may write" in caplog.text
    keys.path.chmod(0o600)
    assert keys.find(secret) is not None


def test_names_in_force_are_unique_and_free_again_after_revoking(keys):
    secret = keys.create("page", ["read"])
    with pytest.raises(ConfigError, match="already"):
        keys.create("page", ["read"])
    keys.revoke(keys.find(secret).id)
    assert keys.find(keys.create("page", ["read"])) is not None
    assert len(keys.list()) == 2


def test_two_processes_lose_no_key(keys):
    code = (
        "import sys; from dartboard.api.keys import Keys; keys = Keys.open(sys.argv[1])\n"
        "for i in range(10): keys.create(f'{sys.argv[2]} {i}', ['read'])"
    )
    started = [subprocess.Popen([sys.executable, "-c", code, str(keys.path), name]) for name in ("a", "b")]
    assert [process.wait(60) for process in started] == [0, 0]
    assert len(keys.list()) == 20
    assert sorted(path.name for path in keys.path.parent.iterdir()) == [".keys.json.lock", "keys.json"]


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        ({"name": " "}, "name"),
        ({"name": "a\nb"}, "printable"),
        ({"name": "x" * 101}, "100"),
        ({"scopes": []}, "scopes"),
        ({"scopes": ["admin"]}, "scopes"),
        ({"scopes": ["write"]}, "may read as well"),
        ({"rate": 0}, "rate"),
        ({"rate": float("nan")}, "rate"),
    ],
)
def test_keys_that_make_no_sense_are_refused_and_change_nothing(keys, options, complaint):
    before = keys.path.read_bytes()
    with pytest.raises(ConfigError, match=complaint):
        keys.create(**{"name": "page", "scopes": ["read"], **options})
    assert keys.path.read_bytes() == before


def test_no_file_says_how_to_make_one(tmp_path):
    with pytest.raises(ConfigError, match="dartboard keys create"):
        Keys.open(tmp_path / "none.json")


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"{",
        b"[]",
        b"null",
        b'{"kind": "other"}',
        b'{"kind": "dartboard keys", "format": 1}',
        b'{"kind": "dartboard keys", "format": 1, "keys": [{}]}',
        b'{"kind": "dartboard keys", "format": 1, "keys": [{"id": "a", "sha256": "00", "scopes": ["read"]}]}',
        b"\xff\xfe",
        b"[" * 100_000,
    ],
)
def test_a_damaged_file_is_an_error_and_lets_nobody_in(keys, content, caplog):
    secret = keys.create("page", ["read"])
    keys.path.write_bytes(content)
    with pytest.raises(ConfigError, match="damaged"):
        Keys.open(keys.path)
    assert keys.find(secret) is None
    assert keys.find(secret) is None
    assert [record.levelno for record in caplog.records] == [logging.ERROR]
    with pytest.raises(ConfigError):
        keys.create("more", ["read"])
    assert keys.path.read_bytes() == content


def test_a_file_that_comes_back_counts_again(keys):
    secret = keys.create("page", ["read"])
    away = keys.path.with_name("away")
    keys.path.rename(away)
    assert keys.find(secret) is None
    away.rename(keys.path)
    assert keys.find(secret) is not None


def test_a_file_of_an_older_version_is_read(keys):
    secret = keys.create("page", ["read"])
    document = json.loads(keys.path.read_text())
    document["keys"][0]["burst"] = 9
    keys.path.write_text(json.dumps(document))
    assert Keys.open(keys.path).find(secret).name == "page"


def test_a_newer_format_is_named(keys):
    keys.path.write_text('{"kind": "dartboard keys", "format": 2, "keys": []}')
    with pytest.raises(ConfigError, match="format 2"):
        Keys.open(keys.path)


def test_a_file_that_others_write_is_refused_and_one_they_read_warned_of(keys, caplog):
    keys.path.chmod(0o644)
    Keys.open(keys.path)
    assert "chmod 600" in caplog.text
    keys.path.chmod(0o620)
    with pytest.raises(ConfigError, match="others may write"):
        Keys.open(keys.path)


def test_a_failed_write_leaves_the_file_as_it_was(keys, monkeypatch):
    secret = keys.create("page", ["read"])
    monkeypatch.setattr(os, "fsync", _full)
    with pytest.raises(OSError, match="full"):
        keys.create("more", ["read"])
    assert keys.find(secret) is not None and len(keys.list()) == 1
    assert sorted(path.name for path in keys.path.parent.iterdir()) == [".keys.json.lock", "keys.json"]


def _full(_):
    raise OSError("the disk is full")


def run(capsys, *arguments):
    code = main(["keys", *arguments])
    captured = capsys.readouterr()
    return code, captured.out, captured.err


def test_the_command_makes_lists_and_revokes(tmp_path, capsys, monkeypatch):
    monkeypatch.setenv("DARTBOARD_KEYS", str(tmp_path / "deep" / "keys.json"))
    monkeypatch.setenv("COLUMNS", "120")
    code, out, err = run(capsys, "create", "search page")
    secret = out.strip()
    assert code == 0 and out.count("\n") == 1 and "cannot be shown again" in err and secret not in err
    code, out, _ = run(capsys, "create", "indexer", "--scope", "write", "--rate", "5", "--json")
    made = json.loads(out)
    assert made["scopes"] == ["read", "write"] and made["rate"] == 5
    found = Keys.open(tmp_path / "deep" / "keys.json")
    assert found.find(secret).name == "search page" and found.find(made["secret"]).rate == 5
    code, out, err = run(capsys, "list")
    assert "search page" in out and "read + write" in out and "5/s" in out
    code, listed, _ = run(capsys, "list", "--json")
    for shown in (out, err, listed):
        assert secret.split("_", 2)[2] not in shown and made["secret"].split("_", 2)[2] not in shown
    code, out, _ = run(capsys, "revoke", made["id"])
    assert code == 0 and "is revoked" in out
    assert found.find(made["secret"]) is None and found.find(secret) is not None
    assert "revoked 2" in run(capsys, "list")[1]


def test_the_command_complains_in_one_line(tmp_path, capsys):
    file = str(tmp_path / "keys.json")
    assert run(capsys)[0] == 0
    assert "no key file" in run(capsys, "list", "--keys", file)[2]
    run(capsys, "create", "page", "--keys", file)
    for arguments in (("create", "page"), ("create", "x", "--rate", "0"), ("revoke", "none")):
        code, out, err = run(capsys, *arguments, "--keys", file)
        assert (code, out, err.count("\n")) == (2, "", 1)
    assert run(capsys, "create", "x", "--scope", "admin", "--keys", file)[0] == 2


def test_the_users_own_folder_is_the_default(tmp_path, capsys, monkeypatch):
    monkeypatch.delenv("DARTBOARD_KEYS", raising=False)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    run(capsys, "create", "page")
    run(capsys, "revoke", Keys.open(tmp_path / "dartboard" / "keys.json").list()[0].id, "--json")
    assert Keys.open(tmp_path / "dartboard" / "keys.json").list()[0].revoked
    (tmp_path / "dartboard" / "keys.json").unlink()
    Keys.open(tmp_path / "dartboard" / "keys.json", create=True)
    assert "no keys" in run(capsys, "list")[1]
