"""What a request costs here and elsewhere: ``make bench``, or ``python -m benchmarks``.

:mod:`benchmarks.contenders` says what is compared, :mod:`benchmarks.legs` what is asked of each,
:mod:`benchmarks.load` asks it, and :mod:`benchmarks.report` writes down what came of it. Needs
Linux, two cores, and what the tests need.
"""
