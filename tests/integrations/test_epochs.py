"""The epoch that all processes share. Other processes import this file, so it imports little."""

import gc
import multiprocessing
import pickle

import pytest

from una_fast.integrations.epochs import SharedEpoch


def read_epochs(epoch, pipe):
    """Runs in another process: answers each request with the epoch."""
    while pipe.recv():
        pipe.send(epoch.value)


@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
def test_a_process_sees_the_epoch_move(method):
    if method not in multiprocessing.get_all_start_methods():
        pytest.skip(f"this system cannot {method}")
    context = multiprocessing.get_context(method)
    here, there = context.Pipe()
    epoch = SharedEpoch()
    process = context.Process(target=read_epochs, args=(epoch, there))
    process.start()
    for value in (0, 3, 2**63):
        epoch.value = value
        here.send(True)
        assert here.recv() == value
    here.send(False)
    process.join()
    assert process.exitcode == 0 and epoch._path.exists()


def test_the_epoch_leaves_no_file_behind():
    epoch = SharedEpoch(4)
    path, travelling = epoch._path, pickle.dumps(epoch)
    copied = pickle.loads(travelling)
    del epoch
    gc.collect()
    assert not path.exists() and copied.value == 4
    late = pickle.loads(travelling)  # its owner is gone: the value stays
    assert late.value == 4 and late._path != path


class State:
    def __init__(self, epoch):
        self.epoch = epoch


def test_epochs_are_counted_from_where_a_run_goes_on():
    from una_fast.integrations.callbacks import EpochCallback

    told = []
    callback = EpochCallback(told.append)
    for begun, expected in [(None, [0, 1, 2]), (2.6, [2, 3, 4]), (1.0, [1, 2, 3])]:
        callback.on_train_begin(None, State(begun), None)
        for epoch in expected:  # streamed data has no length, so state.epoch is of no use
            callback.on_epoch_begin(None, State(0.1), None)
            assert told[-1] == epoch
