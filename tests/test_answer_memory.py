"""Memory of large answers is used again, and never by two arrays at a time."""

import threading

import numpy as np
import pytest

from drhmm import recursion

N_FRAMES = 50_000


def large_answer(value, n_frames=N_FRAMES):
    """Posteriors of two states, the first of them `value` in every frame."""
    log_ratios = np.tile(np.log([value, 1 - value]), (n_frames, 1))
    return recursion.smooth(log_ratios, np.full((2, 2), 0.5), np.full(2, 0.5), n_threads=1)


def test_memory_of_an_answer_that_is_gone_holds_the_next_one():
    first = large_answer(0.25)
    address = first.ctypes.data
    del first
    assert large_answer(0.75).ctypes.data == address


def test_answers_that_are_alive_share_nothing():
    answers = [large_answer(value) for value in (0.125, 0.25, 0.5)]
    for answer, value in zip(answers, (0.125, 0.25, 0.5), strict=True):
        np.testing.assert_allclose(answer[:, 0], value)


def test_a_view_keeps_the_memory_of_its_answer():
    view = large_answer(0.25)[::2, :1]
    others = [large_answer(0.75) for _ in range(3)]
    np.testing.assert_allclose(view, 0.25)
    np.testing.assert_allclose(others[0][:, 0], 0.75)


@pytest.mark.parametrize("n_frames", [8191, 8192, 8193, 3 * 2**18])
def test_answers_of_any_size_can_be_written(n_frames):
    answer = large_answer(0.25, n_frames)
    answer += 1
    assert answer.flags.writeable
    np.testing.assert_allclose(answer[[0, -1], 0], 1.25)


def test_a_smaller_answer_does_not_take_a_block_that_is_much_too_large():
    large = large_answer(0.25, 16 * N_FRAMES)
    begin, size = large.ctypes.data, large.nbytes
    del large
    assert not begin <= large_answer(0.25).ctypes.data < begin + size


def test_threads_never_get_the_same_memory():
    wrong = []

    def work(value):
        for _ in range(50):
            answer = large_answer(value)
            if not np.allclose(answer[:, 0], value):
                wrong.append(value)

    threads = [threading.Thread(target=work, args=(value,)) for value in (0.125, 0.25, 0.5, 0.75)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []
