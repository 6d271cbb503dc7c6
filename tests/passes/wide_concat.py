"""wide_concat.py COUNT: prints a function that concatenates so many tensors."""

import sys

count = int(sys.argv[1])
names = [f"%x{number}" for number in range(count)]
part, whole = "tensor<?x2xf32>", f"tensor<?x{2 * count}xf32>"
arguments = ", ".join(f"{name}: {part}" for name in names)
print(f"func.func @wide({arguments}) -> {whole} {{")
print(f"  %y = ktn.concat {', '.join(names)} {{axis = 1}} : "
      f"{', '.join([part] * count)} -> {whole}")
print(f"  return %y : {whole}\n}}")
