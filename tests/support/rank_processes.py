"""Work for the processes of ranks, other than training."""

import gc
import os
import signal
import time


def number(run):
    """Returns the number of the rank."""
    return 5 * int(os.environ["RANK"])


def resumes(run):
    """Returns 7 if the run continues from its checkpoint."""
    return 7 * run.resume


def divides(run):
    """Rank 1 dies, while the others wait."""
    return 1 // (1 - int(os.environ["RANK"])) and time.sleep(60)


def is_killed(run):
    """Rank 1 is killed, while the others wait."""
    if os.environ["RANK"] == "1":
        os.kill(os.getpid(), signal.SIGKILL)
    time.sleep(60)


def sleeps(run):
    """Sends its launcher SIGTERM and waits for the end."""
    to_launcher(signal.SIGTERM)
    time.sleep(60)


def saves_for_long(run):
    """Ignores signals; its launcher gets Ctrl-C twice."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    to_launcher(signal.SIGINT)
    to_launcher(signal.SIGINT)
    time.sleep(60)


def stops_at_once(run):
    """Gets a SIGTERM before its first step; returns 5 if DDP still lives when the rank leaves its group."""
    import torch.distributed as dist  # not above: the other work needs none of it
    from torch.nn.parallel import DistributedDataParallel

    from train.launch.run import run_rank
    from train.loop.loop import Loop

    leave_group, alive = dist.destroy_process_group, []

    def leave():
        alive.extend(one for one in gc.get_objects() if type(one) is DistributedDataParallel)
        leave_group()

    dist.destroy_process_group = leave
    Loop.run = lambda loop: loop.stop.note(signal.SIGTERM)
    code = run_rank(run)
    return 5 if alive else code


def to_launcher(number):
    """Send a signal to the launcher from rank 1, the last that it starts."""
    time.sleep(0.5)
    if os.environ["RANK"] == "1":
        os.kill(os.getppid(), number)
