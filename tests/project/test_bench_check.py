"""bench.check: what it tells of a kernel that got slower, and the tolerance that it saves."""

from bench.check import REFERENCES, slower, summary


def test_a_slower_kernel_is_named_with_its_last_good_commit():
    good = dict.fromkeys(REFERENCES, 0.5)
    saved = summary([good, {**good, "index": 0.55}], "abc1234")
    assert saved["kernels"]["index"] == {"ratio": 0.5, "tolerance": 0.3, "commit": "abc1234"}
    assert saved["kernels"]["augment"]["tolerance"] == 0.15
    assert slower({**good, "index": 0.64}, saved, 1.0) == []
    (message,) = slower({**good, "augment": 0.6}, saved, 1.0)
    assert message.endswith(
        "takes 0.6 times as long as nltk, and took 0.5 times as long at commit abc1234, with a tolerance of 15%"
    )
    assert message.startswith("augment: ")
    assert slower({**good, "augment": 0.6}, saved, 2.0) == []
