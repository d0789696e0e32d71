"""Arguments of pandas, and NumPy's masked arrays: taken as what they hold, or refused with a hint; never half of it."""
import numpy as np
import pytest

import xlac


def copies(dtype, shape="4"):
    return xlac.parse(f"HloModule m\nENTRY e {{ x = {dtype}[{shape}] parameter(0)\n ROOT y = {dtype}[{shape}] copy(x) }}")


def masked(*mask, dtype=np.float32):
    return np.ma.masked_array(np.arange(4, dtype=dtype), mask or np.ma.nomask)


@pytest.mark.parametrize("call", [lambda m, x: xlac.compile(m)(x), xlac.interpret])
def test_an_argument_whose_mask_hides_elements_is_refused(call):
    for x in (masked(0, 1, 0, 0), np.ma.masked_array(np.ones(8, np.float32), [1] + [0] * 7)[::2]):
        with pytest.raises(xlac.ArgumentError, match=r"argument 0.*mask.*x\.filled\(0\)"):
            call(copies("f32"), x)


@pytest.mark.parametrize("call, kind", [(xlac.asarray, ValueError), (lambda x: xlac.asarray(x, "f64"), ValueError), (xlac.from_dlpack, BufferError)])
def test_no_buffer_is_made_of_a_masked_array(call, kind):
    with pytest.raises(kind, match="mask hides elements"):
        call(masked(0, 1, 0, 0))
    assert np.asarray(call(masked(0, 0, 0, 0))).tolist() == [0, 1, 2, 3]


def test_masks_that_hide_nothing_are_no_obstacle():
    exe = xlac.compile(copies("f32"))
    for x in (masked(), masked(0, 0, 0, 0), masked(0, 1, 0, 0).data, masked(0, 1, 0, 0).filled(1)):
        assert exe(x).tolist() == [0, 1, 2, 3]


def test_results_are_not_written_behind_a_mask():
    with pytest.raises(xlac.ArgumentError, match="out, array 0.*mask would hide"):
        xlac.compile(copies("f32"))(np.ones(4, np.float32), out=masked(0, 1, 0, 0))


def test_a_masked_array_is_not_given_away():
    exe = xlac.compile("HloModule m\nENTRY e {\n  x = f32[4] parameter(0)\n  ROOT r = f32[4] add(x, x)\n}", donate=0)
    with pytest.warns(xlac.DonationWarning, match="masked"), pytest.raises(xlac.ArgumentError, match="mask hides"):
        exe(xlac.donate(masked(0, 1, 0, 0)))


def test_out_says_what_it_was_given():
    with pytest.raises(xlac.ArgumentError, match=r"its dtype is another one \(float64 of shape \(4,\)\)"):
        xlac.compile(copies("f32"))(np.ones(4, np.float32), out=np.ones(4))


@pytest.fixture(scope="module")
def pd():
    return pytest.importorskip("pandas")


class TestPandas:
    @pytest.mark.parametrize("dtype, hlo", [("float32", "f32"), ("float64", "f64"), ("int8", "s8"), ("uint16", "u16"), ("int64", "s64"), ("bool", "pred"),
                                            ("Float32", "f32"), ("Int64", "s64"), ("boolean", "pred"), ("complex64", "c64")])
    def test_a_series_of_every_type_is_an_argument(self, pd, dtype, hlo):
        x = pd.Series([1, 0, 1, 0], index=list("abcd"), dtype=dtype)
        for run in (xlac.interpret, lambda m, x: xlac.compile(m)(x)):
            back = pd.Series(run(copies(hlo), x), index=x.index)
            assert back.tolist() == [1, 0, 1, 0] and list(back.index) == list("abcd")

    def test_a_frame_is_a_matrix(self, pd):
        frame = pd.DataFrame({"a": [1, 2], "b": [3, 4]}, dtype="float32")
        exe = xlac.compile(copies("f32", "2,2"))
        assert pd.DataFrame(exe(frame), frame.index, frame.columns).equals(frame) and exe(frame[["b", "a"]]).tolist() == [[3, 1], [4, 2]]
        assert pd.DataFrame(xlac.compile(copies("f32", "2,2"), results="buffer")(frame), columns=frame.columns).equals(frame)

    @pytest.mark.parametrize("make, words", [
        (lambda pd: pd.Series([1.0, 2, 3, 4]), r"must be f32\[4\], found f64\[4\]"), (lambda pd: pd.Series(list("abcd")), "not an element type"),
        (lambda pd: pd.Series([1, 2, 3, 4], dtype=object), "dtype object.*(?s:.*)xlac.asarray"), (lambda pd: pd.Series(list("abab"), dtype="category"), "not an element"),
        (lambda pd: pd.Series(pd.date_range("2020", periods=4)), "datetime64"), (lambda pd: pd.Series([1, None, 3, 4], dtype="Int32"), "must be f32|not an element type"),
    ])
    def test_what_is_no_number_of_that_type_is_refused(self, pd, make, words):
        with pytest.raises(xlac.ArgumentError, match=words):
            xlac.compile(copies("f32"))(make(pd))

    def test_objects_that_are_numbers_can_be_converted(self, pd):
        assert xlac.asarray(pd.Series([1, 2], dtype=object), "f32").numpy().tolist() == [1, 2]

    def test_results_are_not_written_into_a_series(self, pd):
        for out in (pd.Series(np.zeros(4, np.float32)), pd.DataFrame(np.zeros((4, 1), np.float32))):
            with pytest.raises(xlac.ArgumentError, match="no memory of its own"):
                xlac.compile(copies("f32"))(np.ones(4, np.float32), out=out)
