"""Molecules: energies with neighbour lists, minimisation, a thermostat's path."""
import jax
from jax_md import energy, minimize, simulate, space

TOLERANCE = 5e-3


def main():
    box = 9.0
    displacement, shift = space.periodic(box)
    at = jax.random.uniform(jax.random.key(0), (64, 3)) * box
    neighbours, energy_of = energy.soft_sphere_neighbor_list(displacement, box)
    lists = neighbours.allocate(at)
    first = energy_of(at, neighbor=lists)
    init, step = minimize.fire_descent(energy.soft_sphere_pair(displacement), shift)
    state = jax.lax.fori_loop(0, 50, lambda i, s: jax.jit(step)(s), init(at))
    init, step = simulate.nvt_nose_hoover(energy.soft_sphere_pair(displacement), shift, dt=1e-3, kT=0.5)

    def one(s, _):
        s = step(s)
        return s, (s.momentum ** 2).sum()
    path = jax.lax.scan(one, init(jax.random.key(1), state.position), None, length=40)[1]
    return {"first": first, "minimum": energy.soft_sphere_pair(displacement)(state.position), "path": path,
            "overflow": lists.update(at).did_buffer_overflow}
