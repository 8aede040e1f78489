"""The client against a socket that misbehaves on demand."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import AsyncGenerator, Awaitable, Callable
from concurrent.futures import Future
from contextlib import asynccontextmanager
from typing import Any

from websockets.asyncio.server import Server, ServerConnection, serve
from websockets.exceptions import ConnectionClosed

from watercolour.api.reasons import Reason
from watercolour.api.rollout import Rollout
from watercolour.env.client import EnvClient

Handler = Callable[[ServerConnection], Awaitable[None]]


async def receive(socket: ServerConnection) -> tuple[str, dict[str, Any]]:
    message = json.loads(await socket.recv())
    return message["type"], message.get("data", {})


async def answer(
    socket: ServerConnection, episode: str, reward: float | None = None, **fields: Any
) -> None:
    observation = {"episode_id": episode, **fields}
    data = {"observation": observation, "reward": reward, "done": reward is not None}
    await socket.send(json.dumps({"type": "observation", "data": data}))


async def refuse(socket: ServerConnection, code: str) -> None:
    await socket.send(json.dumps({"type": "error", "data": {"code": code, "message": "no"}}))


class Env:
    """A faithful little environment: the reward is what the reply says, and it counts."""

    def __init__(self) -> None:
        self.connections = 0
        self.resets: list[dict[str, Any]] = []
        self.replies: list[str] = []

    async def __call__(self, socket: ServerConnection) -> None:
        self.connections += 1
        episode = ""
        try:
            while True:
                kind, data = await receive(socket)
                if kind == "close":
                    return
                if kind == "reset":
                    self.resets.append(data)
                    episode = data["episode_id"]
                    await answer(socket, episode)
                else:
                    await self.step(socket, episode, data["response"])
        except ConnectionClosed:
            return

    async def step(self, socket: ServerConnection, episode: str, reply: str) -> None:
        self.replies.append(reply)
        await answer(socket, episode, float(reply), gate_passed=True, terms={"gate": 1.0})


@asynccontextmanager
async def served(handler: Handler, **options: Any) -> AsyncGenerator[tuple[EnvClient, Server]]:
    async with serve(handler, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        settings: dict[str, Any] = {"timeout_s": 20.0} | options
        client = EnvClient(f"http://127.0.0.1:{port}", **settings)
        try:
            yield client, server
        finally:
            # Off the loop: closing waits for the server's half of the handshake.
            await asyncio.to_thread(client.close)


async def ask(client: EnvClient, reply: str = "0.5", **ids: Any) -> Rollout:
    return await client.evaluate(reply, subject="a red poppy", seed=7, **ids)


async def test_a_rollout_brings_its_ids_the_reward_and_the_groups_seed() -> None:
    env = Env()
    async with served(env) as (client, _):
        rollout = await ask(client, "0.25", run="r", step=3, group=1, index=2, tokens=9)
    assert (rollout.run, rollout.step, rollout.group, rollout.index) == ("r", 3, 1, 2)
    assert (rollout.reward, rollout.tokens, rollout.attempts) == (0.25, 9, 1)
    assert rollout.gate_passed is True
    assert env.resets[0]["seed"] == 7
    assert env.resets[0]["subject"] == "a red poppy"
    assert "env" in rollout.timings


async def test_one_socket_serves_one_rollout_after_the_other() -> None:
    env = Env()
    async with served(env, sessions=1) as (client, _):
        rewards = [(await ask(client, f"0.{n}")).reward for n in range(1, 6)]
    assert rewards == [0.1, 0.2, 0.3, 0.4, 0.5]
    assert env.connections == 1
    assert len({reset["episode_id"] for reset in env.resets}) == 5
    assert len({reset["client"] for reset in env.resets}) == 1


async def test_a_socket_killed_in_the_middle_is_replaced_and_counted() -> None:
    class Mortal(Env):
        async def step(self, socket: ServerConnection, episode: str, reply: str) -> None:
            if self.connections == 1:
                socket.transport.abort()
            else:
                await super().step(socket, episode, reply)

    env = Mortal()
    async with served(env) as (client, _):
        rollout = await ask(client)
    assert (rollout.reward, rollout.attempts, env.connections) == (0.5, 2, 2)
    assert env.resets[0]["seed"] == env.resets[1]["seed"] == 7


async def test_a_server_that_always_dies_leaves_the_rollout_unscored() -> None:
    class Dead(Env):
        async def step(self, socket: ServerConnection, episode: str, reply: str) -> None:
            socket.transport.abort()

    env = Dead()
    async with served(env, attempts=3) as (client, _):
        rollout = await ask(client)
    assert rollout.reward is None
    assert rollout.unscored_reason == Reason.ENV_UNAVAILABLE
    assert rollout.attempts == 3
    assert rollout.unscored_detail
    assert env.connections == 3


async def test_a_late_reply_is_never_taken_for_the_next() -> None:
    class Late(Env):
        def __init__(self) -> None:
            super().__init__()
            self.release = asyncio.Event()

        async def step(self, socket: ServerConnection, episode: str, reply: str) -> None:
            if reply == "0.9":
                await self.release.wait()
            await super().step(socket, episode, reply)

    env = Late()
    async with served(env, sessions=1, attempts=1, timeout_s=0.3) as (client, _):
        late = await ask(client, "0.9")
        env.release.set()
        following = await ask(client, "0.1")
    assert late.reward is None
    assert late.unscored_reason == Reason.ENV_UNAVAILABLE
    assert following.reward == 0.1
    assert env.connections == 2


async def test_a_reply_to_another_episode_is_refused() -> None:
    class Shifted(Env):
        async def step(self, socket: ServerConnection, episode: str, reply: str) -> None:
            own = episode if self.connections > 1 else "another episode"
            await super().step(socket, own, reply)

    env = Shifted()
    async with served(env) as (client, _):
        rollout = await ask(client)
    assert (rollout.reward, rollout.attempts) == (0.5, 2)


async def test_a_full_server_is_waited_for_and_costs_no_attempt() -> None:
    class Full(Env):
        async def __call__(self, socket: ServerConnection) -> None:
            if self.connections < 3:
                self.connections += 1
                await refuse(socket, "CAPACITY_REACHED")
                return
            await super().__call__(socket)

    env = Full()
    async with served(env, attempts=1) as (client, _):
        rollout = await ask(client)
    assert (rollout.reward, rollout.attempts) == (0.5, 1)
    assert env.connections == 4


async def test_no_more_rollouts_than_sessions_are_under_way() -> None:
    class Wide(Env):
        def __init__(self) -> None:
            super().__init__()
            self.now = self.most = 0
            self.full = asyncio.Event()

        async def step(self, socket: ServerConnection, episode: str, reply: str) -> None:
            self.now += 1
            self.most = max(self.most, self.now)
            if self.now == 3:
                self.full.set()
            await self.full.wait()
            await super().step(socket, episode, reply)
            self.now -= 1

    env = Wide()
    async with served(env, sessions=3) as (client, _):
        rollouts = await asyncio.gather(*(ask(client, f"0.{n}") for n in range(1, 10)))
    assert [rollout.reward for rollout in rollouts] == [n / 10 for n in range(1, 10)]
    assert env.most == 3
    assert env.connections == 3


async def test_an_unscored_reply_stays_unscored() -> None:
    class Unscored(Env):
        async def step(self, socket: ServerConnection, episode: str, reply: str) -> None:
            await answer(
                socket,
                episode,
                None,
                gate_passed=None,
                attempts=3,
                unscored_reason="RendererUnavailable",
            )

    async with served(Unscored()) as (client, _):
        rollout = await ask(client)
    assert rollout.reward is None
    assert rollout.unscored_reason == Reason.RENDERER_UNAVAILABLE
    assert rollout.attempts == 3


async def test_an_error_of_the_server_is_tried_again_and_then_unscored() -> None:
    class Broken(Env):
        async def step(self, socket: ServerConnection, episode: str, reply: str) -> None:
            await refuse(socket, "EXECUTION_ERROR")

    env = Broken()
    async with served(env, attempts=2) as (client, _):
        rollout = await ask(client)
    assert rollout.reward is None
    assert "EXECUTION_ERROR" in rollout.unscored_detail
    assert env.connections == 2


async def test_a_server_that_comes_back_is_found_again() -> None:
    env = Env()
    async with served(env, sessions=1) as (client, server):
        assert (await ask(client)).reward == 0.5
        port = server.sockets[0].getsockname()[1]
        server.close()
        await server.wait_closed()
        rollout = asyncio.create_task(ask(client, "0.75"))
        async with serve(env, "127.0.0.1", port):
            assert (await rollout).reward == 0.75


async def test_nobody_listening_is_unscored_and_raises_nothing() -> None:
    client = EnvClient("http://127.0.0.1:9", attempts=2, connect_s=0.0)
    rollout = await ask(client)
    client.close()
    assert rollout.reward is None
    assert rollout.unscored_reason == Reason.ENV_UNAVAILABLE


async def test_a_thread_without_an_event_loop_can_submit() -> None:
    found: list[Rollout] = []

    async with served(Env()) as (client, _):

        def trainer() -> None:
            futures = [client.submit(f"0.{n}", subject="s", seed=1) for n in (1, 2, 3)]
            found.extend(future.result(timeout=20) for future in futures)

        await asyncio.to_thread(trainer)
    assert [rollout.reward for rollout in found] == [0.1, 0.2, 0.3]


class Silent(Env):
    """Never answers a reply."""

    def __init__(self) -> None:
        super().__init__()
        self.asked = asyncio.Event()

    async def step(self, socket: ServerConnection, episode: str, reply: str) -> None:
        self.replies.append(reply)
        self.asked.set()
        await socket.wait_closed()


async def test_closing_ends_every_request_once_as_unscored_and_ends_the_thread() -> None:
    env = Silent()
    async with served(env, sessions=2) as (client, _):
        first = client.submit("0.5", subject="s", seed=1, step=3)
        await env.asked.wait()
        # One more has a session; the others wait for one, or have not even been looked at.
        rollouts = [first, *(client.submit("0.5", subject="s", seed=n) for n in range(2, 20))]
        ends: list[int] = []
        for number, future in enumerate(rollouts):
            future.add_done_callback(lambda _, number=number: ends.append(number))
        announced, checked = client.submit_announcement(4, 0.0), client.submit_self_check()
        await asyncio.to_thread(client.close)
        assert sorted(ends) == list(range(19))
        told = [future.result(0) for future in rollouts]
        assert {rollout.reward for rollout in told} == {None}
        assert {rollout.unscored_reason for rollout in told} == {Reason.ENV_UNAVAILABLE}
        assert [rollout.seed for rollout in told] == list(range(1, 20))
        assert told[0].step == 3
        assert all(rollout.gate_passed is None for rollout in told)
        assert (announced.result(0), checked.result(0)) == (False, None)
        client.close()
    names = {thread.name for thread in threading.enumerate()}
    assert "watercolour-env-client" not in names


async def test_what_is_asked_of_a_closed_client_is_unscored_at_once() -> None:
    client = EnvClient("http://127.0.0.1:9")
    client.close()
    told = client.submit("0.5", subject="s", seed=1).result(0)
    assert (told.reward, told.unscored_reason) == (None, Reason.ENV_UNAVAILABLE)
    assert client.submit_announcement(1, 0.0).result(0) is False


async def test_nothing_is_lost_that_is_asked_while_the_client_closes() -> None:
    env = Silent()
    async with served(env, sessions=2) as (client, _):
        futures: list[Future[Rollout]] = []
        over = threading.Event()

        def ask_on() -> None:
            while not over.is_set():
                futures.append(client.submit("0.5", subject="s", seed=1))
                over.wait(0.0005)

        asking = threading.Thread(target=ask_on)
        asking.start()
        await env.asked.wait()
        await asyncio.to_thread(client.close)
        over.set()
        await asyncio.to_thread(asking.join)
        told = [future.result(0) for future in futures]
    assert len(told) > 1
    assert {rollout.reward for rollout in told} == {None}
    assert {rollout.unscored_reason for rollout in told} == {Reason.ENV_UNAVAILABLE}


async def test_a_request_that_nobody_wants_any_more_is_cancelled() -> None:
    env = Silent()
    async with served(env, sessions=1) as (client, _):
        unwanted = client.submit("0.5", subject="s", seed=1)
        await env.asked.wait()
        assert unwanted.cancel()
        env.asked.clear()
        following = client.submit("0.5", subject="s", seed=2)
        await env.asked.wait()
    assert unwanted.cancelled()
    assert following.result(0).unscored_reason == Reason.ENV_UNAVAILABLE


async def test_an_announcement_nobody_hears_is_no_error() -> None:
    client = EnvClient("http://127.0.0.1:9")
    assert await client.announce(16, 0.0) is False
    client.close()
