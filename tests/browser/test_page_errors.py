"""What goes wrong in a sketch is told, bounded, and read without running any of its code."""

from __future__ import annotations

import pytest
from tests.browser.sketches import HONEST, sketch

from watercolour.render.dispatcher import Dispatcher
from watercolour.render.result import Painted, SketchFault

#: CPU seconds in which an honest sketch ends many times over; one of the loops below does not.
BUDGET = 8


async def told(client: Dispatcher, source: str) -> Painted:
    """The painting with what was told of its errors."""
    return await client.render(source, seed=3, fresh=True, cpu_budget_s=BUDGET, deadline_s=300)


def later(source: str) -> str:
    """The same with an asynchronous draw."""
    return source.replace("function draw() {", "async function draw() {")


ASYNC = {
    "thrown after a wait": ('await 0;\n throw new TypeError("late");', "TypeError: late"),
    "a rejection that nobody awaits": (
        'Promise.reject(new RangeError("lost"));\n',
        "RangeError: lost",
    ),
    "an error event": (
        'setTimeout(() => {\n throw new Error("timed"); }, 0);'
        " await new Promise((done) => setTimeout(done, 1));",
        "Error: timed",
    ),
}


@pytest.mark.parametrize("name", ASYNC)
async def test_an_error_of_asynchronous_code_is_told(client: Dispatcher, name: str) -> None:
    statement, words = ASYNC[name]
    source = later(sketch(tail=statement))
    painted = await told(client, source)
    assert len(painted.js_errors) == 1
    assert words in painted.js_errors[0]
    line = source[: source.index("Error(")].count("\n") + 1
    assert f"(line {line}, " in painted.js_errors[0]
    assert painted.shapes == 3


LOOP = "while (true);"

TRAPS = {
    "a message that is a getter": f"throw {{ get message() {{ {LOOP} }} }};",
    "an error's message that is a getter": f"""throw Object.defineProperty(new Error("x"),
      "message", {{ get() {{ {LOOP} }} }});""",
    "an error's stack that is a getter": f"""throw Object.defineProperty(new Error("x"), "stack",
      {{ get() {{ {LOOP} }} }});""",
    "a toString": f"throw {{ toString() {{ {LOOP} }}, valueOf() {{ {LOOP} }} }};",
    "a proxy": f"""const trap = () => {{ {LOOP} }}; throw new Proxy(function () {{}}, {{ get: trap,
      has: trap, getPrototypeOf: trap, getOwnPropertyDescriptor: trap, ownKeys: trap }});""",
    "a formatter of stacks": f"""Error.prepareStackTrace = () => {{ {LOOP} }};
      throw new Error("x");""",
    "an instance of everything": f"""Object.defineProperty(Error, Symbol.hasInstance,
      {{ value: () => {{ {LOOP} }} }}); throw {{}};""",
    "a text's own methods": f"""String.prototype.slice = String.prototype.replace =
      RegExp.prototype.exec = RegExp.prototype[Symbol.replace] = () => {{ {LOOP} }};
      throw new Error("x");""",
    "a symbol": "throw Symbol('x');",
    "nothing": "throw undefined;",
    "null": "throw null;",
    "a big number": "throw 10n ** 30n;",
}


@pytest.mark.parametrize("name", TRAPS)
async def test_a_thrown_value_is_read_without_running_its_code(
    client: Dispatcher, name: str
) -> None:
    await read_as_data(client, TRAPS[name])


@pytest.mark.parametrize("name", ["a proxy", "an error's message that is a getter", "nothing"])
async def test_so_is_the_reason_of_a_rejection(client: Dispatcher, name: str) -> None:
    await read_as_data(client, f"(async () => {{ {TRAPS[name]} }})();")


async def read_as_data(client: Dispatcher, statement: str) -> None:
    painted = await told(client, sketch(tail=statement))
    assert len(painted.js_errors) == 1
    assert painted.js_errors[0].startswith("draw: ")
    assert painted.painting == (await client.render(HONEST, seed=3)).painting


#: The engine itself asks an uncaught error for its name, before anybody else can see it.
ASKED_BY_THE_ENGINE = {
    "an error's name that is a getter": f"""class E extends Error {{ get name() {{ {LOOP} }} }}
      throw new E("x");""",
    "an error whose prototype is a proxy": f"""const trap = () => {{ {LOOP} }};
      throw Object.setPrototypeOf(new Error("x"), new Proxy({{}}, {{ get: trap, has: trap,
        getPrototypeOf: trap, getOwnPropertyDescriptor: trap }}));""",
}


@pytest.mark.parametrize("name", ASKED_BY_THE_ENGINE)
async def test_what_the_engine_runs_of_it_is_charged_to_the_sketch(
    client: Dispatcher, name: str
) -> None:
    source = sketch(tail=ASKED_BY_THE_ENGINE[name])
    with pytest.raises(SketchFault) as caught:
        await client.render(source, seed=3, fresh=True, cpu_budget_s=3, deadline_s=300)
    assert caught.value.violation.code == "sketch_timeout"


async def test_ten_thousand_errors_are_counted_and_few_are_told(client: Dispatcher) -> None:
    flood = sketch(
        tail="""const long = "x".repeat(10000);
      for (let i = 0; i < 1e4; i++) Promise.reject(new Error(long));"""
    )
    painted = await told(client, flood)
    assert len(painted.js_errors) == 21
    assert painted.js_errors[-1] == "and 9980 more"
    assert max(map(len, painted.js_errors)) < 600


async def test_a_flood_of_console_lines_costs_nothing(client: Dispatcher) -> None:
    flood = sketch(tail='for (let i = 0; i < 1e6; i++) { console.log("x".repeat(99)); print(i); }')
    painted = await told(client, flood)
    assert painted.js_errors == ()
    assert painted.painting == (await client.render(HONEST, seed=3)).painting


async def test_events_that_a_sketch_makes_up_are_no_errors(client: Dispatcher) -> None:
    forged = sketch(
        tail="""window.dispatchEvent(new ErrorEvent("error", { error: new Error("forged") }));
      window.dispatchEvent(new PromiseRejectionEvent("unhandledrejection",
        { promise: Promise.resolve(), reason: "forged" }));"""
    )
    assert (await told(client, forged)).js_errors == ()
