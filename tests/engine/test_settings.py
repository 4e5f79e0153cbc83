"""Settings from flags, environment and file, in that order."""

import pytest

from dartboard.engine import Settings, load_settings
from dartboard.engine.settings import MEANING
from dartboard.errors import ConfigError


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setattr("platformdirs.user_config_path", lambda name: tmp_path / "user")
    return tmp_path


def test_defaults(folder):
    found = load_settings(environment={}, folder=folder)
    assert found.settings == Settings() and found.file is None
    assert set(found.sources.values()) == {"default"}
    assert set(MEANING) == set(found.sources)


def test_flags_win_over_the_environment_and_that_over_the_file(folder):
    (folder / "dartboard.toml").write_text('store = "a.db"\nk = 7\nsigma = 0.2\ntriage_k = 50\n')
    found = load_settings(
        {"k": 9, "method": None},
        environment={"DARTBOARD_K": "8", "DARTBOARD_SIGMA": "auto", "DARTBOARD_MODEL": " "},
        folder=folder,
    )
    assert (found.settings.store, found.settings.k, found.settings.sigma) == ("a.db", 9, "auto")
    assert found.settings.triage_k == 50 and found.settings.model == "default"
    assert found.sources["k"] == "flag" and found.sources["sigma"] == "DARTBOARD_SIGMA"
    assert found.sources["store"].endswith("dartboard.toml") and found.sources["method"] == "default"


def test_the_file_by_variable_and_the_users_own(folder, tmp_path):
    named = tmp_path / "named.toml"
    named.write_text("k = 3\n")
    assert load_settings(environment={"DARTBOARD_CONFIG": str(named)}, folder=folder).settings.k == 3
    (tmp_path / "user").mkdir()
    (tmp_path / "user" / "dartboard.toml").write_text("k = 4\n")
    assert load_settings(environment={}, folder=folder).settings.k == 4
    with pytest.raises(ConfigError, match="is not a file"):
        load_settings(environment={"DARTBOARD_CONFIG": str(tmp_path / "nowhere")}, folder=folder)


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("k = ", "cannot be read"),
        ("kay = 3", "unknown setting 'kay': there are store"),
        ("k = 2.5", "k must be a whole number"),
        ("k = true", "k must be a whole number"),
        ("k = [1]", "k must be a whole number"),
        ("store = 3", "store must be text"),
        ('store = " "', "store must be text"),
        ('sigma = "wide"', "sigma must be a number or 'auto'"),
        ("sigma = true", "sigma must be a number or 'auto'"),
    ],
)
def test_a_bad_file(folder, text, complaint):
    (folder / "dartboard.toml").write_text(text)
    with pytest.raises(ConfigError, match=complaint):
        load_settings(environment={}, folder=folder)


@pytest.mark.parametrize(
    ("flags", "complaint"),
    [
        ({"sigma": "foo"}, r"^--sigma must be a number or 'auto' \(numbers from 1e-05 to 10\), got 'foo'$"),
        ({"sigma": "11"}, "^--sigma must be a number or 'auto'"),
        ({"sigma": "nan"}, "^--sigma must be a number or 'auto'"),
        ({"triage_k": "many"}, "^--triage"),
        ({"answer_tokens": "many"}, "^--answer-tokens must be a whole number"),
        ({"store": " "}, "^--store must be text"),
        ({"model": " "}, "^--embedding-model must be text"),
    ],
)
def test_a_bad_flag_is_named_as_its_option(folder, flags, complaint):
    with pytest.raises(ConfigError, match=complaint):
        load_settings(flags, options={"model": "--embedding-model"}, environment={}, folder=folder)


def test_a_bad_variable_is_named(folder):
    with pytest.raises(ConfigError, match="DARTBOARD_K: k must be a whole number, got 'many'"):
        load_settings(environment={"DARTBOARD_K": "many"}, folder=folder)
