"""What `convert` does with arrays: layout, byte order, aliasing, memory, threads, errors."""

import threading
import tracemalloc
from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from numeric_support import ENGINES, Array

import pto.numerics.engines as engines
from pto.numerics import FORMATS, convert, convert_bits

BASE = (np.random.default_rng(2).standard_normal((48, 64)) * 100).astype(np.float32)


def plain(values: Array, to: str, **options: Any) -> Array:
    """The conversion of a contiguous copy."""
    return convert(values.astype(np.float32, order="C"), to, engine="numpy", **options)


LAYOUTS: dict[str, Callable[[Array], Array]] = {
    "transposed": lambda a: a.T,
    "every other column": lambda a: a[:, ::2],
    "every third row": lambda a: a[::3],
    "reversed": lambda a: a[::-1, ::-1],
    "a window": lambda a: a[3:19, 5:37],
    "Fortran order": np.asfortranarray,
    "big-endian": lambda a: a.astype(">f4"),
    "big-endian window": lambda a: a.astype(">f4")[2:, ::3],
    "broadcast": lambda a: np.broadcast_to(a[:1], a.shape),
    "three dimensions": lambda a: a.reshape(4, 12, 64).transpose(2, 0, 1),
    "unaligned": lambda a: np.frombuffer(b"x" + a.tobytes(), np.float32, offset=1),
    "one element": lambda a: a[:1, :1],
    "0-d": lambda a: a[0, 0].reshape(()),
    "empty": lambda a: a[:0],
    "no columns": lambda a: a[:, :0],
}


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("to", ["f16", "f8e4m3fn", "i32", "i64"])
def test_layouts(layout: str, to: str, engine: str) -> None:
    values = LAYOUTS[layout](BASE)
    before = values.copy()
    got = convert(values, to, engine=engine)
    assert got.shape == values.shape
    assert got.dtype == FORMATS[to].carrier
    code = FORMATS[to].code_dtype
    assert np.array_equal(got.view(code), plain(values, to).view(code))
    assert np.array_equal(values, before)


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(
    "out",
    [
        np.zeros((48, 64), np.float16),
        np.zeros((64, 48), np.float16).T,
        np.zeros((48, 128), np.float16)[:, ::2],
        np.zeros((48, 64), ">f2"),
        np.zeros((48, 64), np.uint16),
    ],
    ids=["contiguous", "transposed", "strided", "big-endian", "codes"],
)
def test_out(out: Array, engine: str) -> None:
    assert convert(BASE, "f16", out=out, engine=engine) is out
    expected = plain(BASE, "f16")
    native = out.astype(out.dtype.newbyteorder("="))
    assert np.array_equal(native.view(np.float16), expected)


def test_out_leaves_its_surroundings_alone() -> None:
    around = np.full((10, 10), 7, np.float16)
    convert(BASE[:4, :4], "f16", out=around[2:6, 3:7])
    mask = np.ones_like(around, bool)
    mask[2:6, 3:7] = False
    assert (around[mask] == 7).all()


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("shift", [0, 2, 3, -2])
def test_out_may_overlap_the_input(engine: str, shift: int) -> None:
    memory = np.zeros(4000, np.float32)
    source = memory[1000:2000]
    source[:] = BASE.ravel()[:1000]
    expected = plain(source, "i32")
    target = memory.view(np.int32)[1000 + shift : 2000 + shift]
    convert(source, "i32", out=target, engine=engine)
    assert np.array_equal(target, expected)


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("to", ["f32", "i32", "f16", "f8e5m2", "i64"])
def test_in_place(engine: str, to: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engines, "IN_PLACE_BLOCK", 100)
    fmt = FORMATS[to]
    memory = np.zeros(2000, np.uint64)
    source = memory.view(np.float32)[:1500]
    source[:] = BASE.ravel()[:1500]
    expected = plain(source, to)
    target = memory.view(fmt.carrier)[:1500]
    convert(source, to, out=target, engine=engine)
    assert np.array_equal(target.view(fmt.code_dtype), expected.view(fmt.code_dtype))


def test_read_only_input() -> None:
    values = BASE.copy()
    values.flags.writeable = False
    assert np.array_equal(convert(values, "f16"), plain(BASE, "f16"))


def test_scalars_and_lists() -> None:
    assert convert(2.5, "i32", src="f32") == 2
    assert convert([1.5, -2.5], "i8", src="f16").tolist() == [2, -2]
    assert convert(np.float32(7), "bf16") == ml_dtypes.bfloat16(7)


def test_codes_as_input() -> None:
    """Formats without a numpy dtype come as unsigned codes."""
    hif8 = convert(np.array([1, -0.75, 384], np.float32), "hif8")
    assert hif8.dtype == np.uint8
    assert convert(hif8, "f32", src="hif8").tolist() == [1, -0.75, 384]
    bf16 = np.array([0x3F80, 0x4049], np.uint16)
    assert convert(bf16, "f32", src="bf16").tolist() == [1.0, 3.140625]


@pytest.mark.parametrize("order", ["C", "F", "strided", ">"])
def test_complex(order: str) -> None:
    z = (BASE[:, ::2] + 1j * BASE[:, 1::2]).astype(np.complex64)
    given = {
        "C": z,
        "F": np.asfortranarray(z),
        "strided": np.repeat(z, 2, axis=1)[:, ::2],
        ">": z.astype(">c8"),
    }[order]
    half = convert(given, "c32", mode="ODD", saturation="OFF")
    parts = np.ascontiguousarray(half).view(np.float16)
    assert np.array_equal(parts[:, ::2], convert(z.real, "f16", mode="ODD", saturation="OFF"))
    assert np.array_equal(parts[:, 1::2], convert(z.imag, "f16", mode="ODD", saturation="OFF"))
    back = convert(half, "c64", src="c32")
    assert np.array_equal(back.view(np.float32).astype(np.float16).view(np.uint32), half)
    floor = convert(given, "c64", mode="FLOOR")
    assert np.array_equal(floor, np.floor(z.real) + 1j * np.floor(z.imag))


@pytest.mark.parametrize("engine", ENGINES)
def test_dequantisation(engine: str) -> None:
    """Spec S13: RINT of x * scale whatever the mode, and overflow saturates."""
    x = np.array([3, -5, 2049, 2**31 - 1, -(2**31), 0], np.int32)
    got = convert(x, "f16", mode="FLOOR", deq_scale=0.5, engine=engine)
    assert got.tolist() == [1.5, -2.5, 1024.0, 65504, -65504, 0]
    assert convert(x[2:3], "f16", mode="CEIL", engine=engine).tolist() == [2048]
    strided = convert(np.repeat(x, 2)[::2], "f16", deq_scale=0.5, engine=engine)
    assert np.array_equal(strided, got)


@pytest.mark.parametrize(("src", "dst"), [("f32", "f16"), ("f64", "i32"), ("f32", "f8e5m2")])
def test_memory_beyond_input_and_output(src: str, dst: str) -> None:
    """No temporary of the array's size, whatever the layout (numpy reports to tracemalloc)."""
    x = np.ones((1 << 11, 1 << 12), FORMATS[src].carrier)
    out = np.empty(x.shape, FORMATS[dst].carrier)
    for engine in ("numpy", "auto"):
        tracemalloc.start()
        convert(x, dst, out=out, engine=engine)
        convert(x[:, ::2], dst, out=out[:, ::2], engine=engine)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert peak < 16 << 20


@pytest.mark.slow
def test_a_thousand_million_elements() -> None:
    x = np.empty(10**9, np.uint8)
    x.reshape(-1, 250)[:] = np.arange(250, dtype=np.uint8)
    out = convert(x, "f16")
    assert out[-1] == 249
    assert out.reshape(-1, 250).sum(axis=0, dtype=np.float64).tolist() == [
        i * len(x) / 250 for i in range(250)
    ]


def test_threads_share_nothing_but_code() -> None:
    wanted = {to: plain(BASE, to) for to in ("f16", "bf16", "i32", "f8e4m3fn")}
    failures: list[str] = []

    def work(to: str) -> None:
        for engine in ("numpy", "auto"):
            for _ in range(40):
                got = convert(BASE, to, engine=engine)
                if not np.array_equal(got.view(np.uint8), wanted[to].view(np.uint8)):
                    failures.append(to)

    threads = [threading.Thread(target=work, args=(to,)) for to in [*wanted, *wanted]]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures


def test_auto_compiles_when_it_has_seen_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    from pto.numerics.jit_engine import is_available
    from pto.numerics.kernel import ConversionRule

    if not is_available():
        pytest.skip("no llvmlite")
    monkeypatch.setattr(engines, "COMPILE_AFTER", 2 * (BASE.size + engines.CALL_ELEMENTS))
    conversion = engines.Conversion(FORMATS["f32"], FORMATS["f16"], ConversionRule("RINT"))
    out = np.empty(BASE.shape, np.uint16)
    conversion.run(BASE.view(np.uint32), out)
    assert "jit" not in vars(conversion)
    conversion.run(BASE.view(np.uint32), out)
    assert "jit" in vars(conversion)
    assert np.array_equal(out.view(np.float16), plain(BASE, "f16"))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"to": "bf16", "mode": "ODD"}, "no mode ODD.*RINT, ROUND, FLOOR, CEIL, TRUNC, NONE"),
        ({"to": "hif8", "mode": "RINT"}, "no mode RINT.*ROUND, HYBRID"),
        ({"to": "f16", "mode": "RINTT"}, "unknown rounding mode.*RINT"),
        ({"to": "f16", "saturation": "MAYBE"}, "ON.*OFF"),
        ({"to": "float16"}, "unknown format.*f16"),
        ({"to": "c32"}, "complex"),
        ({"to": "f16", "engine": "cuda"}, "unknown engine.*numpy"),
        ({"to": "f16", "src": "bf16"}, "bfloat16.*not float32"),
        ({"to": "f16", "out": np.empty(3, np.float16)}, "shape"),
        ({"to": "f16", "out": np.empty((48, 64), np.float32)}, "dtype"),
        ({"to": "f16", "nan_saturation": "drop"}, "zero.*keep"),
        ({"to": "f16", "deq_scale": 2.0}, "i32 to f16 only"),
    ],
)
def test_errors_say_what_is_offered(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        convert(BASE, **arguments)


def test_one_type_with_itself() -> None:
    with pytest.raises(ValueError, match="f32 to f32"):
        convert(BASE.astype(np.float16), "f16")


def test_out_must_be_writeable() -> None:
    out = np.empty(BASE.shape, np.float16)
    out.flags.writeable = False
    with pytest.raises(ValueError, match="read-only"):
        convert(BASE, "f16", out=out)


def test_dtypes_without_a_format() -> None:
    with pytest.raises(ValueError, match="complex128"):
        convert(np.ones(3, np.complex128), "c32")


def test_bits_ignore_a_saturation_without_choice() -> None:
    codes = BASE.view(np.uint32)
    on, off = (convert_bits(codes, "f32", "f32", "CEIL", s) for s in ("ON", "OFF"))
    assert np.array_equal(on, off)
