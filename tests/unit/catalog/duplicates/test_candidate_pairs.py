from skillhall._internal.catalog.duplicates.candidate_pairs import (
    MAX_COMMON,
    find_candidate_pairs,
)


def test_texts_with_common_hashes_are_candidates() -> None:
    sketches = [[1, 2, 3, 4], [11, 12, 13, 14], [1, 2, 3, 5], [21, 22, 23, 24]]
    assert find_candidate_pairs(sketches) == ([(0, 2)], [], 0)


def test_one_common_hash_of_many_is_not_enough() -> None:
    assert find_candidate_pairs([[1, 2, 3], [3, 4, 5]]) == ([], [], 0)
    assert find_candidate_pairs([[1], [1]]) == ([(0, 1)], [], 0)
    long = [[*range(100)], [*range(95, 195)]]
    assert find_candidate_pairs(long) == ([], [], 0)


def test_best_pair_of_each_text_has_the_most_common_hashes() -> None:
    sketches = [[1, 2, 9, 10], [1, 2, 3, 4], [1, 2, 3, 5]]
    best, others, _ = find_candidate_pairs(sketches)
    assert best == [(0, 1), (1, 2)]
    assert others == [(0, 2)]


def test_phrase_of_many_texts_makes_no_pairs() -> None:
    count = MAX_COMMON + 1
    sketches = [[1, 2, *range(number * 10 + 10, number * 10 + 18)] for number in range(count)]
    assert find_candidate_pairs(sketches) == ([], [], 2)


def test_texts_of_common_phrases_only_are_paired_with_their_neighbors() -> None:
    count = MAX_COMMON * 3
    sketches = [[1, 2, 3, 4, number + 100] for number in range(count)]
    best, others, common = find_candidate_pairs(sketches)
    assert common == 4
    assert {text for pair in best for text in pair} == {*range(count)}
    assert len(best) + len(others) < 4 * count


def test_number_of_pairs_grows_with_the_number_of_texts() -> None:
    for count in (60, 1000):
        best, others, _ = find_candidate_pairs([[1, 2, 3, 4]] * count)
        assert len(best) == count - 1
        assert len(others) < 3 * count


def test_no_texts_have_no_candidates() -> None:
    assert find_candidate_pairs([]) == ([], [], 0)
    assert find_candidate_pairs([[], []]) == ([], [], 0)
