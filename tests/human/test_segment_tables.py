"""The segment tables agree with de Leva (1996), row by row, and with his other rows."""

import pytest

from torsor.library.anthropometry import BODY_TABLES

# The rows between the joint centres and landmarks of the skeleton: length (mm), mass (%), centre of mass and radii of
# gyration about the axes forward, sideways and along (% of the length), as de Leva prints them.
DE_LEVA = {
    "male": """
        head 242.9 6.94 50.02 30.3 31.5 26.1
        upper trunk 242.1 15.96 50.66 50.5 32.0 46.5
        middle trunk 215.5 16.33 45.02 48.2 38.3 46.8
        lower trunk 145.7 11.17 61.15 61.5 55.1 58.7
        upper arm 281.7 2.71 57.72 28.5 26.9 15.8
        forearm 268.9 1.62 45.74 27.6 26.5 12.1
        hand 86.2 0.61 79.00 62.8 51.3 40.1
        thigh 422.2 14.16 40.95 32.9 32.9 14.9
        shank 440.3 4.33 43.95 25.1 24.6 10.2
        foot 258.1 1.37 44.15 25.7 24.5 12.4""",
    "female": """
        head 243.7 6.68 48.41 27.1 29.5 26.1
        upper trunk 228.0 15.45 50.50 46.6 31.4 44.9
        middle trunk 205.3 14.65 45.12 43.3 35.4 41.5
        lower trunk 181.5 12.47 49.20 43.3 40.2 44.4
        upper arm 275.1 2.55 57.54 27.8 26.0 14.8
        forearm 264.3 1.38 45.59 26.1 25.7 9.4
        hand 78.0 0.56 74.74 53.1 45.4 33.5
        thigh 368.5 14.78 36.12 36.9 36.4 16.2
        shank 438.6 4.81 43.52 26.7 26.3 9.2
        foot 228.3 1.29 40.14 29.9 27.9 13.9""",
}

# Rows of the female table between other landmarks: length, centre, radii, and how far their upper end is above that of
# the row that the skeleton uses. The centre of mass and the moments of inertia are those of the same piece of the body.
OTHERS = {
    "shank": [(432.3, 44.16, 27.1, 26.7, 9.3, 0.0), (426.0, 44.81, 27.5, 27.1, 9.4, 0.0)],
    "head": [(200.2, 58.94, 33.0, 35.9, 31.8, 0.0)],
    "forearm": [(262.4, 45.92, 26.3, 25.9, 9.5, 0.0)],
    "hand": [(170.1, 34.27, 24.4, 20.8, 15.4, 0.0)],
    "upper trunk": [(142.5, 20.77, 74.6, 50.2, 71.8, -85.5)],
}


@pytest.mark.parametrize("sex", BODY_TABLES)
def test_every_row_is_the_printed_one(sex: str) -> None:
    printed = {}
    for line in DE_LEVA[sex].strip().splitlines():
        *name, length, mass, centre, forward, sideways, long = line.split()
        printed[" ".join(name)] = tuple(map(float, (length, mass, centre, forward, sideways, long)))
    assert {name: tuple(row) for name, row in BODY_TABLES[sex].rows.items()} == printed


@pytest.mark.parametrize("name", OTHERS)
def test_rows_to_other_landmarks_describe_the_same_piece_of_a_woman(name: str) -> None:
    row = BODY_TABLES["female"].rows[name]
    for length, centre, forward, sideways, long, above in OTHERS[name]:
        assert centre / 100 * length - above == pytest.approx(
            row.centre / 100 * row.length, abs=0.6
        )  # mm: % is rounded
        for own, other in ((row.forward, forward), (row.sideways, sideways), (row.long, long)):
            assert other * length == pytest.approx(own * row.length, abs=0.06 * (length + row.length))


def test_the_rows_of_a_womans_trunk_sum_to_its_length() -> None:
    rows = BODY_TABLES["female"].rows
    whole = sum(rows[f"{part} trunk"].length for part in ("upper", "middle", "lower"))
    assert whole == pytest.approx(614.8, abs=0.05)  # cervicale to the midpoint of the hips


def test_the_rows_of_a_mans_trunk_sum_to_its_length() -> None:
    rows = BODY_TABLES["male"].rows
    whole = sum(rows[f"{part} trunk"].length for part in ("upper", "middle", "lower"))
    assert whole == pytest.approx(603.3, abs=0.05)


def test_a_womans_whole_trunk_has_the_mass_and_the_centre_of_mass_of_its_parts() -> None:
    rows, at, moment, mass = BODY_TABLES["female"].rows, 0.0, 0.0, 0.0
    for part in ("upper", "middle", "lower"):
        row = rows[f"{part} trunk"]
        moment, mass, at = moment + row.mass * (at + row.centre / 100 * row.length), mass + row.mass, at + row.length
    assert mass == pytest.approx(42.57, abs=0.011)
    assert 100 * moment / mass / at == pytest.approx(49.64, abs=0.02)  # cervicale to the midpoint of the hips
