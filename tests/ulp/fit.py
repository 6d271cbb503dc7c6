#!/usr/bin/env python3
"""Fits the f64 polynomials and the pieces of erf of passes/VectorMathTable.cpp.

Prints the rows of its table.

Remez exchange in 60 digits (needs mpmath), weighted for the error relative to
the function, then each coefficient is rounded to a double. The powers below are
what the sequences multiply the polynomial with: see passes/VectorMath.cpp.
"""
import struct

import mpmath as mp

mp.mp.dps = 60


def remez(target, relative, powers, low, high):
    """Minimises max |weight(x) (sum c_i x^powers[i] - target(x))|."""
    n = len(powers)
    weight = lambda x: max(relative(x), mp.mpf(1) / 10000)  # 0 is singular
    middle, half = (low + high) / 2, (high - low) / 2
    points = [middle - half * mp.cos(mp.pi * i / n) for i in range(n + 1)]
    grid = [middle - half * mp.cos(mp.pi * (i + mp.mpf(1) / 2) / 1200)
            for i in range(1200)]
    values = [(x, target(x), weight(x)) for x in grid]
    for _ in range(12):
        rows, right = [], []
        for i, x in enumerate(points):
            rows.append([x**p for p in powers] + [(-1)**i / weight(x)])
            right.append(target(x))
        solution = mp.lu_solve(mp.matrix(rows), mp.matrix(right))
        c = [solution[i] for i in range(n)]
        error = [w * (sum(a * x**p for a, p in zip(c, powers)) - t)
                 for x, t, w in values]
        # The largest error of each run of equal sign is an exchange point.
        runs = []
        for i, e in enumerate(error):
            if runs and (error[runs[-1]] > 0) == (e > 0):
                if abs(e) > abs(error[runs[-1]]):
                    runs[-1] = i
            else:
                runs.append(i)
        while len(runs) > n + 1:
            runs.pop(0 if abs(error[runs[0]]) < abs(error[runs[-1]]) else -1)
        if len(runs) < n + 1:
            break
        points = [grid[i] for i in runs]
        worst = [abs(error[i]) for i in runs]
        if max(worst) / min(worst) < 1.01:
            break
    rounded = [mp.mpf(float(a)) for a in c]
    left = max(abs(w * (sum(a * x**p for a, p in zip(rounded, powers)) - t))
               for x, t, w in values)
    return [float(a) for a in c], mp.log(max(map(abs, error)), 2), mp.log(left, 2)


def show(name, target, weight, powers, low, high):
    c, ideal, rounded = remez(target, weight, powers, mp.mpf(low), mp.mpf(high))
    print(f"// {name}: 2^{float(ideal):.1f}, rounded 2^{float(rounded):.1f}, "
          f"on [{low}, {high}]")
    print(f"{name}[] = {{" + ", ".join(map(repr, c)) + "};", flush=True)


def pieces(name, target, width, count, degree):
    """Rows of f32 coefficients, one a power, of polynomials around k width."""
    rows, half = [[] for _ in range(degree + 1)], mp.mpf(1) / 2
    worst = 0
    for k in range(count):
        if k == count - 1:  # all that is behind
            c = [mp.mpf(1)] + [mp.mpf(0)] * degree
        else:
            # Through the zeros of a Chebyshev polynomial; around 0, where the
            # first half is not used, without a constant.
            low = 0 if k else 1
            n = degree + 1 - low
            at = [half * mp.cos(mp.pi * (i + half) / n) for i in range(n)]
            if not k:
                at = [(f + half) / 2 for f in at]
            c = [mp.mpf(0)] * low + list(mp.lu_solve(
                mp.matrix([[f**p for p in range(low, degree + 1)] for f in at]),
                mp.matrix([target((k + f) * width) for f in at])))
        c = [mp.mpf(struct.unpack("f", struct.pack("f", float(a)))[0]) for a in c]
        for row, a in zip(rows, c):
            row.append(float(a))
        for i in range(201):
            f = mp.mpf(i - 100) / 200
            y = (k + f) * width
            if y > 0:
                y_hat = sum(a * f**p for p, a in enumerate(c))
                worst = max(worst, abs(y_hat / target(y) - 1))
    print(f"// {name}: relative error 2^{float(mp.log(worst, 2)):.1f}")
    for power, row in enumerate(rows):
        numbers = (f"{a:.9g}" if a % 1 else f"{a:.1f}" for a in row)
        print(f"static constexpr float {name}{power}[] = {{" +
              ", ".join(number + "F" for number in numbers) + "};", flush=True)


if __name__ == "__main__":
    pieces("f32ErfPiece", mp.erf, mp.mpf(1) / 8, 32, 4)
    L = "0.3475"
    show("exp", lambda x: (mp.exp(x) - 1 - x) / x**2, lambda x: x**2 * mp.exp(-x),
         range(11), "-" + L, L)
    show("expm1", lambda x: (mp.expm1(x) - x) / x**2,
         lambda x: 1, range(11), "-" + L, L)
    show("log", lambda x: (mp.log1p(x) - x) / x**2,
         lambda x: x**2 / abs(mp.log1p(x)), range(21), "-0.2930", "0.4143")
    # In u = x^2 from here to erfSmall.
    H = "0.6194"
    show("sin", lambda u: (mp.sin(mp.sqrt(u)) / mp.sqrt(u) - 1) / u, lambda u: u,
         range(7), "1e-12", H)
    show("cos", lambda u: (mp.cos(mp.sqrt(u)) - 1 + u / 2) / u**2, lambda u: u**2,
         range(6), "1e-12", H)
    show("erfSmall", lambda u: mp.erf(mp.sqrt(u)) / mp.sqrt(u) - 1, lambda u: 1,
         range(13), "1e-14", "0.8791")
    # erfc(x) = e^(-x^2) p((x - 2) / (x + 2)).
    back = lambda t: 2 * (1 + t) / (1 - t)
    show("erfcScaled", lambda t: mp.exp(back(t)**2) * mp.erfc(back(t)),
         lambda t: mp.exp(-back(t)**2) / mp.erf(back(t)), range(16), "-0.3652", "0.5")
    # atanh(s) = s + s^3 (1/3 + s^2 p(s^2)) of pow, |s| <= 3 - 2 sqrt 2.
    show("atanh", lambda u: ((mp.atanh(mp.sqrt(u)) / mp.sqrt(u) - 1) / u - mp.mpf(1) / 3) / u,
         lambda u: u**2, range(8), "1e-9", "0.02945")
