"""Simulations: particles, fields, waves, celestial mechanics."""
import jax
import jax.numpy as jnp

from . import program


@program("f32[1024,3]", "f32[1024,3]", "f32[1024]>0")
def gravity_leapfrog(x, v, mass):
    def acceleration(x):
        d = x[None] - x[:, None]
        r2 = (d * d).sum(-1) + 1e-2
        return (d * (mass[None] / (r2 * jnp.sqrt(r2)))[..., None]).sum(1)

    v = v + 0.005 * acceleration(x)
    x = x + 0.01 * v
    return x, v + 0.005 * acceleration(x)


@program("f32[800,3]")
def lennard_jones_energy_and_forces(x):
    def energy(x):
        d = x[:, None] - x[None]
        d = d - 8.0 * jnp.round(d / 8.0)
        r2 = (d * d).sum(-1) + jnp.eye(len(x)) * 100.0
        s6 = (1.0 / r2) ** 3
        return 2.0 * jnp.where(r2 < 6.25, s6 * s6 - s6, 0.0).sum()

    return jax.value_and_grad(energy)(x)


@program("f32[512,512]", "f32[512,512]")
def wave_equation(u, before):
    def step(_, state):
        u, before = state
        lap = (jnp.roll(u, 1, 0) + jnp.roll(u, -1, 0) + jnp.roll(u, 1, 1) + jnp.roll(u, -1, 1) - 4 * u)
        return 2 * u - before + 0.2 * lap, u

    return jax.lax.fori_loop(0, 10, step, (u, before))[0]


@program("f32[256,256]>0", "f32[256,256]>0")
def reaction_diffusion(a, b):
    kernel = jnp.array([[0.05, 0.2, 0.05], [0.2, -1.0, 0.2], [0.05, 0.2, 0.05]], jnp.float32)

    def laplacian(x):
        return jax.scipy.signal.convolve2d(x, kernel, mode="same")

    def step(state, _):
        a, b = state
        r = a * b * b
        return (a + 0.9 * laplacian(a) - r + 0.04 * (1 - a), b + 0.4 * laplacian(b) + r - 0.1 * b), None

    return jax.lax.scan(step, (0.9 * a, 0.25 * b), None, length=8)[0]


@program("f32[96,96,96]")
def heat_3d(u):
    def step(_, u):
        inner = u[1:-1, 1:-1, 1:-1]
        lap = (u[2:, 1:-1, 1:-1] + u[:-2, 1:-1, 1:-1] + u[1:-1, 2:, 1:-1] + u[1:-1, :-2, 1:-1] + u[1:-1, 1:-1, 2:] + u[1:-1, 1:-1, :-2] - 6 * inner)
        return u.at[1:-1, 1:-1, 1:-1].add(0.1 * lap)

    return jax.lax.fori_loop(0, 4, step, u)


@program("f32[3,256,256]")
def shallow_water(q):
    def flux_x(q):
        h, hu, hv = q[0] + 2.0, q[1], q[2]
        return jnp.stack([hu, hu * hu / h + 4.9 * h * h, hu * hv / h])

    def flux_y(q):
        h, hu, hv = q[0] + 2.0, q[1], q[2]
        return jnp.stack([hv, hu * hv / h, hv * hv / h + 4.9 * h * h])

    def step(q, _):
        fx, fy = flux_x(q), flux_y(q)
        around = (jnp.roll(q, 1, 1) + jnp.roll(q, -1, 1) + jnp.roll(q, 1, 2) + jnp.roll(q, -1, 2)) / 4
        return around - 0.05 * (jnp.roll(fx, -1, 1) - jnp.roll(fx, 1, 1) + jnp.roll(fy, -1, 2) - jnp.roll(fy, 1, 2)), None

    return jax.lax.scan(step, 0.1 * q, None, length=5)[0]


@program("f32[9,128,128]>0")
def lattice_boltzmann(f):
    ex = jnp.array([0, 1, 0, -1, 0, 1, -1, -1, 1], jnp.float32)
    ey = jnp.array([0, 0, 1, 0, -1, 1, 1, -1, -1], jnp.float32)
    w = jnp.array([4 / 9] + [1 / 9] * 4 + [1 / 36] * 4, jnp.float32)

    def step(_, f):
        rho = f.sum(0) + 1e-3
        ux, uy = jnp.tensordot(ex, f, 1) / rho, jnp.tensordot(ey, f, 1) / rho
        cu = ex[:, None, None] * ux + ey[:, None, None] * uy
        eq = w[:, None, None] * rho * (1 + 3 * cu + 4.5 * cu * cu - 1.5 * (ux * ux + uy * uy))
        f = f + (eq - f) / 0.6
        return jnp.stack([jnp.roll(f[i], (int(x), int(y)), (0, 1)) for i, (x, y) in enumerate(zip((0, 1, 0, -1, 0, 1, -1, -1, 1), (0, 0, 1, 0, -1, 1, 1, -1, -1)))])

    return jax.lax.fori_loop(0, 4, step, f)


@program("f32[20000,6]")
def double_pendulum_rk4(state):
    def deriv(s):
        a, b, p, q = s[:, 0], s[:, 1], s[:, 2], s[:, 3]
        d = a - b
        den = 16 - 9 * jnp.cos(d) ** 2
        da, db = 6 * (2 * p - 3 * jnp.cos(d) * q) / den, 6 * (8 * q - 3 * jnp.cos(d) * p) / den
        dp = -0.5 * (da * db * jnp.sin(d) + 3 * 9.81 * jnp.sin(a))
        dq = -0.5 * (-da * db * jnp.sin(d) + 9.81 * jnp.sin(b))
        return jnp.stack([da, db, dp, dq, s[:, 4] * 0, s[:, 5] * 0], 1)

    h = 0.01
    k1 = deriv(state)
    k2 = deriv(state + h / 2 * k1)
    k3 = deriv(state + h / 2 * k2)
    return state + h / 6 * (k1 + 2 * k2 + 2 * k3 + deriv(state + h * k3))


@program("f32[128,128]", "f32[64]>0")
def ising_checkerboard(spins, fields):
    def sweep(s, key):
        for parity in (0, 1):
            near = jnp.roll(s, 1, 0) + jnp.roll(s, -1, 0) + jnp.roll(s, 1, 1) + jnp.roll(s, -1, 1)
            mask = (jnp.add.outer(jnp.arange(128), jnp.arange(128)) % 2) == parity
            accept = jax.random.uniform(jax.random.fold_in(key, parity), s.shape) < jnp.exp(-2.0 * s * near * 0.44)
            s = jnp.where(mask & accept, -s, s)
        return s, s.mean()

    keys = jax.random.split(jax.random.key(3), 8)
    return jax.lax.scan(sweep, jnp.sign(spins) + fields[0] * 0, keys)


@program("c64[2048,64]", "f32[2048]")
def schroedinger_split_step(psi, potential):
    k = jnp.fft.fftfreq(2048) * 2048
    half = jnp.exp(-0.5j * 0.01 * potential)[:, None]
    kinetic = jnp.exp(-0.5j * 0.01 * k * k * 1e-3)[:, None]

    def step(_, psi):
        return half * jnp.fft.ifft(kinetic * jnp.fft.fft(half * psi, axis=0), axis=0)

    return jax.lax.fori_loop(0, 2, step, psi)


@program("f32[4096,3]", "f32[4096]", "s32[16384]<4096", "s32[16384]<4096")
def spring_network(x, charge, i, j):
    d = x[i] - x[j]
    length = jnp.sqrt((d * d).sum(-1) + 1e-6)
    force = ((length - 1.0) / length * charge[i] * charge[j])[:, None] * d
    return jnp.zeros_like(x).at[i].add(-force).at[j].add(force)


@program("f32[50000,2]", "f32[50000]")
def particle_in_cell_deposit(x, charge):
    cell = jnp.mod(x * 16.0, 128.0)
    low = jnp.floor(cell).astype(jnp.int32)
    frac = cell - low
    grid = jnp.zeros((128, 128), jnp.float32)
    for dx in (0, 1):
        for dy in (0, 1):
            w = jnp.where(dx, frac[:, 0], 1 - frac[:, 0]) * jnp.where(dy, frac[:, 1], 1 - frac[:, 1])
            grid = grid.at[(low[:, 0] + dx) % 128, (low[:, 1] + dy) % 128].add(w * charge)
    return grid
