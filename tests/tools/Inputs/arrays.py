"""arrays.py DIR: .npy and .npz files, good ones and one for each mistake.

The model under test is y = 2 x for x of shape (?, 3), input "x", output "y".
"""

import struct
import sys
import zipfile


def npy(values, shape, descr="<f4", order="False", code="f"):
    header = f"{{'descr': '{descr}', 'fortran_order': {order}, 'shape': {shape}, }}"
    header += " " * ((64 - (10 + len(header) + 1) % 64) % 64) + "\n"
    data = struct.pack(f"<{len(values)}{code}", *values)
    magic = b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header))
    return magic + header.encode() + data


def write(name, data):
    with open(f"{sys.argv[1]}/{name}", "wb") as file:
        file.write(data)


def write_npz(name, arrays):
    with zipfile.ZipFile(f"{sys.argv[1]}/{name}", "w", zipfile.ZIP_DEFLATED) as file:
        for key, data in arrays.items():
            file.writestr(key + ".npy", data)


x = npy([1, 2, 3, 4, 5, 6], (2, 3))
y = npy([2, 4, 6, 8, 10, 12], (2, 3))
nan = float("nan")

write("x.npy", x)
write("y.npy", y)
write_npz("both.npz", {"in_x": x, "out_0": y})
write_npz("plain.npz", {"x": x, "y": y})
write("double.npy", npy([1, 2, 3, 4, 5, 6], (2, 3), "<f8", code="d"))
write("int.npy", npy([1, 2, 3, 4, 5, 6], (2, 3), "<i4", code="i"))
write("off.npy", npy([2, 4, 6, 8, 10, 12.12], (2, 3)))
write("nan-reference.npy", npy([2, 4, 6, 8, 10, nan], (2, 3)))
write("nan.npy", npy([1, 2, 3, 4, 5, nan], (2, 3)))
write("all-nan.npy", npy([nan] * 3, (1, 3)))
write("one-row.npy", npy([2, 4, 6], (1, 3)))

write("wide.npy", npy([1, 2, 3, 4], (1, 4)))
write_npz("other.npz", {"image": x, "label": y})
write("fortran.npy", npy([1, 2, 3, 4, 5, 6], (2, 3), order="True"))
write("complex.npy", npy([1, 2], (1,), "<c8"))
write("big-endian.npy", npy([1, 2, 3], (1, 3), ">f4"))
write("short.npy", x[:-4])
write("long.npy", x + b"more")
write("huge.npy", npy([1], (2**31, 2**31, 2**31)))
write("negative.npy", npy([1], (-1, 3)))
write("header.npy", b"\x93NUMPY\x01\x00" + struct.pack("<H", 60000) + b"{}")
write("text.npy", b"\x93NUMPY\x01\x00" + struct.pack("<H", 4) + b"what")
write("empty.npy", b"")
write("not.npz", b"no archive")
write_npz("damaged.npz", {"in_x": x[:100]})

# For the model siamese_shared.
write_npz(
    "batches.npz",
    {
        "in_a": npy([0] * 30, (5, 6)),
        "in_b": npy([0] * 24, (4, 6)),
        "in_c": npy([0] * 20, (5, 4)),
    },
)
