"""Differential equations: diffrax's explicit, implicit and stochastic solvers, adjoints, events; a neural ODE of equinox that learns."""
import diffrax
import equinox as eqx
import jax
import jax.numpy as jnp
import optax

TOLERANCE = 2e-3


def vector_field(t, y, args):
    return jnp.stack([y[1], args * (1 - y[0] ** 2) * y[1] - y[0]])  # van der Pol


def solve(solver, args, **options):
    return diffrax.diffeqsolve(diffrax.ODETerm(vector_field), solver, 0.0, 4.0, 0.05, jnp.array([2.0, 0.0]), args, saveat=diffrax.SaveAt(ts=jnp.linspace(0, 4, 9)),
                               stepsize_controller=diffrax.PIDController(rtol=1e-5, atol=1e-6), **options)


def noisy():
    path = diffrax.VirtualBrownianTree(0.0, 1.0, tol=1e-3, shape=(2,), key=jax.random.key(0))
    terms = diffrax.MultiTerm(diffrax.ODETerm(lambda t, y, args: -y), diffrax.ControlTerm(lambda t, y, args: 0.1 * jnp.eye(2), path))
    return diffrax.diffeqsolve(terms, diffrax.Euler(), 0.0, 1.0, 0.01, jnp.ones(2)).ys[-1]


def bouncing():
    event = diffrax.Event(lambda t, y, args, **kw: y[0], None)
    return diffrax.diffeqsolve(diffrax.ODETerm(lambda t, y, args: jnp.stack([y[1], -9.8])), diffrax.Tsit5(), 0.0, 10.0, 0.1, jnp.array([5.0, 0.0]), event=event).ts[-1]


class Field(eqx.Module):
    mlp: eqx.nn.MLP

    def __call__(self, t, y, args):
        return self.mlp(y)


def learn():
    field = Field(eqx.nn.MLP(2, 2, 16, 2, jax.nn.softplus, key=jax.random.key(0)))
    starts = jax.random.normal(jax.random.key(1), (8, 2))
    turn = jnp.array([[jnp.cos(1.0), -jnp.sin(1.0)], [jnp.sin(1.0), jnp.cos(1.0)]])
    tx = optax.adam(1e-2)
    state = tx.init(eqx.filter(field, eqx.is_inexact_array))

    @eqx.filter_jit
    def step(field, state):
        @eqx.filter_value_and_grad
        def loss(field):
            def end(y):
                return diffrax.diffeqsolve(diffrax.ODETerm(field), diffrax.Heun(), 0.0, 1.0, 0.1, y).ys[-1]
            return jnp.mean((jax.vmap(end)(starts) - starts @ turn.T) ** 2)
        value, grads = loss(field)
        updates, state_ = tx.update(grads, state)
        return eqx.apply_updates(field, updates), state_, value

    losses = []
    for _ in range(50):
        field, state, value = step(field, state)
        losses.append(value)
    return jnp.stack(losses)


def main():
    out = {"tsit5": jax.jit(lambda a: solve(diffrax.Tsit5(), a).ys)(2.0), "dopri8": jax.jit(lambda a: solve(diffrax.Dopri8(), a).ys)(2.0),
           "kvaerno5": jax.jit(lambda a: solve(diffrax.Kvaerno5(), a).ys)(5.0)}
    out["gradient"] = jax.jit(jax.grad(lambda a: solve(diffrax.Tsit5(), a).ys[-1, 0]))(2.0)
    out["gradient backwards"] = jax.jit(jax.grad(lambda a: solve(diffrax.Tsit5(), a, adjoint=diffrax.BacksolveAdjoint()).ys[-1, 0]))(2.0)
    out["noisy"], out["time of the bounce"], out["losses"] = jax.jit(noisy)(), jax.jit(bouncing)(), learn()
    return out
