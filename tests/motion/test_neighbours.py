"""The order of similar problems: each follows the nearest one of earlier waves, and distances shrink."""

import numpy as np

from torsor.motion.neighbours import features, waves


def test_problems_are_solved_in_waves_whose_distances_shrink() -> None:
    data = [np.random.default_rng(0).normal(size=(40, 2)), np.full((40, 3), np.inf)]
    points = features(data)
    order = waves(points, largest=16)
    assert sorted(k for wave in order for k, _ in wave) == list(range(40))
    assert list(map(len, order)) == [1, 1, 2, 4, 8, 16, 8]
    seen, distances = [order[0][0][0]], list[float]()
    for wave in order[1:]:
        for k, parent in wave:
            own = np.linalg.norm(points[seen] - points[k], axis=1)
            assert own[seen.index(parent)] == own.min()
            distances.append(float(own.min()))
        seen += [k for k, _ in wave]
    assert distances[0] == max(distances)
    assert np.mean(distances[-8:]) < np.mean(distances[-24:-8]) / 1.5


def test_the_first_wave_has_a_problem_for_each_process() -> None:
    points = features([np.random.default_rng(0).normal(size=(40, 2))])
    order = waves(points, largest=32, first=4)
    assert list(map(len, order)) == [4, 4, 8, 16, 8] and all(k == parent for k, parent in order[0])
    assert {k for wave in order[:1] for k, _ in wave} >= {parent for _, parent in order[1]}


def test_equal_problems_and_a_single_one_have_an_order() -> None:
    assert waves(features([np.ones((3, 2))]), largest=16)[0] == [(0, 0)]
    assert waves(features([np.ones((1, 2))]), largest=16) == [[(0, 0)]]
