"""Commands that need signals refuse systems that cannot block them, with one sentence."""

import signal

import pytest

from train import ddp, generate


@pytest.mark.parametrize("command", [ddp, generate])
def test_training_and_generation_name_the_systems_that_they_need(command, monkeypatch, capsys):
    monkeypatch.delattr(signal, "pthread_sigmask")
    with pytest.raises(SystemExit) as left:
        command.main([])
    said = capsys.readouterr().err
    assert (
        left.value.code == 2 and said.startswith("error: this command needs Linux or macOS") and said.count("\n") == 1
    )
