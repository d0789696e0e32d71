"""Sets of loops by name: each is (function, shapes of its arguments)."""


def loop_set():
    """(the set, a decorator that adds a function with the shapes it is given)."""
    programs = {}

    def loop(*shapes):
        def add(function):
            programs[function.__name__] = (function, shapes)
            return function

        return add

    return programs, loop
